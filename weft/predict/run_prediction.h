// Predicts whole runs, from what is planned of them: every stage's step, evaluations, memory.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "weft/library/library.h"
#include "weft/predict/node_times.h"
#include "weft/predict/prediction.h"
#include "weft/program/planned_step.h"
#include "weft/program/prepared_run.h"

namespace weft::predict {

/// What predictions are made from.
struct Sources {
  NodeTimes nodes;
  ExchangeTimes exchange;
  std::string device;         // whose times these are
  double sample_seconds = 0;  // of one core, to make a sample; 0: not known
  int64_t cores = 0;          // of each host, that its ranks share; 0: not known
};

/// Waits of a stage's steps for batches, where it is known what making samples takes and on how many cores.
void set_loading(StagePrediction& stage, const Sources& sources, const Strategy& strategy, const HostCores& host);

/// The times of ops that this machine's files hold, where there are any: of each op while as many ranks computed at
/// once, or else by one alone. `note` takes a line where it cannot be used.
OpTimes known_times(const DeviceKind& kind, const HostCores& host, const std::function<void(const std::string&)>& note);

/// Of this machine. Without measured times: by `costs`, times what nodes usually take beyond, in a wide range.
NodeTimes times_here(OpTimes times, const std::shared_ptr<const CostModel>& costs, int threads, bool exact = true);

/// The same for such ranks, from the file of this machine or by rates that come with weft: whoever asks gets the same
/// answer each time. Keeps a reference to the kind.
std::function<NodeTimes(const HostCores& host)> kept_times_here(const DeviceKind& kind,
                                                                const std::function<void(const std::string&)>& note,
                                                                bool exact = true);

/// Of a run that is about to begin here, all of whose plans are made. On several ranks, of this one.
/// Where the ranks of this host have more threads than cores, they take turns.
Prediction predict_run(program::PreparedRun& run, const Sources& sources);

/// Of the graphs that the step runs.
StepGraphs graphs_of(program::PlannedStep& step);

}  // namespace weft::predict
