#include "weft/predict/planned_run.h"

#include <algorithm>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/memory.h"
#include "weft/machines/roofline.h"
#include "weft/predict/cluster_times.h"
#include "weft/predict/described_device.h"
#include "weft/predict/loading.h"
#include "weft/program/arena_limit.h"
#include "weft/spec/course.h"

namespace weft::predict {

namespace {

constexpr double kFileSpread = 0.2;             // of what a device file says of a step
constexpr double kSharedLatencySeconds = 2e-5;  // of ranks on one host (program/rank_runtime.cpp)

/// Everything that planning on a place needs, made once.
class Planning {
 public:
  Planning(const Library& library, const PlannedModel& model, const Strategy& strategy, const Place& place)
      : library_(library), model_(model), strategy_(strategy), cluster_(place.cluster), spec_(model.spec) {
    apply(strategy, spec_);
    spec_.mesh.data = 0;
    if (cluster_ != nullptr && cluster_->device) {
      library_.device = described_device(*cluster_->device, library.device);
      costs_.costs = machines::roofline_costs(*cluster_->device);
      sources_.nodes = modelled_times(costs_.costs, 1, kFileSpread);
      sources_.device = cluster_->device->name;
    } else {
      sources_.nodes = place.times_here(strategy.threads);
      sources_.device = library.device.describe_machine(static_cast<int>(strategy.threads));
    }
    sources_.cores = cluster_ != nullptr && cluster_->cores_per_host > 0 ? cluster_->cores_per_host : available_cores();
    sources_.sample_seconds = model.sample_seconds;
    sources_.exchange = cluster_ != nullptr
                            ? exchange_on(*cluster_, strategy)
                            : exchange_by({.count = static_cast<int>(strategy.ranks),
                                           .latency_seconds = kSharedLatencySeconds,
                                           .bytes_per_second = comm::ClusterCosts{}.shared_bytes_per_second},
                                          static_cast<int>(strategy.ranks));
  }

  const Sources& sources() const { return sources_; }

  /// Of one shape of a step of all ranks. `forward`: without gradients.
  std::unique_ptr<program::PlannedStep> plan(const spec::Stage& stage, bool forward = false) {
    spec::RunSpec spec = spec_;
    spec::StepShape own = stage.shape();
    own.batch = part_of_batch(stage.batch);
    spec.batch = own.batch;
    spec.accumulate = stage.accumulate;
    if (forward) spec.memory_limit.clear();
    program::StepChoice choice{.spec = spec,
                               .input = model_.input(own),
                               .batches = forward ? 1 : stage.accumulate,
                               .forward = forward,
                               .limit = [spec](program::StepCache& steps, int64_t other) {
                                 program::keep_to_memory_limit(steps, spec, other);
                               }};
    choice.input.batch = own.batch;
    // Cut graphs are those of ranks, of whom one is planned.
    const program::RankRuntime runtime = strategy_.ranks > 1 && !forward
                                             ? program::RankRuntime(ranks_of(sources_.exchange))
                                             : program::RankRuntime(nullptr, static_cast<int>(spec.threads));
    runtimes_.push_back(std::make_unique<program::RankRuntime>(runtime));
    return std::make_unique<program::PlannedStep>(library_, choice, *runtimes_.back(), costs_, Tuning{},
                                                  program::Note{});
  }

  /// Error(usage) where a rank has less.
  void require_memory(const MemoryPrediction& memory, const spec::Stage& stage) {
    const double has = memory_of_rank();
    if (has <= 0 || static_cast<double>(memory.total()) <= has) return;
    const std::string least = least_of(stage, memory);
    fail(ErrorKind::usage, "'{}' as {} needs {} of memory per rank, and one has {}: {}", model_.spec.model.name,
         describe(strategy_), human_bytes(static_cast<double>(memory.total())), human_bytes(has), least);
  }

  int64_t part_of_batch(int64_t batch) const {
    if (batch % strategy_.ranks != 0 || batch < strategy_.ranks)
      fail(ErrorKind::usage,
           "{} ranks cannot share a batch of {} alike; choose a multiple of them with --batch, or other --ranks",
           strategy_.ranks, batch);
    return batch / strategy_.ranks;
  }

  double memory_of_rank() const {
    const auto on_host = static_cast<double>(std::min(strategy_.ranks, strategy_.ranks_per_host));
    if (cluster_ == nullptr) return static_cast<double>(memory_limit_bytes()) / on_host;
    if (cluster_->device) return cluster_->device->memory_bytes;
    return cluster_->host_memory_bytes > 0 ? cluster_->host_memory_bytes / on_host
                                           : static_cast<double>(memory_limit_bytes()) / on_host;
  }

 private:
  /// What a search for as little as possible finds.
  std::string least_of(const spec::Stage& stage, const MemoryPrediction& memory) {
    if (!spec_.memory_limit.empty()) return "choose a smaller --batch";
    // A limit below what never changes would fail before anything is searched.
    spec_.memory_limit = fmt::format("{}B", memory.states + memory.buffers + 1);
    try {
      const std::unique_ptr<program::PlannedStep> step = plan(stage);
      const std::string total = human_bytes(static_cast<double>(step->total_bytes()));
      spec_.memory_limit.clear();
      return fmt::format("with --memory-limit {} it fits", total);
    } catch (const Error& error) {
      spec_.memory_limit.clear();
      const std::string text = error.what();
      const size_t begin = text.find("needs at least ");
      if (begin == text.npos) return "states alone take more; share them with --set shard.zero=3 on more ranks";
      const std::string least = text.substr(begin + 15, text.find(',', begin) - begin - 15);
      const std::string with_less = fmt::format("the least is {}, with activations computed twice", least);
      if (static_cast<double>(parse_bytes(least).value_or(INT64_MAX)) > memory_of_rank())
        return with_less + "; share states with --set shard.zero=3 on more ranks, or choose a smaller --batch";
      std::string limit = human_bytes(memory_of_rank());
      std::erase(limit, ' ');
      return fmt::format("{}: give --memory-limit {}", with_less, limit);
    }
  }

