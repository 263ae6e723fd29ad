// Steps on drawn batches, as one process and as the ranks of a pipeline do them, which here are threads.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/rng.h"
#include "weft/comm/local/local_group.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/tensor_parts.h"
#include "weft/library/library.h"
#include "weft/models/builder.h"
#include "weft/program/driver.h"
#include "weft/program/rank_runtime.h"
#include "weft/spec/compile_options.h"
#include "weft/step/data_parallel.h"
#include "weft/step/micro_batches.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/step.h"

namespace weft {

/// Tokens are looked up in the weight that the last layer multiplies with, and the first layer's result is added to the
/// last one's: what stages far from each other share.
inline models::Model build_tied(const OpRegistry& registry, const models::ModelInput& input,
                                const models::ModelOptions&, models::Mode mode) {
  models::ModelBuilder m(registry, "tied", input, mode);
  Graph& graph = m.graph();
  const int64_t rows = input.batch * input.shape[0], width = 24;
  const ValueId tokens = m.tokens();
  const ValueId weight =
      m.parameter("words.weight", {input.classes, width}, {models::Initializer::Kind::normal, 0.3}, true);
  const ValueId first = ops::reshape(graph, ops::embedding(graph, weight, tokens), {rows, width}, "first");
  ValueId x = first;
  for (int layer = 0; layer < 6; ++layer)
    x = ops::tanh(graph, m.linear(x, fmt::format("layer{}", layer), {.width = width}));
  x = ops::add(graph, x, first, "skip");
  return m.finish(ops::matmul(graph, x, weight, false, true, "logits"));
}

inline Library library_with_tied() {
  Library library = standard_library();
  library.add_model({.name = "tied", .summary = "", .build = build_tied});
  return library;
}

struct PipelineModel {
  std::string name;
  std::vector<int64_t> input;
  int64_t classes = 10;
  models::ModelOptions options = {};
  std::string optimizer = "sgd";
  bool has_statistics = false;
  int64_t source = 0;  // see models::ModelInput
  bool has_ignored = false;
};

/// What several steps gave.
struct StepsResult {
  std::vector<double> losses, correct, norms;
  std::map<std::string, std::vector<float>> state;                 // without sums; of a rank that has a part this part
  std::map<std::string, std::pair<Sharding, int64_t>> parts = {};  // which one, by state
  int64_t arena_bytes = 0, state_bytes = 0, arena_live = 0;
};

class PipelineRig {
 public:
  /// `rows`: of a micro-batch, of all ranks along the axis data together.
  PipelineRig(PipelineModel model, int64_t rows, int64_t micro_batches)
      : model_(std::move(model)), rows_(rows), micro_batches_(micro_batches) {}

  spec::RunSpec spec() const {
    spec::RunSpec spec;
    spec.model.name = model_.name;
    spec.model.options = model_.options;
    spec.optimizer.name = model_.optimizer;
    spec.optimizer.learning_rate = model_.optimizer == "sgd" ? 0.02 : 0.002;
    spec.schedule.name = "constant";
    spec.threads = 1;
    spec.late_multiply = false;
    spec.batch = rows_;
    spec.accumulate = micro_batches_;
    change(spec);
    spec::resolve(spec);
    return spec;
  }
  spec::RunSpec pipelined(int ranks, const std::string& schedule, int data = 1, int tensor = 1) const {
    spec::RunSpec spec = this->spec();
    spec.batch = rows_ * micro_batches_;
    spec.accumulate = 1;
    spec.mesh = {.data = data, .tensor = tensor, .pipeline = ranks};
    spec.pipeline = {.schedule = schedule, .micro_batches = micro_batches_, .chunks = 2};
    spec::resolve(spec);
    return spec;
  }
  std::function<void(spec::RunSpec&)> change = [](spec::RunSpec&) {};

