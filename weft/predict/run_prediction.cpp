#include "weft/predict/run_prediction.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/device/machine_file.h"
#include "weft/device/op_times_file.h"
#include "weft/predict/loading.h"
#include "weft/program/forecast.h"
#include "weft/step/virtual_ranks.h"

namespace weft::predict {

namespace {

constexpr double kBeyondRates = 1.6;  // times what rates of large work say: docs/memory.md
constexpr double kUnmeasuredSpread = 0.6;

/// Of all samples that are evaluated, in batches of the step.
double forward_seconds(const CompiledStep& compiled, double batches, const Sources& sources) {
  return batches * predict_step({.batch = &compiled}, sources.nodes, sources.exchange).whole();
}

/// Of a batch of an evaluation, a part for which there is a plan. Where the batch has fewer samples than there are
/// ranks, some have one.
int64_t rows_of_rank(const program::PreparedRun& run, int64_t batch) {
  const program::BatchShare& share = run.evaluation_share;
  if (run.spec.virtual_ranks > 0)
    return std::max<int64_t>(1, step::rows_of_shards(batch, run.spec.virtual_ranks, share.share, share.shares).front());
  const auto [begin, end] = data::rows_of_share(batch, share.share, share.shares);
  return std::max<int64_t>(1, end - begin);
}

}  // namespace

OpTimes known_times(const DeviceKind& kind, const HostCores& host,
                    const std::function<void(const std::string&)>& note) {
  try {
    const std::string machine = kind.describe_machine(static_cast<int>(host.threads));
    OpTimes times = OpTimesFile(directory_of_machine_files(), machine).read(note);
    if (const int64_t at_once = host.at_once(); at_once > 1)
      times.add(OpTimesFile(directory_of_machine_files(), machine, at_once).read(note));
    return times;
  } catch (const Error&) {
    return {};  // there is no place for such files
  }
}

NodeTimes times_here(OpTimes times, const std::shared_ptr<const CostModel>& costs, int threads, bool exact) {
  if (times.rates()) return measured_times(std::make_shared<const OpTimes>(std::move(times)), exact);
  NodeTimes rated = modelled_times(costs, threads, kUnmeasuredSpread);
  const auto of = rated.of;
  rated.of = [of](const NodeSignature& node, const std::string& kernel) {
    OpEstimate estimate = of(node, kernel);
    estimate.seconds *= kBeyondRates;
    return estimate;
  };
  rated.describe += "; no op was measured here, `weft rates --ops` does it";
  return rated;
}

std::function<NodeTimes(const HostCores& host)> kept_times_here(const DeviceKind& kind,
                                                                const std::function<void(const std::string&)>& note,
                                                                bool exact) {
  return [&kind, note, exact](const HostCores& host) {
    return times_here(known_times(kind, host, note), rated_costs(), static_cast<int>(host.threads), exact);
  };
}

void set_loading(StagePrediction& stage, const Sources& sources, const Strategy& strategy, const HostCores& host) {
  if (sources.sample_seconds <= 0 || host.cores <= 0) return;
  const double samples = static_cast<double>(stage.samples()) / static_cast<double>(strategy.data());
  stage.loading_seconds = loading_seconds(samples * sources.sample_seconds, stage.time.whole(), host);
}

Prediction predict_run(program::PreparedRun& run, const Sources& given) {
  const int ranks = comm::number_of(run.ranks);
  const HostCores host{.cores = given.cores, .threads = run.spec.threads, .ranks = comm::ranks_of_host(run.ranks)};
  Sources sources = given;
  sources.nodes = in_turns(std::move(sources.nodes), host);
  Prediction prediction{.model = run.spec.model.name,
                        .data = run.run_data.description.info.name,
                        .device = sources.device,
                        .strategy = strategy_of(run.spec, ranks, comm::ranks_of_host(run.ranks)),
                        .times_from = sources.nodes.describe,
                        .exchange_from = sources.exchange.describe,
                        .stages = {},
                        .memory = {},
                        .traffic = {},
                        .item = std::string(run.run_data.description.info.item()),
                        .items_per_sample = run.run_data.description.info.items_per_sample(),
                        .epochs = run.spec.epochs,
                        .evaluation_seconds = {}};
  const auto graphs = [&](const spec::Stage& stage) {
    const auto phase = [&](program::Phase of) {
      return run.training.has(of) ? &run.training.compiled(stage.shape(), of) : nullptr;
    };
    return StepGraphs{.batch = &run.training.compiled(stage.shape()),
                      .update = phase(program::Phase::update),
                      .averaging = phase(program::Phase::averaging),
                      .weight_averaging = phase(program::Phase::weight_averaging),
                      .batches = stage.accumulate * step::shards_of_rank(run.spec, ranks),
                      .averaging_period = run.spec.averaging.period,
                      .states_every = run.spec.averaging.states_every,
                      .pipeline = run.step.pipeline ? &*run.step.pipeline : nullptr};
  };
  const std::vector<spec::Stage> stages = spec::stages_of(run.spec);
  const int64_t steps = run.course.total_steps();
  for (size_t at = 0; at < stages.size(); ++at) {
    const auto first = static_cast<int64_t>(run.course.step_at(stages[at].begin()));
    const int64_t end =
        at + 1 < stages.size() ? static_cast<int64_t>(run.course.step_at(stages[at + 1].begin())) : steps;
    if (std::min(end, steps) <= first) continue;
    StagePrediction stage{.first_step = first,
                          .steps = std::min(end, steps) - first,
                          .batch = stages[at].batch,
                          .accumulate = stages[at].accumulate,
                          .image_height = stages[at].image_height,
                          .time = predict_step(graphs(stages[at]), sources.nodes, sources.exchange)};
    set_loading(stage, sources, prediction.strategy, host);
    prediction.stages.push_back(std::move(stage));
  }
  // The fullest shape, with all that is planned beside it.
  const auto fullest = std::find_if(stages.begin(), stages.end(),
                                    [&, shape = run.largest()](const spec::Stage& of) { return of.shape() == shape; });
  if (fullest != stages.end()) {
    prediction.memory = predict_memory(graphs(*fullest), step::state_bytes(run.step), 0);
  }
  prediction.memory.buffers += run.planned_total_bytes - prediction.memory.total();
  double evaluated = 0;
  for (const data::Dataset* set : run.run_data.evaluated()) {
    const int64_t samples = set->size(), batch = std::min(samples, run.spec.evaluation.batch);
    const double batches = program::evaluations_of(run.spec, set == run.run_data.test.get(), steps) *
                           static_cast<double>(samples) / static_cast<double>(batch);
    evaluated += forward_seconds(run.evaluation.compiled(rows_of_rank(run, batch)), batches, sources);
  }
  prediction.evaluation_seconds = interval_of(evaluated, std::max(0.1, sources.nodes.common_spread));
  if (!prediction.stages.empty())
    prediction.traffic = traffic_of(prediction.longest().time.exchanged, prediction.strategy);
  return prediction;
}

StepGraphs graphs_of(program::PlannedStep& step) {
  return {.batch = &step.compiled(),
          .update = step.compiled_update(),
          .averaging = step.compiled_averaging(),
          .weight_averaging = step.compiled_weight_averaging(),
          .batches = step.choice().batches,
          .averaging_period = step.spec().averaging.period,
          .states_every = step.spec().averaging.states_every,
          .pipeline = step.pipeline()};
}

}  // namespace weft::predict
