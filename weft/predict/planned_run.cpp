#include "weft/predict/planned_run.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/memory.h"
#include "weft/machines/roofline.h"
#include "weft/predict/cluster_times.h"
#include "weft/predict/described_device.h"
#include "weft/program/arena_limit.h"
#include "weft/program/rank_runtime.h"
#include "weft/simulate/data_parallel.h"
#include "weft/spec/course.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/virtual_ranks.h"

namespace weft::predict {

namespace {

constexpr double kFileSpread = 0.2;     // of what a device file says of a step
constexpr uint64_t kStragglerSeed = 0;  // as `weft simulate` draws them without --seed

/// Everything that planning on a place needs, made once.
class Planning {
 public:
  Planning(const Library& library, const PlannedModel& model, const Strategy& strategy, const Place& place)
      : library_(library),
        model_(model),
        strategy_(strategy),
        cluster_(place.cluster),
        seeks_least_memory_(place.seeks_least_memory),
        spec_(recipe_by(strategy, model.spec, library)) {
    PlaceTimes times = times_at(place, strategy);
    costs_.costs = std::move(times.costs);
    sources_.nodes = std::move(times.nodes);
    if (cluster_ != nullptr && cluster_->device) {
      library_.device = described_device(*cluster_->device, library.device);
      sources_.device = cluster_->device->name;
    } else {
      sources_.device = library.device.describe_machine(static_cast<int>(strategy.threads));
    }
    sources_.cores = host_cores_of(place, strategy).cores;
    sources_.sample_seconds = model.sample_seconds;
    sources_.exchange = exchange_at(place, strategy, sources_.nodes);
    memory_ = memory_of_rank(place, strategy);
  }

  const Sources& sources() const { return sources_; }

  /// Of ranks that have different layers the first that has them each; else one for all.
  std::vector<int> different_ranks() const {
    std::vector<int> ranks;
    const Mesh mesh = step::mesh_of(spec_, static_cast<int>(strategy_.ranks));
    for (int rank = 0; rank < static_cast<int>(strategy_.ranks); ++rank)
      if (mesh.coordinate(rank, kPipelineAxis) == static_cast<int64_t>(ranks.size())) ranks.push_back(rank);
    return ranks;
  }

  int64_t loading_bytes() const { return model_.loading_bytes ? model_.loading_bytes(strategy_.data()) : 0; }

  /// Of one shape of a step of all ranks, on one of them.
  std::unique_ptr<program::PlannedStep> plan(const spec::Stage& stage, int rank,
                                             std::optional<LeastMemory> least = std::nullopt) {
    spec::RunSpec spec = spec_;
    spec::StepShape own = stage.shape();
    own.batch = part_of_batch(stage.batch);
    const auto sharers = static_cast<int>(strategy_.data());
    const int64_t shards = step::shards_of_rank(spec, sharers);
    if (shards > 1) own.batch = step::samples_at_a_time(spec, stage.batch, sharers);
    spec.batch = own.batch;
    spec.accumulate = stage.accumulate;
    program::StepChoice choice{.spec = spec,
                               .input = model_.input(own),
                               .batches = stage.accumulate * std::max<int64_t>(1, shards),
                               .evaluation_memory = static_cast<int64_t>(memory_),
                               .limit = [spec, beside = loading_bytes(), least, seeks = seeks_least_memory_](
                                            program::StepCache& steps, int64_t other) {
                                 const spec::StepShape shape(spec.batch);
                                 if (!least)
                                   program::keep_to_memory_limit(steps, spec, other + beside, shape, seeks);
                                 else if (*least == LeastMemory::of_one_search)
                                   steps.limit_arena(1);
                                 else
                                   program::keep_to_least_arena(steps, shape);
                               }};
    choice.input.batch = own.batch;
    // Cut graphs are those of ranks, of whom one is planned.
    return planned(
        choice, strategy_.ranks > 1 ? runtime_of(rank) : program::RankRuntime(nullptr, static_cast<int>(spec.threads)));
  }

