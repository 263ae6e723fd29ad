// The predicted time of a step: a rank's nodes one after the other, with its exchanges beside them, as a timeline and
// summed by parts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/compile/compile.h"
#include "weft/predict/interval.h"
#include "weft/predict/node_times.h"
#include "weft/predict/step_parts.h"
#include "weft/predict/traffic.h"
#include "weft/step/pipeline_outlook.h"

namespace weft::predict {

/// The graphs of a step. What is null is no graph of its own.
struct StepGraphs {
  const CompiledStep* batch = nullptr;
  const CompiledStep* update = nullptr;
  const CompiledStep* averaging = nullptr;          // of ranks that train apart: of all states
  const CompiledStep* weight_averaging = nullptr;   // likewise: of the weights alone
  int64_t batches = 1;                              // per step
  int64_t averaging_period = 0;                     // steps from one mean to the next
  int64_t states_every = 1;                         // means from one of all states to the next
  const step::PipelineOutlook* pipeline = nullptr;  // of a rank that has some of the layers
};

/// Something on the timeline of a step, in its last batch.
struct Span {
  std::string name;
  Part part = Part::forward;
  bool on_link = false;  // an exchange under way, beside what the rank computes
  double begin = 0, seconds = 0;
};

struct StepTime {
  std::array<double, kParts> seconds{};  // by part; of exchanges what the rank waits for
  double hidden_seconds = 0;             // exchanges while the rank computes
  double overhead_seconds = 0;           // of the step beside its nodes
  double spread = 0;                     // one standard deviation of the logarithm of the whole
  std::array<double, 3> by_source{};     // of the computing: rated, interpolated, measured (CostSource)
  ExchangedByAxis exchanged;
  std::vector<Span> timeline;

  double of(Part part) const { return seconds[static_cast<size_t>(part)]; }
  double whole() const;
  Interval interval() const { return interval_of(whole(), spread); }
};

StepTime predict_step(const StepGraphs& graphs, const NodeTimes& nodes, const ExchangeTimes& exchange);

}  // namespace weft::predict
