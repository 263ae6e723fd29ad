#include "weft/spec/course.h"

#include <algorithm>
#include <cmath>

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
                      .batch = value_at(begin, batches.boundaries, batches.batches, spec.batch, spec),
                      .accumulate = value_at(begin, batches.boundaries, batches.accumulate, spec.accumulate, spec),
                      .image_height = value_at(begin, images.boundaries, images.sizes, 0, spec)};
    if (stages.empty() || stage.shape() != stages.back().shape() || stage.accumulate != stages.back().accumulate)
      stages.push_back(stage);
  }
  return stages;
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

Course::Course(const RunSpec& spec, int64_t samples) {
  for (const Stage& stage : stages_of(spec)) {
    Part part{.stage = stage, .steps = 0, .batches = samples / stage.batch};
    part.steps = part.batches / stage.accumulate;
    if (!parts_.empty()) {
      const Part& before = parts_.back();
      const int64_t steps = (stage.first_epoch - before.stage.first_epoch) * before.steps;
      part.first_step = before.first_step + steps;
      part.first_batch = before.first_batch + steps * before.stage.accumulate;
      part.first_sample = before.first_sample + steps * before.stage.step_samples();
    }
    parts_.push_back(part);
  }
  const Part& last = parts_.back();
  total_steps_ = last.first_step + spec::total_steps(spec, last.steps) - last.stage.first_epoch * last.steps;
  if (spec.max_steps > 0) total_steps_ = std::min(total_steps_, spec.max_steps);
}

Course::Course(int64_t total_steps, int64_t steps_per_epoch)
    : parts_({{.stage = {}, .steps = steps_per_epoch, .batches = steps_per_epoch}}), total_steps_(total_steps) {}

const Course::Part& Course::find_epoch(double epoch) const {
  const auto after = std::upper_bound(parts_.begin() + 1, parts_.end(), epoch, [](double at, const Part& part) {
    return at < static_cast<double>(part.stage.first_epoch);
  });
  return *(after - 1);
}

const Course::Part& Course::find_step(int64_t step) const {
  const auto after = std::upper_bound(parts_.begin() + 1, parts_.end(), step,
                                      [](int64_t at, const Part& part) { return at < part.first_step; });
  return *(after - 1);
}

int64_t Course::steps_of(int64_t epoch) const {
  const Part& part = find_epoch(static_cast<double>(epoch));
  const int64_t before = part.first_step + (epoch - part.stage.first_epoch) * part.steps;
  return std::min(part.steps, total_steps_ - before);
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
  return {part.stage.first_epoch + in_part / part.steps, in_part % part.steps};
}

double Course::step_at(double epoch) const {
  const Part& part = find_epoch(epoch);
  return static_cast<double>(part.first_step) +
         (epoch - static_cast<double>(part.stage.first_epoch)) * static_cast<double>(part.steps);
}

double Course::clock(int64_t step) const {
  const Part& part = find_step(step);
  if (&part == &parts_.front()) return static_cast<double>(step);
  const double epoch = static_cast<double>(part.stage.first_epoch) +
                       static_cast<double>(step - part.first_step) / static_cast<double>(part.steps);
  return epoch * static_cast<double>(steps_of_first_epoch());
}

}  // namespace weft::spec