  Library library_;  // with the place's device
  const PlannedModel& model_;
  const Strategy strategy_;
  const machines::ClusterFile* const cluster_;
  spec::RunSpec spec_;
  program::CostProfile costs_;
  Sources sources_;
  std::vector<std::unique_ptr<program::RankRuntime>> runtimes_;  // to which steps refer
};

/// Parts of the step that a device computes take longer as it throttles.
void throttle(Prediction& prediction, const machines::DeviceFile& device) {
  const double run = prediction.run_seconds().expected;
  if (device.throttling.empty() || run <= 0) return;
  const double factor = throttled_seconds(device, run) / run;
  for (StagePrediction& stage : prediction.stages)
    for (const Part part : {Part::forward, Part::backward, Part::update})
      stage.time.seconds[static_cast<size_t>(part)] *= factor;
  prediction.evaluation_seconds = prediction.evaluation_seconds.times(factor);
}

}  // namespace

Strategy strategy_on(const spec::RunSpec& spec, const Place& place, std::optional<int64_t> ranks) {
  Strategy strategy = strategy_of(spec, 1, 1);
  if (place.cluster == nullptr) {
    strategy.ranks = strategy.ranks_per_host = ranks.value_or(1);
    strategy.threads = std::max<int64_t>(1, std::min(spec.threads, available_cores() / strategy.ranks));
    return strategy;
  }
  const machines::ClusterFile& cluster = *place.cluster;
  strategy.ranks = ranks.value_or(cluster.ranks());
  strategy.ranks_per_host = cluster.devices_per_host;
  if (strategy.ranks > cluster.ranks())
    fail(ErrorKind::usage, "--ranks {}: '{}' has {} devices; give fewer, or raise `hosts` in its file", strategy.ranks,
         cluster.name, cluster.ranks());
  if (cluster.device)
    strategy.threads = 1;
  else if (cluster.cores_per_host > 0)
    strategy.threads = std::max<int64_t>(1, cluster.cores_per_host / cluster.devices_per_host);
  return strategy;
}

Prediction predict_on(const Library& library, const PlannedModel& model, const Strategy& strategy, const Place& place) {
  Planning planning(library, model, strategy, place);
  const Sources& sources = planning.sources();
  Prediction prediction{.model = model.spec.model.name,
                        .data = model.spec.data,
                        .device = sources.device,
                        .strategy = strategy,
                        .times_from = sources.nodes.describe,
                        .exchange_from = sources.exchange.describe,
                        .stages = {},
                        .memory = {},
                        .traffic = {},
                        .item = model.item,
                        .items_per_sample = model.items_per_sample,
                        .epochs = model.spec.epochs,
                        .evaluation_seconds = {}};
  spec::RunSpec of_course = model.spec;
  of_course.accumulate = strategy.accumulate;
  of_course.batch = strategy.batch;
  const std::vector<spec::Stage> stages = spec::stages_of(of_course);
  std::optional<spec::Course> course;
  if (model.samples > 0) course.emplace(of_course, model.samples);
  const int64_t steps = course ? course->total_steps() : 0;
  for (size_t at = 0; at < stages.size(); ++at) {
    const auto first_of = [&](size_t stage) {
      return course && stage < stages.size() ? static_cast<int64_t>(course->step_at(stages[stage].begin())) : steps;
    };
    const int64_t first = at == 0 ? 0 : first_of(at), end = std::min(steps, first_of(at + 1));
    if (course && end <= first) continue;
    const std::unique_ptr<program::PlannedStep> step = planning.plan(stages[at]);
    const StepGraphs graphs = graphs_of(*step);
    StagePrediction stage{.first_step = first,
                          .steps = end - first,
                          .batch = stages[at].batch,
                          .accumulate = stages[at].accumulate,
                          .image_height = stages[at].image_height,
                          .time = predict_step(graphs, sources.nodes, sources.exchange)};
    if (sources.sample_seconds > 0)
      stage.loading_seconds = loading_seconds(
          static_cast<double>(stage.samples()) / static_cast<double>(strategy.ranks) * sources.sample_seconds,
          stage.time.whole(),
          {.cores = sources.cores,
           .threads = place.cluster != nullptr && place.cluster->device ? 0 : strategy.threads,
           .ranks = std::min(strategy.ranks, strategy.ranks_per_host)});
    prediction.stages.push_back(std::move(stage));
    const MemoryPrediction memory = predict_memory(graphs, step->state_bytes(), 0);
    planning.require_memory(memory, stages[at]);
    if (memory.total() > prediction.memory.total()) prediction.memory = memory;
  }
  if (model.evaluated_samples > 0) {
    const int64_t batch =
        std::max<int64_t>(strategy.ranks, model.spec.evaluation.batch / strategy.ranks * strategy.ranks);
    const std::unique_ptr<program::PlannedStep> forward = planning.plan({.batch = batch}, /*forward=*/true);
    const double seconds = predict_step({.batch = &forward->compiled()}, sources.nodes, {}).whole();
    prediction.evaluation_seconds = interval_of(seconds * model.evaluated_samples / static_cast<double>(batch),
                                                std::max(0.1, sources.nodes.common_spread));
  }
  prediction.traffic = traffic_of(prediction.longest().time.exchanged, strategy);
  if (place.cluster != nullptr) {
    if (place.cluster->device) throttle(prediction, *place.cluster->device);
    add_energy_and_cost(prediction, *place.cluster);
  }
  return prediction;
}

}  // namespace weft::predict
