// Given rates between given steps, as levels or as lines.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/step/schedules/entries.h"
#include "weft/step/schedules/keys.h"
#include "weft/step/schedules/schedule.h"

namespace weft::step {

double piecewise(double step, std::span<const double> boundaries, std::span<const double> factors, double factor,
                 double rate) {
  const auto passed = std::upper_bound(boundaries.begin(), boundaries.end(), step) - boundaries.begin();
  if (factors.empty()) return rate * std::pow(factor, static_cast<double>(passed));
  return rate * factors[static_cast<size_t>(passed)];
}

double piecewise_lines(double step, std::span<const double> boundaries, std::span<const double> factors, double rate) {
  const auto after = std::upper_bound(boundaries.begin(), boundaries.end(), step);
  if (after == boundaries.begin()) return rate * factors.front();
  if (after == boundaries.end()) return rate * factors.back();
  const auto index = static_cast<size_t>(after - boundaries.begin());
  const double progress = (step - boundaries[index - 1]) / (boundaries[index] - boundaries[index - 1]);
  return rate * (factors[index - 1] + (factors[index] - factors[index - 1]) * progress);
}

RateOfStep piecewise_rate(const spec::ScheduleSpec& schedule, double learning_rate, const spec::Course& course) {
  std::vector<double> steps = schedule.boundaries;
  for (double& boundary : steps) boundary *= static_cast<double>(course.steps_of_first_epoch());
  return [=, factors = schedule.factors, factor = schedule.factor, lines = schedule.lines](int64_t step) {
    const double at = course.clock(step);
    return lines ? piecewise_lines(at, steps, factors, learning_rate)
                 : piecewise(at, steps, factors, factor, learning_rate);
  };
}

namespace {

void require_points(const spec::ScheduleSpec& schedule) {
  const auto& boundaries = schedule.boundaries;
  if (boundaries.empty())
    fail(ErrorKind::usage, "schedule.name = 'piecewise' wants schedule.boundaries, such as [30, 60, 80] (epochs)");
  for (size_t index = 1; index < boundaries.size(); ++index)
    if (boundaries[index] <= boundaries[index - 1])
      fail(ErrorKind::usage, "schedule.boundaries = [{}] must rise from each to the next", fmt::join(boundaries, ", "));
  const size_t wanted = boundaries.size() + (schedule.lines ? 0 : 1);
  if (schedule.factors.size() != wanted && (schedule.lines || !schedule.factors.empty()))
    fail(ErrorKind::usage, "schedule.factors wants {} numbers for {} boundaries{}, got {}", wanted, boundaries.size(),
         schedule.lines ? " with schedule.lines" : "", schedule.factors.size());
}

}  // namespace

ScheduleEntry piecewise_entry() {
  return {.name = "piecewise",
          .summary = "levels, or lines, between given epochs, as MultiStepLR and numpy.interp",
          .keys = {factor_key(),
                   {.name = "boundaries",
                    .value = std::vector<double>(),
                    .low = 0,
                    .high = 1e6,
                    .unit = "epochs",
                    .help = "piecewise: epochs"},
                   {.name = "factors",
                    .value = std::vector<double>(),
                    .low = 0,
                    .high = 1e6,
                    .help = "piecewise: of the rate, before and after each boundary"},
                   {.name = "lines", .value = false, .help = "piecewise: lines between the factors at the boundaries"}},
          .make =
              [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) {
                return with_rise(schedule, course, piecewise_rate(schedule, rate, course));
              },
          .check = require_points};
}

}  // namespace weft::step
