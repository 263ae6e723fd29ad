#include "weft/spec/course.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::spec {

double boundary_epoch(double boundary, const RunSpec& spec) {
  return boundary < 0 ? static_cast<double>(begun_epochs(spec)) + boundary : boundary;
}

namespace {

/// values[i] with i the number of boundaries at or before the epoch; `otherwise` where there are no values.
int64_t value_at(double epoch, const std::vector<double>& boundaries, const std::vector<double>& values,
                 int64_t otherwise, const RunSpec& spec) {
  if (values.empty()) return otherwise;
  const auto passed = std::count_if(boundaries.begin(), boundaries.end(),
                                    [&](double boundary) { return boundary_epoch(boundary, spec) <= epoch; });
  return static_cast<int64_t>(values[static_cast<size_t>(passed)]);
}

}  // namespace

std::vector<Stage> stages_of(const RunSpec& spec) {
  const BatchScheduleSpec& batches = spec.batch_schedule;
  const ImageScheduleSpec& images = spec.image_schedule;
  std::vector<double> begins = {0};
  for (const auto* boundaries : {&batches.boundaries, &images.boundaries})
    for (const double boundary : *boundaries) {
      const double epoch = boundary_epoch(boundary, spec);
      if (epoch > 0 && epoch < static_cast<double>(begun_epochs(spec))) begins.push_back(epoch);
    }
  std::sort(begins.begin(), begins.end());
  std::vector<Stage> stages;
  for (const double begin : begins) {
    const Stage stage{.first_epoch = static_cast<int64_t>(begin),
                      .first_part = begin - std::floor(begin),
                      .batch = value_at(begin, batches.boundaries, batches.batches, spec.batch, spec),
                      .accumulate = value_at(begin, batches.boundaries, batches.accumulate, spec.accumulate, spec),
                      .image_height = value_at(begin, images.boundaries, images.sizes, 0, spec)};
    if (stages.empty() || stage.shape() != stages.back().shape() || stage.accumulate != stages.back().accumulate)
      stages.push_back(stage);
  }
  return stages;
}

std::vector<data::LoaderStage> loader_stages(const std::vector<Stage>& stages) {
  std::vector<data::LoaderStage> found;
  for (const Stage& stage : stages)
    found.push_back({.first_epoch = stage.first_epoch,
                     .batch = stage.batch,
                     .image_height = stage.image_height,
                     .first_part = stage.first_part,
                     .accumulate = stage.accumulate});
  return found;
}

std::vector<StepShape> shapes_of(const RunSpec& spec) {
  std::vector<StepShape> shapes;
  for (const Stage& stage : stages_of(spec))
    if (std::find(shapes.begin(), shapes.end(), stage.shape()) == shapes.end()) shapes.push_back(stage.shape());
  return shapes;
}

bool accumulates(const RunSpec& spec) {
  const std::vector<Stage> stages = stages_of(spec);
  return std::any_of(stages.begin(), stages.end(), [](const Stage& stage) { return stage.accumulate > 1; });
}

double scaled_rate(const RunSpec& spec, const Stage& stage) {
  const std::string& scaling = spec.batch_schedule.rate_scaling;
  const double factor = static_cast<double>(stage.step_samples()) / static_cast<double>(spec.batch * spec.accumulate);
  return scaling == "linear" ? factor : scaling == "square_root" ? std::sqrt(factor) : 1;
}

Course::Course(const RunSpec& spec, int64_t samples) : samples_(samples) {
  const std::vector<Stage> stages = stages_of(spec);
  const data::BatchCourse batches(samples, /*whole_only=*/true, loader_stages(stages));
  for (const data::BatchCourse::Piece& piece : batches.pieces()) {
    Part part{.stage = stages[piece.stage], .piece = piece};
    part.steps = piece.batches / part.stage.accumulate;
    if (!parts_.empty()) {
      const Part& before = parts_.back();
      const int64_t epochs = is_within(before) ? 1 : piece.first_epoch - before.piece.first_epoch;
      const int64_t steps = epochs * before.steps;
      part.first_step = before.first_step + steps;
      part.first_batch = before.first_batch + steps * before.stage.accumulate;
      part.first_sample = before.first_sample + steps * before.stage.step_samples();
      if (before.piece.ends_within) part.first_in_epoch = before.first_in_epoch + before.steps;
    }
    parts_.push_back(part);
  }
  const Part& last = parts_.back();
  if (spec.epochs >= last.first_epoch())
    total_steps_ = last.first_step + spec::total_steps(spec, last.steps) - last.piece.first_epoch * last.steps;
  else  // it ends within an epoch in which stages change
    total_steps_ = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(step_at(spec.epochs) - 1e-6)));
  if (spec.max_steps > 0) total_steps_ = std::min(total_steps_, spec.max_steps);
}

