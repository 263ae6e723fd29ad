// Training on several ranks, which here are threads: what they compute together is what one process computes.
#include "weft/step/data_parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "tests/support/fit_rig.h"
#include "weft/base/rng.h"
#include "weft/comm/local/local_group.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/accumulation.h"
#include "weft/graph/collective.h"
#include "weft/program/rank_runtime.h"
#include "weft/step/accumulation.h"

namespace weft::step {
namespace {

constexpr int64_t kBatch = 16;
constexpr int kSteps = 4;

struct Result {
  std::vector<double> losses, correct;
  std::map<std::string, std::vector<float>> state;
  int gathers = 0;               // in the graph of a step
  int backward_after_start = 0;  // gradients of weights that it computes after the first of their sums has set out
};

/// Rows of the global batch of a step.
struct Rows {
  std::vector<float> images;
  std::vector<int32_t> labels;
};

Rows rows_of(int step, int64_t begin, int64_t end) {
  Rows rows;
  for (int64_t row = begin; row < end; ++row) {
    RandomStream random(mix(static_cast<uint64_t>(step), static_cast<uint64_t>(row)));
    rows.labels.push_back(static_cast<int32_t>(random.below(3)));
    for (int64_t pixel = 0; pixel < kSize * kSize; ++pixel)
      rows.images.push_back(random.uniform() + 0.3f * static_cast<float>(rows.labels.back()));
  }
  return rows;
}

int backward_after_start(const CompiledStep& step) {
  const std::vector<bool> is_completing = find_completing(step.graph);
  bool has_begun = false;
  int products = 0;
  for (const PlannedNode& planned : step.plan.steps) {
    const Node& node = step.graph.node(planned.node);
    if (is_completing[static_cast<size_t>(planned.node.index)] && is_collective_start(node)) has_begun = true;
    if (has_begun && node.op->name == "conv2d_backward_weights") ++products;
  }
  return products;
}

Result train_on(spec::RunSpec spec, comm::Communicator* communicator, double bytes_per_second = 1e9,
                const std::vector<std::string>& without = {}) {
  const int ranks = communicator == nullptr ? 1 : communicator->size();
  const int rank = communicator == nullptr ? 0 : communicator->rank();
  const Library library = standard_library();
  const program::RankRuntime runtime(communicator, 1);
  const CpuBackend backend(1, runtime.kernels(library.kernels));
  const std::shared_ptr<Arena> arena = runtime.make_arena(backend);
  const int64_t own = spec.batch / ranks;
  const models::ModelInput input{.batch = own, .shape = {1, kSize, kSize}, .classes = 3};
  const TrainingStep step = build_training_step(library, spec, input, {.ranks = ranks});
  CompileOptions options = spec::compile_options(spec, backend);
  for (const std::string& pass : without)
    if (!pass.empty()) options.passes.disabled.push_back(pass);
  options.ranks = {.count = ranks,
                   .latency_seconds = 1e-5,
                   .bytes_per_second = bytes_per_second,
                   .batches = batches_per_exchange(spec)};
  program::StepCache training([&](const spec::StepShape&) { return step.graph; }, backend, options, arena);
  program::StepCache update(
      [&](const spec::StepShape& shape) { return update_graph_for(step, training.compiled(shape).graph); }, backend,
      options, arena);
  State state = initial_state(step, 7);
  Executor& executor = training.executor(own);
  executor.bind_state(state);
  const auto set = [](Executor& in, const char* name, double value) {
    if (in.has_scalar(name)) in.set_scalar(name, value);
  };
  Result result;
  for (const Node& node : training.compiled(own).graph.nodes())
    result.gathers += is_collective_start(node) && is_gather(node);
  result.backward_after_start = backward_after_start(training.compiled(own));
  for (int at = 0; at < kSteps; ++at) {
    const bool first = at % spec.accumulate == 0, last = (at + 1) % spec.accumulate == 0;
    const Rows rows = rows_of(at, rank * own, (rank + 1) * own);
    executor.bind_batch("image", rows.images.data());
    executor.bind_batch("labels", rows.labels.data());
    set(executor, "learning_rate", 0.05);
    set(executor, "step", at);
    set(executor, "accumulated", first ? 0 : 1);
    set(executor, kSumComplete, last ? 1 : 0);
    set(executor, "update", at);
    set(executor, "share", 1.0 / static_cast<double>(spec.accumulate));
    set(executor, kStop, at == 2 && rank == ranks - 1 ? 1 : 0);
    executor.run();
    result.losses.push_back(static_cast<double>(executor.scalar_output("loss")));
    result.correct.push_back(static_cast<double>(executor.scalar_output("correct")));
    if (ranks > 1) {
      EXPECT_EQ(executor.scalar_output(kStop), at == 2 ? 1 : 0);
    }
    if (!step.update || !last) continue;
    Executor& updating = update.executor(own);
    updating.bind_state(state);
    set(updating, "learning_rate", 0.05);
    set(updating, "update", at);
    updating.run();
    executor.bind_state(state);
  }
  for (const std::string& name : state.names()) {
    if (name.starts_with("optimizer/gradient_sum")) continue;  // each rank's own
    const Tensor tensor = state.plain(name);
    result.state[name].assign(tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements());
  }
  return result;
}

std::vector<Result> train_on_ranks(const spec::RunSpec& spec, const std::vector<std::string>& hosts,
                                   double bytes_per_second = 1e9, const std::vector<std::string>& without = {}) {
  std::vector<Result> results(hosts.size());
  comm::run_ranks(hosts, [&](comm::Communicator& communicator) {
    results[static_cast<size_t>(communicator.rank())] = train_on(spec, &communicator, bytes_per_second, without);
  });
  return results;
}

spec::RunSpec network_spec(const std::string& model) {
  spec::RunSpec spec;
  spec.model.name = model;
  spec.batch = kBatch;
  spec.threads = 1;
  spec.optimizer.learning_rate = 0.05;
  spec::resolve(spec);
  return spec;
}

void expect_close(const Result& one, const Result& several, double tolerance) {
  for (int step = 0; step < kSteps; ++step) {
    const auto at = static_cast<size_t>(step);
    EXPECT_NEAR(one.losses[at], several.losses[at], tolerance * one.losses[at]) << "step " << step;
    EXPECT_EQ(one.correct[at], several.correct[at]) << "step " << step;
  }
  for (const auto& [name, values] : one.state) {
    double largest = 0, difference = 0;
    for (size_t at = 0; at < values.size(); ++at) {
      const auto a = static_cast<double>(values[at]), b = static_cast<double>(several.state.at(name)[at]);
      largest = std::max(largest, std::abs(a));
      difference = std::max(difference, std::abs(a - b));
    }
    EXPECT_LE(difference, tolerance * std::max(largest, 1e-3)) << name;
  }
}

class DataParallel : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(DataParallel, ANetworkWithoutStatisticsOfTheBatchTrainsAsInOneProcess) {
  const spec::RunSpec spec = network_spec("lenet5");
  const Result one = train_on(spec, nullptr);
  for (const Result& rank : train_on_ranks(spec, GetParam())) expect_close(one, rank, 2e-4);
}

TEST_P(DataParallel, AllRanksHaveTheSameStateToTheLastBit) {
  const std::vector<Result> ranks = train_on_ranks(network_spec("resnet9"), GetParam());
  for (const Result& rank : ranks) {
    EXPECT_EQ(rank.losses, ranks[0].losses);
    EXPECT_EQ(rank.state, ranks[0].state);
  }
}

TEST_P(DataParallel, SumsOfSeveralBatchesAreReducedBeforeTheUpdate) {
  spec::RunSpec spec = network_spec("lenet5");
  spec.accumulate = 2;
  const Result one = train_on(spec, nullptr);
  for (const Result& rank : train_on_ranks(spec, GetParam())) expect_close(one, rank, 2e-4);
}

TEST_P(DataParallel, SumsOfSeveralBatchesTravelWhileTheLastIsComputed) {
  spec::RunSpec spec = network_spec("resnet9");
  spec.accumulate = 2;
  const std::vector<Result> ranks = train_on_ranks(spec, GetParam(), 1e8);
  EXPECT_GT(ranks[0].backward_after_start, 0);
  spec.late_multiply = false;
  for (const char* without : {"overlap_all_reduces", ""}) {
    const std::vector<Result> others = train_on_ranks(spec, GetParam(), 1e8, {without});
    for (const Result& rank : others) {
      EXPECT_EQ(rank.losses, ranks[0].losses) << without;
      EXPECT_EQ(rank.state, ranks[0].state) << without;
    }
  }
}

TEST_P(DataParallel, RowsThatAreGatheredGiveTheSameGradients) {
  constexpr double kSlowLink = 1e7, kFastLink = 1e12;
  spec::RunSpec spec = network_spec("lenet5");
  const Result one = train_on(spec, nullptr);
  EXPECT_EQ(train_on_ranks(spec, GetParam(), kFastLink)[0].gathers, 0);
  const std::vector<Result> ranks = train_on_ranks(spec, GetParam(), kSlowLink);
  EXPECT_GE(ranks[0].gathers, 4) << "two layers are large enough";
  for (const Result& rank : ranks) {
    expect_close(one, rank, 2e-4);
    EXPECT_EQ(rank.state, ranks[0].state);
  }
  spec.late_multiply = false;
  EXPECT_EQ(train_on_ranks(spec, GetParam(), kSlowLink)[0].gathers, 0);
}

TEST_P(DataParallel, RowsOfSeveralBatchesThatAreGatheredGiveTheSameGradients) {
  spec::RunSpec spec = network_spec("lenet5");
  spec.accumulate = 2;
  const Result one = train_on(spec, nullptr);
  const std::vector<Result> ranks = train_on_ranks(spec, GetParam(), 1e7);
  EXPECT_GE(ranks[0].gathers, 2);
  for (const Result& rank : ranks) {
    expect_close(one, rank, 2e-4);
    EXPECT_EQ(rank.state, ranks[0].state);
  }
}

/// Whose sums are of different numbers of batches, exchange gradients alone.
TEST(BatchesPerExchange, AreNoneWhereRanksAddThoseOfDifferentNumbers) {
  spec::RunSpec spec = network_spec("lenet5");
  EXPECT_EQ(batches_per_exchange(spec), 1);
  spec.batch_schedule = {.boundaries = {1}, .batches = {}, .accumulate = {2, 4}};
  spec.epochs = 2;
  EXPECT_EQ(batches_per_exchange(spec), 4) << "the most";
  spec.balance.grains = 4;
  EXPECT_EQ(batches_per_exchange(spec), 0);
}

TEST_P(DataParallel, TheNormOfAllGradientsIsThatOfTheirMeans) {
  spec::RunSpec spec = network_spec("lenet5");
  spec.clip.norm = 0.1;
  const Result one = train_on(spec, nullptr);
  for (const Result& rank : train_on_ranks(spec, GetParam())) expect_close(one, rank, 2e-4);
}

INSTANTIATE_TEST_SUITE_P(Hosts, DataParallel,
                         testing::Values(std::vector<std::string>{"a", "a"}, std::vector<std::string>{"a", "b"},
                                         std::vector<std::string>{"a", "a", "b", "b"}));

TEST(AverageStatistics, RunningAveragesTakeWhatIsTheSameOnAllRanks) {
  const Library library = standard_library();
  const spec::RunSpec spec = network_spec("resnet9");
  const models::ModelInput input{.batch = 8, .shape = {1, kSize, kSize}, .classes = 3};
  const TrainingStep step = build_training_step(library, spec, input, {.ranks = 2});
  int averages = 0;
  for (const Node& node : step.graph.nodes()) {
    if (node.op->name != "running_average") continue;
    ++averages;
    EXPECT_EQ(step.graph.producer(node.inputs[1])->op->name, "all_reduce");
  }
  EXPECT_GT(averages, 0);
}

}  // namespace
}  // namespace weft::step