  StepsResult alone(int steps) const { return run(spec(), nullptr, steps); }
  std::vector<StepsResult> on_ranks(const spec::RunSpec& spec, int steps) const {
    std::vector<StepsResult> results(
        static_cast<size_t>(spec.mesh.pipeline * spec.mesh.tensor * std::max<int64_t>(spec.mesh.data, 1)));
    comm::run_ranks(std::vector<std::string>(results.size(), "host"), [&](comm::Communicator& ranks) {
      results[static_cast<size_t>(ranks.rank())] = run(spec, &ranks, steps);
    });
    return results;
  }

  /// Graphs refer to it.
  const Library& library() const { return library_; }

  models::ModelInput input_of(int64_t batch) const {
    return {.batch = batch,
            .shape = model_.input,
            .classes = model_.classes,
            .source = model_.source,
            .has_ignored = model_.has_ignored};
  }

 private:
  StepsResult run(const spec::RunSpec& spec, comm::Communicator* ranks, int steps) const {
    const int count = comm::number_of(ranks), data = step::data_ranks(spec, count);
    const int data_rank = step::data_rank(spec, comm::rank_of(ranks), count);
    const bool is_pipeline = step::is_pipelined(spec);
    const Library& library = library_;
    const program::RankRuntime runtime(ranks, 1, {}, false, step::mesh_of(spec, count));
    const CpuBackend backend(1, runtime.kernels(library.kernels));
    const int64_t own = spec.batch / data;
    const step::TrainingStep step = step::build_training_step(library, spec, input_of(own),
                                                              {.ranks = data,
                                                               .tensor_ranks = runtime.tensor_ranks(),
                                                               .rank = comm::rank_of(ranks),
                                                               .costs = runtime.costs()});
    program::Program program([&](const spec::StepShape&) { return step.graph; }, backend,
                             runtime.training_options(spec, backend, rated_costs()), runtime.make_arena(backend));
    program.add_phases_of(step);
    State state = step::initial_state(step, 7, comm::rank_of(ranks));
    const spec::Course course(spec, 1 << 16);
    step::StepScalars scalars(spec, course, data, data_rank);
    program::Driver driver(program, state);
    driver.select(own);
    driver.bind_scalars(scalars);
    StepsResult result;
    std::vector<Tensor> bound;
    int64_t now = 0;
    const program::StepHooks hooks{.next_batch = [&](int64_t part) {
      bound.clear();
      for (const GraphInput& input : driver.graph().inputs())
        if (input.kind == InputKind::batch) {
          bound.push_back(drawn(input.name, driver.graph().type(input.value), now, is_pipeline ? 0 : part,
                                is_pipeline ? micro_batches_ : 1, data, data_rank));
          driver.executor().bind_batch(input.name, bound.back().data());
        }
    }};
    const int64_t parts = is_pipeline ? 1 : micro_batches_;
    for (; now < steps; ++now) {
      double loss = 0, correct = 0;
      program::StepHooks summing = hooks;
      summing.batch_done = [&](int64_t) {
        loss += static_cast<double>(driver.executor().scalar_output("loss")) / static_cast<double>(parts);
        if (driver.has_output("correct")) correct += static_cast<double>(driver.executor().scalar_output("correct"));
      };
      driver.set_scalar(step::kStop, ranks != nullptr && now == 1 && ranks->rank() == count - 1 ? 1.0 : 0.0);
      driver.run_step(scalars, {.step = now, .parts = parts}, 1, summing);
      result.losses.push_back(loss);
      result.correct.push_back(correct);
      if (driver.has_output("gradient_norm", driver.last()))
        result.norms.push_back(static_cast<double>(driver.executor(driver.last()).scalar_output("gradient_norm")));
      if (ranks != nullptr) {
        EXPECT_EQ(driver.executor().scalar_output(step::kStop), now == 1 ? 1 : 0);
      }
    }
    driver.finish();
    for (const std::string& name : state.names()) {
      if (name.starts_with("optimizer/gradient_sum") || name.starts_with("optimizer/micro_sum")) continue;
      const Tensor tensor = state.plain(name);
      if (tensor.dtype() != DType::f32) continue;
      result.state[name].assign(tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements());
      const auto shared = step.shardings.find(name);
      if (shared != step.shardings.end() && parts_of(shared->second) > 1)
        result.parts[name] = {shared->second, coordinate_of(shared->second, step.mesh, comm::rank_of(ranks))};
    }
    result.arena_bytes = program.compiled(own).plan.arena_bytes;
    result.state_bytes = step::state_bytes(step);
    return result;
  }