Course::Course(int64_t total_steps, int64_t steps_per_epoch)
    : parts_({{.stage = {}, .piece = {.batches = steps_per_epoch}, .steps = steps_per_epoch}}),
      total_steps_(total_steps) {}

const Course::Part& Course::find_epoch(double epoch) const {
  const auto after = std::upper_bound(parts_.begin() + 1, parts_.end(), epoch,
                                      [this](double at, const Part& part) { return at < begin_of(part); });
  return *(after - 1);
}

const Course::Part& Course::find_step(int64_t step) const {
  const auto after = std::upper_bound(parts_.begin() + 1, parts_.end(), step,
                                      [](int64_t at, const Part& part) { return at < part.first_step; });
  return *(after - 1);
}

const Course::Part& Course::find_place(int64_t epoch, int64_t step) const {
  const auto comes_before = [](const std::pair<int64_t, int64_t>& place, const Part& part) {
    return place < std::pair(part.piece.first_epoch, part.first_in_epoch);
  };
  const auto after = std::upper_bound(parts_.begin() + 1, parts_.end(), std::pair(epoch, step), comes_before);
  return *(after - 1);
}

int64_t Course::steps_of(int64_t epoch) const {
  const Part& first = find_place(epoch, 0);
  const Part& last = find_place(epoch, std::numeric_limits<int64_t>::max());
  const int64_t before = first.first_step + (epoch - first.piece.first_epoch) * first.steps;
  return std::min(last.first_in_epoch + last.steps, total_steps_ - before);
}

int64_t Course::steps_of_first_epoch() const {
  const Part& last = find_place(0, std::numeric_limits<int64_t>::max());
  return last.first_in_epoch + last.steps;
}

int64_t Course::steps_of_stage(const Stage& stage) const {
  int64_t steps = 0;
  for (const Part& part : parts_)
    if (part.stage.begin() == stage.begin()) steps += part.steps;
  return steps;
}

int64_t Course::stage_end(int64_t epoch, int64_t step) const {
  const Part& part = find_place(epoch, step);
  return std::min(part.first_in_epoch + part.steps, steps_of(epoch));
}

int64_t Course::batches_before_in_epoch(int64_t epoch, int64_t step) const {
  const Part& part = find_place(epoch, step);
  return part.piece.first_in_epoch + (step - part.first_in_epoch) * part.stage.accumulate;
}

int64_t Course::batches_left_over(int64_t epoch) const {
  const Part& last = find_place(epoch, std::numeric_limits<int64_t>::max());
  return last.piece.batches - last.steps * last.stage.accumulate;
}

int64_t Course::samples_before(int64_t step) const {
  const Part& part = find_step(step);
  return part.first_sample + (step - part.first_step) * part.stage.step_samples();
}

int64_t Course::batches_before(int64_t step) const {
  const Part& part = find_step(step);
  return part.first_batch + (step - part.first_step) * part.stage.accumulate;
}

std::pair<int64_t, int64_t> Course::place_of(int64_t step) const {
  const Part& part = find_step(step);
  const int64_t in_part = step - part.first_step;
  return {part.piece.first_epoch + in_part / part.steps, part.first_in_epoch + in_part % part.steps};
}

double Course::begin_of(const Part& part) const {
  return part.first_epoch() + static_cast<double>(part.piece.first_sample) / static_cast<double>(samples_);
}

double Course::step_at(double epoch) const {
  const Part& part = find_epoch(epoch);
  const auto first_step = static_cast<double>(part.first_step);
  if (!is_within(part)) return first_step + (epoch - part.first_epoch()) * static_cast<double>(part.steps);
  const double samples = (epoch - begin_of(part)) * static_cast<double>(samples_);
  return first_step +
         std::min(samples / static_cast<double>(part.stage.step_samples()), static_cast<double>(part.steps));
}

double Course::clock(int64_t step) const {
  const Part& part = find_step(step);
  if (&part == &parts_.front() && !is_within(part)) return static_cast<double>(step);
  double epoch = begin_of(part);
  if (is_within(part)) {
    const auto samples = static_cast<double>((step - part.first_step) * part.stage.step_samples());
    epoch += samples / static_cast<double>(samples_);
  } else {
    epoch += static_cast<double>(step - part.first_step) / static_cast<double>(part.steps);
  }
  return epoch * static_cast<double>(steps_of_first_epoch());
}

}  // namespace weft::spec
