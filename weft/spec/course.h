// How the steps of a run lie in its epochs: batch, accumulation and image size may change from one epoch to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/spec/run_spec.h"
#include "weft/spec/step_shape.h"

namespace weft::spec {

/// What holds from an epoch on.
struct Stage {
  int64_t first_epoch = 0;
  int64_t batch = 1;         // samples
  int64_t accumulate = 1;    // batches per step
  int64_t image_height = 0;  // pixels; 0: as the data have it
  StepShape shape() const { return {batch, image_height}; }
  int64_t step_samples() const { return accumulate * batch; }
};

/// The epoch that a boundary of a schedule names: negative ones count from the end of the run.
double boundary_epoch(double boundary, const RunSpec& spec);

/// The stages of a resolved spec that begin within its epochs, each different from the one before.
std::vector<Stage> stages_of(const RunSpec& spec);

/// Their shapes, each once, in the order of their first use.
std::vector<StepShape> shapes_of(const RunSpec& spec);

/// Whether any step takes several batches, so that the update is a graph of its own.
bool accumulates(const RunSpec& spec);

/// The factor of the learning rate that spec.batch_schedule.rate_scaling gives the steps of a stage.
double scaled_rate(const RunSpec& spec, const Stage& stage);

class Course {
 public:
  /// Of a run over so many samples, at least as many as any step takes.
  Course(const RunSpec& spec, int64_t samples);
  /// All epochs alike.
  Course(int64_t total_steps, int64_t steps_per_epoch);

  const Stage& stage_of(int64_t epoch) const { return find_epoch(static_cast<double>(epoch)).stage; }
  int64_t total_steps() const { return total_steps_; }
  /// In this epoch; fewer in the last one where the run ends before it does.
  int64_t steps_of(int64_t epoch) const;
  /// Whole batches that the data hold in this epoch.
  int64_t batches_of(int64_t epoch) const { return find_epoch(static_cast<double>(epoch)).batches; }

  /// Seen in training before this step.
  int64_t samples_before(int64_t step) const;
  int64_t batches_before(int64_t step) const;

  /// Where an epoch, or a part of one, begins, in steps.
  double step_at(double epoch) const;
  /// For what counts epochs: this part of the run in epochs, times steps_of_first_epoch(). The step itself where all
  /// epochs are alike.
  double clock(int64_t step) const;
  int64_t steps_of_first_epoch() const { return parts_.front().steps; }

 private:
  struct Part {
    Stage stage;
    int64_t steps = 0, batches = 0;           // in an epoch
    int64_t first_step = 0, first_batch = 0;  // of the part, counted over the run; batches that steps take
    int64_t first_sample = 0;
  };
  const Part& find_epoch(double epoch) const;
  const Part& find_step(int64_t step) const;

  std::vector<Part> parts_;
  int64_t total_steps_ = 0;
};

}  // namespace weft::spec