  /// The rows of `parts` micro-batches from `part` on that belong to the rank: in each micro-batch the ranks along the
  /// axis data have as many rows, as when it trains (data::LoaderOptions::turns).
  Tensor drawn(const std::string& name, const TensorType& type, int64_t at, int64_t part, int64_t parts, int data,
               int data_rank) const {
    Tensor tensor(type.dtype, type.shape);
    const int64_t own = rows_ / data, per_row = tensor.elements() / (own * parts);
    int64_t to = 0;
    for (int64_t m = part; m < part + parts; ++m)
      for (int64_t index = 0; index < own; ++index) {
        const int64_t row = m * rows_ + data_rank * own + index;
        RandomStream random(mix(mix(static_cast<uint64_t>(at), static_cast<uint64_t>(row)), hash_name(name)));
        for (int64_t element = 0; element < per_row; ++element, ++to)
          if (type.dtype == DType::f32)
            tensor.data_as<float>()[to] = random.uniform();
          else
            tensor.data_as<int32_t>()[to] =
                model_.has_ignored && name == "labels" && random.below(4) == 0
                    ? -100
                    : static_cast<int32_t>(random.below(static_cast<uint64_t>(model_.classes)));
      }
    return tensor;
  }

  const Library library_ = library_with_tied();
  const PipelineModel model_;
  const int64_t rows_, micro_batches_;
};

/// What a rank should have of a state that was computed whole.
inline std::vector<float> wanted_part(const StepsResult& wanted, const StepsResult& rank, const std::string& name) {
  const std::vector<float>& whole = wanted.state.at(name);
  const auto part = rank.parts.find(name);
  if (part == rank.parts.end()) return whole;
  Tensor tensor(DType::f32, part->second.first.whole);
  EXPECT_EQ(tensor.elements(), static_cast<int64_t>(whole.size())) << name;
  std::copy(whole.begin(), whole.end(), tensor.data_as<float>());
  const Tensor own = part_of(tensor, part->second.first, part->second.second);
  return {own.data_as<float>(), own.data_as<float>() + own.elements()};
}

/// Losses within the relative tolerance, on every rank; the weights of each rank likewise, to their largest.
inline void expect_same_steps(const StepsResult& wanted, const std::vector<StepsResult>& ranks, double tolerance,
                              double of_weights) {
  std::map<std::string, int> seen;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ASSERT_EQ(ranks[rank].losses.size(), wanted.losses.size());
    for (size_t at = 0; at < wanted.losses.size(); ++at) {
      EXPECT_NEAR(ranks[rank].losses[at], wanted.losses[at], tolerance * std::abs(wanted.losses[at]))
          << "rank " << rank << ", step " << at;
    }
    EXPECT_EQ(ranks[rank].losses, ranks[0].losses) << rank;
    for (size_t at = 0; at < wanted.norms.size(); ++at)
      EXPECT_NEAR(ranks[rank].norms[at], wanted.norms[at], tolerance * wanted.norms[at]) << rank;
    for (const auto& [name, values] : ranks[rank].state) {
      const std::vector<float> other = wanted_part(wanted, ranks[rank], name);
      ASSERT_EQ(values.size(), other.size()) << name;
      ++seen[name];
      // A bias near zero differs by what the order of sums does to weights of a usual size.
      double largest = 5e-2, difference = 0;
      for (size_t at = 0; at < values.size(); ++at) {
        largest = std::max(largest, std::abs(static_cast<double>(other[at])));
        difference = std::max(difference, std::abs(static_cast<double>(values[at]) - static_cast<double>(other[at])));
      }
      EXPECT_LE(difference, of_weights * largest) << name << " of rank " << rank;
    }
  }
  for (const auto& [name, values] : wanted.state) EXPECT_GE(seen[name], 1) << name << " is on no rank";
}

}  // namespace weft
