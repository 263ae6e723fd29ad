// Maps the steps of a run to its epochs. Batch, accumulation and image size may change from one epoch to the next, or
// within one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "weft/data/load/batch_course.h"
#include "weft/spec/run_spec.h"
#include "weft/spec/step_shape.h"

namespace weft::spec {

/// Settings that hold from one epoch, or a part of one, on.
struct Stage {
  int64_t first_epoch = 0;
  double first_part = 0;     // share of its first epoch that comes before
  int64_t batch = 1;         // samples
  int64_t accumulate = 1;    // batches per step
  int64_t image_height = 0;  // pixels; 0: as in the data
  StepShape shape() const { return {batch, image_height}; }
  int64_t step_samples() const { return accumulate * batch; }
  /// In epochs from the beginning of the run.
  double begin() const { return static_cast<double>(first_epoch) + first_part; }
};

/// The epoch of a schedule's boundary: a negative boundary counts from the end of the run.
double boundary_epoch(double boundary, const RunSpec& spec);

/// The stages of a resolved spec that begin within its epochs, each different from the one before.
std::vector<Stage> stages_of(const RunSpec& spec);

/// The same as loaders take them.
std::vector<data::LoaderStage> loader_stages(const std::vector<Stage>& stages);

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

  /// Of the step with this number in the epoch.
  const Stage& stage_of(int64_t epoch, int64_t step) const { return find_place(epoch, step).stage; }
  int64_t total_steps() const { return total_steps_; }
  /// Steps in this epoch; fewer in the last one where the run ends within it.
  int64_t steps_of(int64_t epoch) const;
  /// Of the epoch's steps, how many are done when the stage of this one ends, or the epoch.
  int64_t stage_end(int64_t epoch, int64_t step) const;
  /// Whole batches in the data in this epoch before this step.
  int64_t batches_before_in_epoch(int64_t epoch, int64_t step) const;
  /// Whole batches at the end of this epoch that fill no step.
  int64_t batches_left_over(int64_t epoch) const;

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
  int64_t steps_of_first_epoch() const;
  /// Steps of one of its epochs and of the parts of epochs that it has; 0: it changes nothing.
  int64_t steps_of_stage(const Stage& stage) const;

 private:
  /// A piece of the loader's course, in steps.
  struct Part {
    Stage stage;
    data::BatchCourse::Piece piece;
    int64_t steps = 0;                        // per epoch
    int64_t first_step = 0, first_batch = 0;  // of the part, counted from the start of the run; batches are those that
                                              // steps take
    int64_t first_sample = 0;                 // likewise
    int64_t first_in_epoch = 0;               // steps of the epoch before it
    double first_epoch() const { return static_cast<double>(piece.first_epoch); }
  };
  const Part& find_epoch(double epoch) const;
  const Part& find_step(int64_t step) const;
  const Part& find_place(int64_t epoch, int64_t step) const;
  /// Whether the part is a part of an epoch, too.
  bool is_within(const Part& part) const { return part.piece.first_sample > 0 || part.piece.ends_within; }
  /// Epochs done where this part begins, and where it ends within its epoch.
  double begin_of(const Part& part) const;

  std::vector<Part> parts_;
  int64_t total_steps_ = 0;
  int64_t samples_ = 1;
};

}  // namespace weft::spec
