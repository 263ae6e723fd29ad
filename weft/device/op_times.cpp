#include "weft/device/op_times.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "weft/base/error.h"
#include "weft/graph/marks.h"
#include "weft/graph/signature_key.h"

namespace weft {

namespace {

constexpr double kUnknownAbove = 1.6;   // times the roofline, where nothing was measured (docs/memory.md)
constexpr double kUnknownSpread = 0.5;  // then
constexpr double kLeastSpread = 0.03;   // of what is interpolated
constexpr double kExactSpread = 0.02;   // of what was measured: from one run of a program to the next
constexpr size_t kNeighbours = 6;
constexpr size_t kMostJudged = 60;  // of a group, by what the others would make of them
constexpr double kNear = 0.05;      // a distance within which neighbours count alike
constexpr double kSpreadPerDistance = 0.08;
constexpr double kScaleShare = 0.25;   // of a factor e in size, as a distance
constexpr double kOtherOptions = 0.7;  // the distance of other windows, strides or axes
constexpr double kOtherKernel = 1.0, kOtherOp = 2.0;
constexpr double kSameLayer = 0.1;     // a distance in geometry, within which only the batch differs
constexpr double kClearlyAbove = 1.1;  // a ratio of two sizes

double log_of(double amount) { return std::log(std::max(amount, 1.0)); }

double log_of_scale(const OpWork& a, const OpWork& b) {
  return a.flops > 0 && b.flops > 0 ? log_of(a.flops) - log_of(b.flops) : log_of(a.bytes) - log_of(b.bytes);
}

/// How two pieces of work differ in more than the batch. Of layers that differ in nothing else, all operands are larger
/// by one factor, or as large.
double distance_in_geometry(const OpWork& a, const OpWork& b) {
  const double scale = log_of_scale(a, b);
  double geometry = 0;
  for (size_t side = 0; side < a.sides.size(); ++side) {
    const double own = log_of(a.sides[side]) - log_of(b.sides[side]);
    const double beside = std::min(std::abs(own), std::abs(own - scale));
    geometry += beside * beside;
  }
  return std::sqrt(geometry);
}

/// How unlike two pieces of work are. Another batch counts little.
double distance(const OpWork& a, const OpWork& b) {
  return std::hypot(kScaleShare * log_of_scale(a, b), distance_in_geometry(a, b)) +
         (a.options == b.options ? 0 : kOtherOptions);
}

bool is_same_layer(const OpWork& a, const OpWork& b) {
  return a.kernel == b.kernel && a.options == b.options && distance_in_geometry(a, b) <= kSameLayer;
}

std::string key_of(const std::string& key, const std::string& kernel) { return kernel + "\n" + key; }

std::string name_of_kernel(const OpWork& work) {
  return "kernel " + work.op + " " + work.kernel + (work.narrow ? " narrow" : "");
}
std::string name_of_op(const OpWork& work) { return "op " + work.op + (work.narrow ? " narrow" : ""); }
std::string name_of_family(const OpWork& work) { return "family " + work.family; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

OpWork work_of(const NodeSignature& node, const std::string& kernel) {
  OpWork work{.op = node.op->name, .kernel = kernel, .family = node.op->work};
  if (work.family.empty()) work.family = node.op->layout_rule == LayoutRule::elementwise ? "elementwise" : "other";
  for (const auto& [name, value] : node.attributes.values())
    if (!is_mark(name)) work.options += name + "=" + to_string(value) + ",";
  if (node.op->flops) work.flops = static_cast<double>(node.op->flops(node.inputs, node.outputs, node.attributes));
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const TensorType& type : *types) work.bytes += static_cast<double>(type.bytes());
  for (size_t side = 0; side < 2 && side < node.inputs.size(); ++side)
    work.sides[side] = static_cast<double>(node.inputs[side].bytes());
  if (!node.outputs.empty()) work.sides[2] = static_cast<double>(node.outputs[0].bytes());
  work.narrow = node.op->precision == PrecisionRule::reduced && !node.inputs.empty() &&
                is_floating(node.inputs[0].dtype) && unpacked_size(node.inputs[0].dtype) == 2;
  return work;
}

StepOverhead least_of(const StepOverhead& a, const StepOverhead& b) {
  if (a.steps == 0 || b.steps == 0) return a.steps == 0 ? b : a;
  return {.seconds_per_node = std::min(a.seconds_per_node, b.seconds_per_node), .steps = a.steps + b.steps};
}

void OpTimes::add(const std::string& key, OpTime time) {
  groups_ = {};
  const std::string place = key_of(key, time.work.kernel);
  times_[place] = std::move(time);
}

void OpTimes::add(const OpTimes& others) {
  groups_ = {};
  for (const auto& [place, time] : others.times_) times_[place] = time;
  if (others.rates_) rates_ = others.rates_;
  overhead = least_of(overhead, others.overhead);
  exchanges.add(others.exchanges);
  ranks = std::max(ranks, others.ranks);
}

const OpTime* OpTimes::find(const std::string& key, const std::string& kernel) const {
  const auto found = times_.find(key_of(key, kernel));
  return found == times_.end() ? nullptr : &found->second;
}

double OpTimes::roofline(const OpWork& work, double held_bytes) const {
  check(rates_.has_value(), "rates of the machine");
  const Floor floor = rates_->floor(static_cast<int64_t>(work.flops), static_cast<int64_t>(std::max(work.bytes, 1.0)),
                                    work.narrow, static_cast<int64_t>(std::max(held_bytes, 1.0)));
  return rates_->call_seconds + floor.seconds;
}

double OpTimes::above(const OpTime& time, const OpWork& work) const {
  const double times_as_long = std::max(time.seconds, 1e-9) / roofline(time.work);
  if (times_as_long <= 1 || time.work.bytes >= work.bytes) return std::log(times_as_long);
  const double at_own_pace = times_as_long * roofline(work, time.work.bytes);
  return std::log(std::max(1.0, at_own_pace / roofline(work)));
}

/// Sorts times into groups and judges each group by leaving out one after the other.
void OpTimes::prepare() const {
  if (groups_.are_made) return;
  groups_.by_name.clear();
  for (const auto& [key, time] : times_)
    for (const std::string& name :
         {name_of_kernel(time.work), name_of_op(time.work), name_of_family(time.work), std::string("all")})
      groups_.by_name[name].times.push_back(&time);
  groups_.are_made = true;
  for (auto& [name, group] : groups_.by_name) {
    const size_t count = group.times.size();
    if (count < 2) {
      group.spread = kUnknownSpread / 2;
      continue;
    }
    std::vector<double> errors;
    const size_t stride = std::max<size_t>(1, count / kMostJudged);
    for (size_t at = 0; at < count; at += stride) {
      Group others;
      for (size_t other = 0; other < count; ++other)
        if (other != at) others.times.push_back(group.times[other]);
      const OpEstimate guess = *from_neighbours(others, group.times[at]->work, 0);
      errors.push_back(std::abs(std::log(guess.seconds / std::max(group.times[at]->seconds, 1e-9))));
    }
    group.spread = std::max(kLeastSpread, 1.48 * median(std::move(errors)));  // of a normal distribution
  }
}

const OpTimes::Group& OpTimes::group(const std::string& name) const {
  static const Group none;
  prepare();
  const auto found = groups_.by_name.find(name);
  return found == groups_.by_name.end() ? none : found->second;
}

double OpTimes::below_all_measured(const Group& group, const OpWork& work) const {
  // Sums of least squares of the relative errors of: seconds = fixed + factor * roofline.
  double ones = 0, mixed = 0, squares = 0, one = 0, floors = 0;
  const OpTime *smallest = nullptr, *largest = nullptr;
  for (const OpTime* time : group.times) {
    if (!is_same_layer(time->work, work)) continue;
    const double share = 1 / std::max(time->seconds, 1e-9), floor = share * roofline(time->work);
    ones += share * share;
    mixed += share * floor;
    squares += floor * floor;
    one += share;
    floors += floor;
    if (smallest == nullptr || log_of_scale(time->work, smallest->work) < 0) smallest = time;
    if (largest == nullptr || log_of_scale(time->work, largest->work) > 0) largest = time;
  }
  const auto is_clearly_above = [](const OpTime& a, const OpWork& b) {
    return log_of_scale(a.work, b) > std::log(kClearlyAbove);
  };
  if (smallest == nullptr || !is_clearly_above(*smallest, work) || !is_clearly_above(*largest, smallest->work))
    return 0;
  const double determinant = ones * squares - mixed * mixed;
  if (determinant <= 0) return 0;
  const double fixed = (one * squares - floors * mixed) / determinant;
  const double factor = (floors * ones - one * mixed) / determinant;
  if (fixed <= 0) return 0;
  return std::min(fixed + std::max(factor, 0.0) * roofline(work), smallest->seconds);
}

std::optional<OpEstimate> OpTimes::from_neighbours(const Group& group, const OpWork& work, double farther) const {
  if (group.times.empty()) return std::nullopt;
  std::vector<std::pair<double, const OpTime*>> near;
  for (const OpTime* time : group.times) near.emplace_back(distance(time->work, work), time);
  const size_t count = std::min(kNeighbours, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  double sum = 0, weights = 0;
  for (size_t at = 0; at < count; ++at) {
    const double near_enough = near[at].first + kNear, weight = 1 / (near_enough * near_enough);
    sum += weight * above(*near[at].second, work);
    weights += weight;
  }
  const double from_distance = kSpreadPerDistance * (near.front().first + farther);
  return OpEstimate{.seconds = std::max(roofline(work) * std::exp(sum / weights), below_all_measured(group, work)),
                    .spread = std::hypot(std::max(group.spread, kLeastSpread), from_distance),
                    .source = CostSource::profiled};
}

OpEstimate OpTimes::estimate(const NodeSignature& node, const std::string& kernel, bool exact) const {
  if (node.op->is_view) return {};
  const OpWork work = work_of(node, kernel);
  if (exact)
    if (const OpTime* time = find(signature_key(node), kernel))
      return {time->seconds, std::hypot(kExactSpread, time->spread / 2), CostSource::measured};
  // A group that holds this very node must not give it away where that is not asked for.
  const auto judged = [&](const std::string& name, double farther) {
    const Group& found = group(name);
    if (exact) return from_neighbours(found, work, farther);
    Group others{.times = {}, .spread = found.spread};
    const OpTime* same = find(signature_key(node), kernel);
    std::copy_if(found.times.begin(), found.times.end(), std::back_inserter(others.times),
                 [&](const OpTime* time) { return time != same; });
    return from_neighbours(others, work, farther);
  };
  if (auto guess = judged(name_of_kernel(work), 0)) return *guess;
  if (auto guess = judged(name_of_op(work), kOtherKernel)) return *guess;
  if (auto guess = judged(name_of_family(work), kOtherOp)) return *guess;
  double above_roofline = std::log(kUnknownAbove);
  if (!times_.empty()) {
    std::vector<double> all;
    for (const auto& [key, time] : times_) all.push_back(above(time, time.work));
    above_roofline = median(std::move(all));
  }
  return {roofline(work) * std::exp(above_roofline), kUnknownSpread, CostSource::rated};
}

}  // namespace weft
