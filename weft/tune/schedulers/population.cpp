#include "weft/tune/schedulers/population.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "weft/base/error.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

namespace {

constexpr double kDrawnAnew = 0.25, kFactor = 1.25, kMove = 0.1;

/// The members' trials at the end of a round: before any of them is replaced there.
class Round {
 public:
  Round(const SchedulerOptions& options, const std::vector<TrialProgress>& trials, int64_t end)
      : trials_(trials), end_(end), members_(static_cast<size_t>(options.trials)) {
    for (size_t trial = 0; trial < trials.size(); ++trial) {
      const auto place = static_cast<size_t>(trials[trial].bracket);
      if (place >= members_.size()) continue;
      newest_at(place) = trial;
      if (trials[trial].begun < end) members_[place].at_end = trial;
    }
  }

  /// All members have come to the end of the round, or to their own.
  bool is_complete() const {
    return std::all_of(members_.begin(), members_.end(), [&](const Member& member) {
      const TrialProgress& trial = trials_[member.at_end];
      return trial.state == TrialProgress::State::ended || trial.target > end_ ||
             (trial.target == end_ && trial.state == TrialProgress::State::paused);
    });
  }

  /// Places, the best first; a member without a result is among the last.
  std::vector<size_t> ranked() const {
    std::vector<size_t> places(members_.size());
    for (size_t place = 0; place < places.size(); ++place) places[place] = place;
    std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return loss_of(a) < loss_of(b); });
    return places;
  }

  size_t trial_at_end(size_t place) const { return members_[place].at_end; }
  /// Whether the place's member is still the one that came to the end of the round, and has not gone on.
  bool waits(size_t place) const {
    return members_[place].newest == members_[place].at_end && trials_[members_[place].at_end].target <= end_;
  }
  bool is_held(size_t place) const { return trials_[members_[place].at_end].is_held; }
  bool can_go_on(size_t place) const { return trials_[members_[place].at_end].state == TrialProgress::State::paused; }
  /// Where its weights are now, infinity where nothing was measured there: not the best that it ever was.
  double loss_of(size_t place) const {
    double loss = std::numeric_limits<double>::infinity();
    for (const auto& [at, measured] : trials_[members_[place].at_end].curve)
      if (at == end_) loss = std::isfinite(measured) ? measured : loss;
    return loss;
  }

 private:
  struct Member {
    size_t newest = 0, at_end = 0;
  };
  size_t& newest_at(size_t place) { return members_[place].newest; }

  const std::vector<TrialProgress>& trials_;
  const int64_t end_;
  std::vector<Member> members_;
};

/// At the end of a complete round: copies first, as their origin must not have gone on.
Job job_behind(const SchedulerOptions& options, const Round& round, int64_t end) {
  const std::vector<size_t> places = round.ranked();
  const auto members = static_cast<int64_t>(places.size());
  const auto replaced = static_cast<size_t>(std::max<int64_t>(1, members / kReplacedOfMembers));
  const int64_t next = std::min(end + options.least, options.most);
  for (size_t from_end = 0; from_end < places.size(); ++from_end) {
    const size_t place = places[places.size() - 1 - from_end];
    const bool is_lost = !std::isfinite(round.loss_of(place));
    if ((from_end >= replaced && !is_lost) || !round.waits(place)) continue;
    const size_t origin = places[from_end % replaced];
    if (origin == place || !round.can_go_on(origin) || !std::isfinite(round.loss_of(origin))) continue;
    return {Job::Kind::copy, round.trial_at_end(origin), static_cast<int64_t>(place), next, end};
  }
  for (const size_t place : places)
    if (round.waits(place) && round.can_go_on(place) && !round.is_held(place))
      return {Job::Kind::go_on, round.trial_at_end(place), static_cast<int64_t>(place), next};
  return {};
}

}  // namespace

Job population_job(const SchedulerOptions& options, const std::vector<TrialProgress>& trials) {
  std::vector<bool> has_begun(static_cast<size_t>(options.trials), false);
  for (const TrialProgress& trial : trials)
    if (trial.bracket < options.trials) has_begun[static_cast<size_t>(trial.bracket)] = true;
  for (size_t place = 0; place < has_begun.size(); ++place)
    if (!has_begun[place])
      return {Job::Kind::start, 0, static_cast<int64_t>(place), std::min(options.least, options.most)};
  for (int64_t end = options.least; end < options.most; end += options.least) {
    const Round round(options, trials, end);
    if (!round.is_complete()) return {};
    const Job job = job_behind(options, round, end);
    if (job.kind != Job::Kind::none) return job;
  }
  return {};
}

namespace {

/// A value of the dimension at random.
double drawn(const Space& space, size_t index, Random& random) { return space.from_unit(index, random.uniform()); }

double moved(const Space& space, size_t index, double value, Random& random) {
  const Dimension& dimension = space[index];
  const double sign = random.uniform() < 0.5 ? -1 : 1;
  if (dimension.kind == Dimension::Kind::choice) return value;
  const auto step = static_cast<double>(dimension.step);
  double next =
      dimension.log ? value * std::pow(kFactor, sign) : value + sign * kMove * (dimension.high - dimension.low);
  if (dimension.kind == Dimension::Kind::integer) {
    next = dimension.low + step * std::nearbyint((next - dimension.low) / step);
    if (next == value) next += sign * step;
    const double highest = dimension.low + step * std::floor((dimension.high - dimension.low) / step);
    return std::clamp(next, dimension.low, highest);
  }
  return std::clamp(next, dimension.low, dimension.high);
}

}  // namespace

Values explored(const Space& space, const Values& values, int64_t seed, int64_t number) {
  Random random(seed, number);
  const Point from = space.point(values);
  Point to(space.size());
  for (size_t index = 0; index < space.size(); ++index) {
    const bool anew = random.uniform() < kDrawnAnew;
    // Drawn in any case, so that one dimension's numbers do not depend on another's fate.
    Random own(seed + static_cast<int64_t>(index) + 1, number);
    if (!space.is_active(to, index)) continue;
    to[index] = anew || !from[index] ? drawn(space, index, own) : moved(space, index, *from[index], own);
  }
  return space.values(to);
}

}  // namespace weft::tune
