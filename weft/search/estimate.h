// What a strategy is estimated to take, from the costs of the model's stages: no graph is made for it. A search asks
// this of all strategies, and plans those that come first.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "weft/passes/ranks/pipeline_schedule.h"
#include "weft/predict/planned_run.h"
#include "weft/search/model_profile.h"

namespace weft::search {

struct Estimate {
  double seconds = 0;        // of a step
  double bound_seconds = 0;  // that it takes at least by the same costs, whatever is computed twice
  double computing = 0, waiting = 0, exchange = 0, update = 0;  // seconds of the rank that computes the longest
  double memory_bytes = 0;                                      // of the fullest rank
  double least_bytes = 0;               // of the fullest rank, with as much computed twice, or in a file, as can be
  int64_t recomputed = 0, in_file = 0;  // blocks
  int64_t points = 0;                   // that were compared for them (memory_choice.h)
  bool fits = true;
};

class Estimator {
 public:
  /// Keeps references. `nodes`: of times_at(). `memory_bytes`: of a rank.
  Estimator(ModelProfile& profile, const predict::PlannedModel& model, const predict::Place& place,
            const predict::NodeTimes& nodes, double memory_bytes)
      : profile_(profile), model_(model), place_(place), nodes_(nodes), memory_bytes_(memory_bytes) {}

  /// Error(usage) where the model cannot be cut or shared so.
  Estimate estimate(const predict::Strategy& strategy);
  /// No estimate of the strategy is less. Nothing is cut or scheduled for it.
  double bound(const predict::Strategy& strategy);

 private:
  struct Question;  // a strategy with what is known of it
  const predict::ExchangeTimes& exchange_of(const predict::Strategy& strategy);
  double exchange_seconds(const StageCost& stage, Work work, const Question& of) const;
  void add_times(Question& of) const;
  std::shared_ptr<const passes::PipelineSchedule> schedule_of(const Question& of);
  void choose_memory(Question& of, Estimate& estimate) const;
  double schedule_seconds(const Question& of, bool at_least) const;
  double gradient_seconds(const Question& of) const;
  double states_of(const Question& of, size_t rank) const;
  double evaluation_of(const Question& of) const;
  double beside_of(const Question& of) const;

  ModelProfile& profile_;
  const predict::PlannedModel& model_;
  const predict::Place& place_;
  const predict::NodeTimes& nodes_;
  const double memory_bytes_;
  std::map<std::tuple<std::string, int64_t, int64_t, int>, std::shared_ptr<const passes::PipelineSchedule>> schedules_;
  std::map<std::pair<int64_t, int64_t>, predict::ExchangeTimes> exchanges_;  // by tensor and pipeline
};

}  // namespace weft::search