  /// Of a part of a batch that is evaluated: all ranks divide it. On the rank that trains by `step`.
  std::unique_ptr<program::PlannedStep> plan_evaluation(int64_t rows, const program::PlannedStep& step) {
    spec::RunSpec spec = spec_;
    spec.batch = rows;
    spec.memory_limit.clear();
    spec.mesh = {};
    spec.shard = {};
    program::StepChoice choice{
        .spec = spec, .input = model_.input(spec::StepShape(rows)), .forward = true, .trained_by = &step};
    choice.input.batch = rows;
    // As in a run (program/prepared_run.h), gathering along the axis data alone overlaps with layers.
    const bool overlaps = step.gathers_in_evaluation() && step.gathers_along_data();
    return planned(choice, overlaps ? program::RankRuntime(ranks_of(sources_.exchange))
                                    : program::RankRuntime(nullptr, static_cast<int>(spec.threads)));
  }

  /// What a search for as little as possible finds.
  int64_t least(const spec::Stage& stage, LeastMemory how) {
    int64_t most = 0;
    for (const int rank : different_ranks()) {
      const std::unique_ptr<program::PlannedStep> step = plan(stage, rank, how);
      // With a memory limit, evaluations gather by layer unless the recipe says otherwise.
      const int64_t gathered = spec_.evaluation.weights == "once" ? step->gathered_bytes() : 0;
      const int64_t beside = gathered + loading_bytes() + step->message_buffer_bytes();
      most = std::max(most, predict_memory(graphs_of(*step), step->state_bytes(), beside).total());
    }
    return most;
  }

  MemoryPrediction memory_of(program::PlannedStep& step) const {
    return predict_memory(graphs_of(step), step.state_bytes(),
                          step.gathered_bytes() + loading_bytes() + step.message_buffer_bytes());
  }

  /// Error(usage) where a rank has less.
  void require_memory(const MemoryPrediction& memory, const spec::Stage& stage) {
    const double has = memory_;
    if (has <= 0 || static_cast<double>(memory.total()) <= has) return;
    const std::string least = least_of(stage, memory);
    fail(ErrorKind::usage, "'{}' as {} needs {} of memory per rank, and one has {}: {}", model_.spec.model.name,
         describe(strategy_), human_bytes(static_cast<double>(memory.total())), human_bytes(has), least);
  }

  int64_t part_of_batch(int64_t batch) const {
    const int64_t ranks = strategy_.data();
    if (batch % ranks != 0 || batch < ranks)
      fail(ErrorKind::usage,
           "{} ranks cannot share a batch of {} alike; choose a multiple of them with --batch, or other --ranks", ranks,
           batch);
    return batch / ranks;
  }

 private:
  /// Accelerators exchange by libraries of their own, whose buffers are not known here.
  program::RankRuntime runtime_of(int rank) const {
    const Mesh mesh = step::mesh_of(spec_, static_cast<int>(strategy_.ranks));
    program::RankRuntime runtime(ranks_of(sources_.exchange), mesh, rank);
    if (cluster_ == nullptr || cluster_->device) return runtime;
    comm::ClusterCosts costs;
    costs.between_hosts = cluster_->between_hosts;
    costs.in_host = cluster_->in_host;
    costs.summed_bytes_per_second = cluster_->summed_bytes_per_second;
    runtime.describe_hosts(mesh, static_cast<int>(strategy_.ranks_per_host), costs);
    return runtime;
  }

  std::unique_ptr<program::PlannedStep> planned(const program::StepChoice& choice,
                                                const program::RankRuntime& runtime) {
    runtimes_.push_back(std::make_unique<program::RankRuntime>(runtime));
    return std::make_unique<program::PlannedStep>(library_, choice, *runtimes_.back(), costs_, Tuning{},
                                                  program::Note{});
  }

  std::string least_of(const spec::Stage& stage, const MemoryPrediction& memory) {
    if (!spec_.memory_limit.empty()) return "choose a smaller --batch";
    const auto bytes = static_cast<double>(least(stage, LeastMemory::of_many_searches));
    std::string least = human_bytes(bytes);
    if (bytes > memory_) {
      if (static_cast<double>(memory.states) > memory_)
        return "states alone take more; share them with --set shard.zero=3 on more ranks";
      return fmt::format(
          "the least is {}, with activations computed twice; share states with --set shard.zero=3 on more ranks, or "
          "choose a smaller --batch",
          least);
    }
    std::string limit = human_bytes(memory_);
    std::erase(limit, ' ');
    return fmt::format("the least is {}, with activations computed twice: give --memory-limit {}", least, limit);
  }

