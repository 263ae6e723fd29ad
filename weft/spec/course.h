// Maps the steps of a run to its epochs. Batch, accumulation and image size may change from one epoch to the next.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "weft/spec/run_spec.h"
#include "weft/spec/step_shape.h"

namespace weft::spec {

/// Settings that hold from one epoch on.
struct Stage {
  int64_t first_epoch = 0;
  int64_t batch = 1;         // samples
  int64_t accumulate = 1;    // batches per step
  int64_t image_height = 0;  // pixels; 0: as in the data
  StepShape shape() const { return {batch, image_height}; }
  int64_t step_samples() const { return accumulate * batch; }
};

/// The epoch of a schedule's boundary: a negative boundary counts from the end of the run.
double boundary_epoch(double boundary, const RunSpec& spec);

/// The stages of a resolved spec that begin within its epochs, each different from the one before.
std::vector<Stage> stages_of(const RunSpec& spec);

/// The step shapes of all stages, each once, in the order of first use.
std::vector<StepShape> shapes_of(const RunSpec& spec);

/// Whether any step takes several batches, so that the update needs a graph of its own.
bool accumulates(const RunSpec& spec);

/// The factor by which spec.batch_schedule.rate_scaling multiplies the learning rate in this stage.
double scaled_rate(const RunSpec& spec, const Stage& stage);

class Course {
 public:
  /// A run over `samples` samples, at least as many as any step takes.
  Course(const RunSpec& spec, int64_t samples);
  /// A run whose epochs are all alike.
  Course(int64_t total_steps, int64_t steps_per_epoch);

  const Stage& stage_of(int64_t epoch) const { return find_epoch(static_cast<double>(epoch)).stage; }
  int64_t total_steps() const { return total_steps_; }
  /// Steps in this epoch; fewer in the last one where the run ends within it.
  int64_t steps_of(int64_t epoch) const;
  /// Whole batches in the data in this epoch.
  int64_t batches_of(int64_t epoch) const { return find_epoch(static_cast<double>(epoch)).batches; }

  /// Training samples and batches seen before this step.
  int64_t samples_before(int64_t step) const;
  int64_t batches_before(int64_t step) const;

  /// The epoch of a step, and its number in that epoch, both from 0.
  std::pair<int64_t, int64_t> place_of(int64_t step) const;

  /// The step at which an epoch, or a part of one, begins.
  double step_at(double epoch) const;
  /// For schedules that count epochs: the epochs done before this step times steps_of_first_epoch(). Equal to `step`
  /// where all epochs are alike.
  double clock(int64_t step) const;
  int64_t steps_of_first_epoch() const { return parts_.front().steps; }

 private:
  struct Part {
    Stage stage;
    int64_t steps = 0, batches = 0;           // per epoch
    int64_t first_step = 0, first_batch = 0;  // of the part, counted from the start of the run; batches are those that
                                              // steps take
    int64_t first_sample = 0;
  };
  const Part& find_epoch(double epoch) const;
  const Part& find_step(int64_t step) const;

  std::vector<Part> parts_;
  int64_t total_steps_ = 0;
};

}  // namespace weft::spec
