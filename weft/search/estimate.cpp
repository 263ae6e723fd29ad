#include "weft/search/estimate.h"

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/passes/ranks/overlap_all_reduces.h"
#include "weft/passes/ranks/overlap_collectives.h"
#include "weft/passes/ranks/pipeline_stages.h"
#include "weft/predict/cluster_times.h"
#include "weft/step/sharded_states.h"

namespace weft::search {

using predict::Strategy;

struct Estimator::Question {
  const Strategy& strategy;
  const StagedCosts& costs;
  const predict::ExchangeTimes& exchange;
  std::shared_ptr<const passes::PipelineSchedule> schedule = {};  // null: no pipeline
  size_t ranks = 1;                                               // of the pipeline
  passes::PipelineTimes times = {};                               // of the stages, with what is computed twice
  std::vector<double> lost = {}, least_lost = {};                 // per stage: seconds of the latter, and at least
  std::vector<int> in_flight = {};  // per rank: micro-batches of a chunk, over all its chunks

  int chunks() const { return static_cast<int>(costs.stages.size() / ranks); }
  /// Without a pipeline the one there is.
  std::vector<size_t> stages_of(size_t rank) const {
    std::vector<size_t> stages;
    for (int chunk = 0; chunk < chunks(); ++chunk)
      stages.push_back(
          schedule == nullptr ? 0 : static_cast<size_t>(schedule->placement.stage_of(static_cast<int>(rank), chunk)));
    return stages;
  }
  double batches() const { return static_cast<double>(strategy.accumulate); }
  double data() const { return static_cast<double>(strategy.data()); }
};

namespace {

int stages_of(const Strategy& strategy) {
  return static_cast<int>(strategy.pipeline * passes::chunks_of(strategy.schedule, static_cast<int>(strategy.chunks)));
}

double part(double whole, int64_t zero, int64_t from_level, double ranks) {
  return zero >= from_level ? whole / ranks : whole;
}

/// Of a stage's states, as long as their gradients are large. Divided experts are a part already.
double update_seconds(const StageCost& stage, int64_t zero, double ranks) {
  const double experts = stage.gradient_bytes > 0 ? stage.expert_gradient_bytes / stage.gradient_bytes : 0;
  return stage.update_seconds * experts + part(stage.update_seconds * (1 - experts), zero, 1, ranks);
}

}  // namespace

const predict::ExchangeTimes& Estimator::exchange_of(const Strategy& strategy) {
  const std::pair mesh(strategy.tensor, strategy.pipeline);
  auto known = exchanges_.find(mesh);
  if (known == exchanges_.end()) known = exchanges_.emplace(mesh, predict::exchange_at(place_, strategy, nodes_)).first;
  return known->second;
}

double Estimator::exchange_seconds(const StageCost& stage, Work work, const Question& of) const {
  double seconds = 0;
  for (const auto& [exchange, count] : stage.exchanges)
    if (exchange.work == work)
      seconds += static_cast<double>(count) * of.exchange.seconds(exchange.axis, exchange.op, exchange.bytes);
  return seconds;
}

/// Of the stages, before anything is computed twice. Exchanges between ranks that share layers are wanted at once.
void Estimator::add_times(Question& of) const {
  double sent = 0;
  for (const StageCost& stage : of.costs.stages) {
    const auto seconds = [&](Work work) {
      return stage.seconds[static_cast<size_t>(work)] + exchange_seconds(stage, work, of);
    };
    of.times.forward.push_back(seconds(Work::forward));
    of.times.backward_inputs.push_back(seconds(Work::backward_inputs));
    of.times.backward_weights.push_back(seconds(Work::backward_weights));
    sent = std::max(sent, stage.sent_bytes);
  }
  if (of.ranks > 1) of.times.link = of.exchange.seconds(kPipelineAxis, kSend, static_cast<int64_t>(sent));
  of.lost.assign(of.costs.stages.size(), 0);
  of.least_lost = of.lost;
}

/// Of all micro-batches of a step, from the first forward to the last backward.
double Estimator::schedule_seconds(const Question& of, bool at_least) const {
  passes::PipelineTimes times = of.times;
  for (size_t stage = 0; stage < of.lost.size(); ++stage)
    times.backward_inputs[stage] += at_least ? of.least_lost[stage] : of.lost[stage];
  if (of.schedule == nullptr)
    return of.batches() * (times.forward[0] + times.backward_inputs[0] + times.backward_weights[0]);
  return passes::simulate(*of.schedule, times).seconds;
}

/// That a rank keeps between steps, with sums of gradients over several batches.
double Estimator::states_of(const Question& of, size_t rank) const {
  const int64_t zero = of.strategy.zero;
  const bool sums = of.strategy.accumulate > 1 || of.ranks > 1;
  double bytes = 0;
  for (const size_t at : of.stages_of(rank)) {
    const StageCost& stage = of.costs.stages[at];
    bytes += stage.expert_weight_bytes + part(stage.weight_bytes - stage.expert_weight_bytes, zero, 3, of.data());
    bytes += stage.expert_slot_bytes + part(stage.slot_bytes - stage.expert_slot_bytes, zero, 1, of.data());
    if (sums)
      bytes +=
          stage.expert_gradient_bytes + part(stage.gradient_bytes - stage.expert_gradient_bytes, zero, 2, of.data());
  }
  return bytes;
}

/// Of weights that evaluations put together where layers are divided (step::gathered_bytes).
double Estimator::evaluation_of(const Question& of) const {
  const bool divides_layers = of.strategy.tensor > 1 || of.strategy.pipeline > 1;
  const double bytes = of.costs.all_weight_bytes;
  return divides_layers && !step::gathers_divided_layers(model_.spec, bytes, memory_bytes_) ? bytes : 0;
}

/// Of loaders, of gradients and weights on their way.
double Estimator::beside_of(const Question& of) const {
  const Strategy& s = of.strategy;
  double bytes = 0;
  if (model_.loading_bytes) bytes += static_cast<double>(model_.loading_bytes(s.data()));
  if (s.data() > 1) bytes += (s.zero >= 3 ? 2 : 1) * of.costs.largest_gradients_bytes;
  return bytes + of.costs.working_bytes;
}

/// Each rank loses as little time as its memory lets it.
void Estimator::choose_memory(Question& of, Estimate& estimate) const {
  for (size_t rank = 0; rank < of.ranks; ++rank) {
    const double fixed = states_of(of, rank) + beside_of(of) + evaluation_of(of);
    std::vector<BlockClass> blocks;
    for (const size_t at : of.stages_of(rank))
      blocks.insert(blocks.end(), of.costs.stages[at].blocks.begin(), of.costs.stages[at].blocks.end());
    const double in_flight =
        of.schedule == nullptr ? 1 : static_cast<double>(of.in_flight[rank]) / static_cast<double>(of.chunks());
    const MemoryChoice choice = choose_kept(blocks, memory_bytes_ - fixed, in_flight);
    estimate.fits = estimate.fits && choice.fits;
    estimate.memory_bytes = std::max(estimate.memory_bytes, fixed + choice.bytes);
    estimate.least_bytes = std::max(estimate.least_bytes, fixed + choice.least_bytes);
    estimate.recomputed += choice.recomputed;
    estimate.in_file += choice.in_file;
    estimate.points += choice.points;
    for (const size_t at : of.stages_of(rank)) {
      of.lost[at] = choice.seconds / of.chunks();
      of.least_lost[at] = choice.bound_seconds / of.chunks();
    }
  }
}

/// Of exchanges along the axis data, as far as nothing is computed while they travel.
double Estimator::gradient_seconds(const Question& of) const {
  const Strategy& s = of.strategy;
  if (s.data() <= 1) return 0;
  const auto reduced = [&](double bytes) {
    const auto count = static_cast<int64_t>(bytes);
    if (s.zero == 0) return of.exchange.of(kAllReduce, count);
    return of.exchange.of(kReduceScatter, count) + of.exchange.of(kAllGather, count / s.data());
  };
  const passes::Ranks weighed_by = predict::ranks_of(of.exchange);
  double longest = 0;
  for (size_t rank = 0; rank < of.ranks; ++rank) {
    double bytes = 0, rows = 0, late = 0;
    for (const size_t at : of.stages_of(rank))
      bytes += of.costs.stages[at].gradient_bytes - of.costs.stages[at].expert_gradient_bytes;
    // Late multiply: rows of a layer travel in place of its gradient where that takes less time.
    const bool may_be_late = s.late_multiply && s.zero == 0 && s.tensor == 1 && s.pipeline == 1;
    if (may_be_late)
      for (const RowsLayer& layer : of.costs.stages[0].rows_layers) {
        const auto with = [&](const auto& gather) {
          return of.batches() *
                 (gather(layer.rows_bytes[0]) + gather(layer.rows_bytes[1]) + (of.data() - 1) * layer.product_seconds);
        };
        // The pass decides by what it weighs exchanges by (passes/ranks/late_multiply.cpp).
        const double weighed =
            with([&](int64_t part) { return passes::predicted_gather_seconds(weighed_by, part * weighed_by.count); });
        if (weighed >= passes::predicted_seconds(weighed_by, layer.weight_bytes)) continue;
        rows += with([&](int64_t part) { return of.exchange.of(kAllGather, part); });
        late += static_cast<double>(layer.weight_bytes);
      }
    double seconds = rows + reduced(std::max(0.0, bytes - late));
    // Weights are gathered before each batch's forward and backward part; level 2 and 3 exchange with each batch, or
    // micro-batch.
    if (s.zero >= 3) seconds += of.batches() * of.exchange.of(kAllGather, static_cast<int64_t>(bytes) / s.data());
    const double terms = s.pipeline > 1 ? static_cast<double>(s.micro_batches) : of.batches();
    if (s.zero >= 2) seconds += (terms - 1) * of.exchange.of(kReduceScatter, static_cast<int64_t>(bytes));
    longest = std::max(longest, seconds);
  }
  if (!of.exchange.hides || of.ranks > 1) return longest;
  // Of the last batch; where states are whole an update may be left to the next step's forward part.
  const double window = of.times.backward_inputs[0] + of.times.backward_weights[0] + of.times.forward[0];
  return std::max(0.0, longest - window);
}

/// Those that do not depend on times are made once.
std::shared_ptr<const passes::PipelineSchedule> Estimator::schedule_of(const Question& of) {
  const Strategy& strategy = of.strategy;
  const auto make = [&] {
    return std::make_shared<const passes::PipelineSchedule>(
        passes::make_pipeline_schedule(strategy.schedule, static_cast<int>(strategy.pipeline),
                                       static_cast<int>(strategy.micro_batches), of.chunks(), of.times));
  };
  if (passes::is_made_by_times(strategy.schedule, static_cast<int>(strategy.pipeline),
                               static_cast<int>(strategy.micro_batches)))
    return make();
  auto& known = schedules_[std::tuple(strategy.schedule, strategy.pipeline, strategy.micro_batches, of.chunks())];
  if (known == nullptr) known = make();
  return known;
}

Estimate Estimator::estimate(const Strategy& strategy) {
  Question of{.strategy = strategy,
              .costs = profile_.costs(strategy.rows(), strategy.tensor, stages_of(strategy), strategy.data()),
              .exchange = exchange_of(strategy),
              .ranks = static_cast<size_t>(strategy.pipeline)};
  add_times(of);
  if (strategy.pipeline > 1) {
    of.schedule = schedule_of(of);
    const std::vector<int> idle = passes::idle_ranks(of.costs.has_work, of.schedule->placement);
    if (!idle.empty()) fail(ErrorKind::usage, "mesh.pipeline = {}: {}", strategy.pipeline, passes::describe_idle(idle));
    of.in_flight = passes::simulate(*of.schedule, of.times).most_waiting;
  }
  Estimate estimate;
  choose_memory(of, estimate);
  estimate.exchange = gradient_seconds(of);
  double busy = 0;
  for (size_t rank = 0; rank < of.ranks; ++rank) {
    double own = 0, update = 0;
    for (const size_t at : of.stages_of(rank)) {
      own += of.times.forward[at] + of.times.backward_inputs[at] + of.times.backward_weights[at] + of.lost[at];
      update += update_seconds(of.costs.stages[at], strategy.zero, of.data());
    }
    busy = std::max(busy, own);
    estimate.update = std::max(estimate.update, update);
  }
  const double all = schedule_seconds(of, /*at_least=*/false);
  estimate.computing = busy * (of.schedule == nullptr ? of.batches() : static_cast<double>(strategy.micro_batches));
  estimate.waiting = std::max(0.0, all - estimate.computing);
  estimate.seconds = all + estimate.exchange + estimate.update;
  estimate.bound_seconds = schedule_seconds(of, /*at_least=*/true) + estimate.exchange + estimate.update;
  return estimate;
}

double Estimator::bound(const Strategy& strategy) {
  const StagedCosts& whole = profile_.costs(strategy.rows(), strategy.tensor, 1, strategy.data());
  const StageCost& stage = whole.stages[0];
  double seconds = std::accumulate(std::begin(stage.seconds), std::end(stage.seconds), 0.0);
  for (const auto& [one, count] : stage.exchanges)
    seconds += static_cast<double>(count) * exchange_of(strategy).seconds(one.axis, one.op, one.bytes);
  const auto pipeline = static_cast<double>(strategy.pipeline);
  const double batches =
      strategy.pipeline > 1 ? static_cast<double>(strategy.micro_batches) : static_cast<double>(strategy.accumulate);
  return (batches * seconds + update_seconds(stage, strategy.zero, static_cast<double>(strategy.data()))) / pipeline;
}

}  // namespace weft::search