  Library library_;  // with the place's device
  const PlannedModel& model_;
  const Strategy strategy_;
  const machines::ClusterFile* const cluster_;
  const bool seeks_least_memory_;
  spec::RunSpec spec_;
  program::CostProfile costs_;
  Sources sources_;
  double memory_ = 0;                                            // of a rank; 0: not known
  std::vector<std::unique_ptr<program::RankRuntime>> runtimes_;  // to which steps refer
};

/// Error(usage) where the samples are fewer than a step takes.
void require_steps(const spec::Stage& stage, int64_t samples) {
  if (samples >= stage.step_samples()) return;
  if (stage.accumulate > 1)
    fail(ErrorKind::usage,
         "accumulate = {} batches of {} are more than the {} samples; choose a smaller --batch, or lower accumulate",
         stage.accumulate, stage.batch, samples);
  fail(ErrorKind::usage, "a batch of {} is larger than the {} samples; choose a smaller --batch", stage.batch, samples);
}

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

PlaceTimes times_at(const Place& place, const Strategy& strategy) {
  PlaceTimes times;
  if (place.cluster == nullptr || !place.cluster->device) {
    times = {rated_costs(), place.times_here(host_cores_of(place, strategy))};
  } else {
    std::shared_ptr<const CostModel> costs = machines::roofline_costs(*place.cluster->device);
    NodeTimes nodes = modelled_times(costs, 1, kFileSpread);
    times = {std::move(costs), std::move(nodes)};
  }
  times.nodes = in_turns(std::move(times.nodes), host_cores_of(place, strategy));
  if (place.cluster == nullptr) return times;
  const double factor = simulate::slowest_factor(*place.cluster, static_cast<int>(strategy.ranks), kStragglerSeed);
  if (factor != 1) times.nodes = slowed(std::move(times.nodes), factor, "on the slowest rank");
  return times;
}

HostCores host_cores_of(const Place& place, const Strategy& strategy) {
  const machines::ClusterFile* const cluster = place.cluster;
  return {.cores = cluster != nullptr ? cluster->cores_per_host : place.cores,
          .threads = cluster != nullptr && cluster->device ? 0 : strategy.threads,
          .ranks = std::min(strategy.ranks, strategy.ranks_per_host)};
}

double memory_of_rank(const Place& place, const Strategy& strategy) {
  const auto on_host = static_cast<double>(std::min(strategy.ranks, strategy.ranks_per_host));
  if (place.cluster != nullptr && place.cluster->device) return place.cluster->device->memory_bytes;
  if (place.cluster != nullptr && place.cluster->host_memory_bytes > 0)
    return place.cluster->host_memory_bytes / on_host;
  return static_cast<double>(memory_limit_bytes()) / on_host;
}

ExchangeTimes exchange_at(const Place& place, const Strategy& strategy, const NodeTimes& nodes) {
  if (place.cluster != nullptr) return exchange_on(*place.cluster, strategy);
  const auto among = [&](int64_t ranks) {
    return exchange_by(program::ranks_in_memory(static_cast<int>(ranks), place.shared_bytes_per_second),
                       static_cast<int>(strategy.ranks));
  };
  ExchangeTimes exchange = among(strategy.data());
  exchange.along = [tensor = among(strategy.tensor), pair = among(2)](std::string_view axis, std::string_view op,
                                                                      int64_t bytes) {
    if (axis == kTensorAxis) return tensor.of(op, bytes);
    return op == kReceive ? 0.0 : pair.of(op, bytes);  // counted where it is sent
  };
  return exchange_in_memory(std::move(exchange), nodes.exchanges,
                            {.data = static_cast<int>(strategy.data()), .tensor = static_cast<int>(strategy.tensor)});
}

Strategy strategy_on(const spec::RunSpec& spec, const Place& place, std::optional<int64_t> ranks) {
  Strategy strategy = strategy_of(spec, 1, 1);
  if (place.cluster == nullptr) {
    strategy.ranks = strategy.ranks_per_host = ranks.value_or(1);
    strategy.threads = std::max<int64_t>(1, std::min(spec.threads, place.cores / strategy.ranks));
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
  std::vector<std::unique_ptr<program::PlannedStep>> evaluating;  // of each different rank one of its steps
  std::optional<spec::Course> course;
  if (model.samples > 0) {
    for (const spec::Stage& stage : stages) require_steps(stage, model.samples);
    course.emplace(of_course, model.samples);
  }
  const int64_t steps = course ? course->total_steps() : 0;
  for (size_t at = 0; at < stages.size(); ++at) {
    const auto first_of = [&](size_t stage) {
      return course && stage < stages.size() ? static_cast<int64_t>(course->step_at(stages[stage].begin())) : steps;
    };
    const int64_t first = at == 0 ? 0 : first_of(at), end = std::min(steps, first_of(at + 1));
    if (course && end <= first) continue;
    StagePrediction stage{.first_step = first,
                          .steps = end - first,
                          .batch = stages[at].batch,
                          .accumulate = stages[at].accumulate,
                          .image_height = stages[at].image_height};
    for (const int rank : planning.different_ranks()) {
      std::unique_ptr<program::PlannedStep> step = planning.plan(stages[at], rank);
      const StepGraphs graphs = graphs_of(*step);
      StepTime time = predict_step(graphs, sources.nodes, sources.exchange);
      if (time.whole() > stage.time.whole()) stage.time = std::move(time);
      const MemoryPrediction memory = planning.memory_of(*step);
      planning.require_memory(memory, stages[at]);
      if (memory.total() > prediction.memory.total()) prediction.memory = memory;
      if (prediction.stages.empty()) evaluating.push_back(std::move(step));
    }
    set_loading(stage, sources, strategy, host_cores_of(place, strategy));
    prediction.stages.push_back(std::move(stage));
  }
  const double evaluated = model.evaluated_samples ? model.evaluated_samples(steps) : 0;
  if (evaluated > 0) {
    const int64_t rows = std::max<int64_t>(1, model.spec.evaluation.batch / strategy.ranks);
    const int64_t batch = rows * strategy.ranks;
    double seconds = 0;
    for (const std::unique_ptr<program::PlannedStep>& step : evaluating) {
      const std::unique_ptr<program::PlannedStep> forward = planning.plan_evaluation(rows, *step);
      seconds =
          std::max(seconds, predict_step({.batch = &forward->compiled()}, sources.nodes, sources.exchange).whole());
      if (!step->gathers_in_evaluation()) break;  // the same on all ranks
    }
    prediction.evaluation_seconds =
        interval_of(seconds * evaluated / static_cast<double>(batch), std::max(0.1, sources.nodes.common_spread));
  }
  prediction.traffic = traffic_of(prediction.longest().time.exchanged, strategy);
  if (place.cluster != nullptr) {
    if (place.cluster->device) throttle(prediction, *place.cluster->device);
    add_energy_and_cost(prediction, *place.cluster);
  }
  return prediction;
}

MemoryPrediction memory_on(const Library& library, const PlannedModel& model, const Strategy& strategy,
                           const Place& place) {
  Planning planning(library, model, strategy, place);
  spec::RunSpec of_course = model.spec;
  of_course.accumulate = strategy.accumulate;
  of_course.batch = strategy.batch;
  MemoryPrediction fullest;
  for (const spec::Stage& stage : spec::stages_of(of_course))
    for (const int rank : planning.different_ranks()) {
      const MemoryPrediction memory = planning.memory_of(*planning.plan(stage, rank));
      if (memory.total() > fullest.total()) fullest = memory;
    }
  return fullest;
}

int64_t least_memory(const Library& library, const PlannedModel& model, const Strategy& strategy, const Place& place,
                     LeastMemory how) {
  Planning planning(library, model, strategy, place);
  spec::RunSpec of_course = model.spec;
  of_course.accumulate = strategy.accumulate;
  of_course.batch = strategy.batch;
  int64_t most = 0;
  for (const spec::Stage& stage : spec::stages_of(of_course)) most = std::max(most, planning.least(stage, how));
  return most;
}

}  // namespace weft::predict
