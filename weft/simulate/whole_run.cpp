#include "weft/simulate/whole_run.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/rng.h"

namespace weft::simulate {

namespace {

constexpr double kRounding = 1e-9;
constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kSpan = 6;          // best_interval() looks so many times below and above Daly's
constexpr double kMostEvents = 2e7;  // of a run; a campaign is some thirty of them

class WholeRun {
 public:
  WholeRun(const RunModel& model, const RunPolicy& policy, double end, double enough, uint64_t seed)
      : model_(model), policy_(policy), end_(end), enough_(enough), random_(mix(seed, hash_name("failures"))) {
    check(model.hosts >= 1, "a run on no host");
    all_hosts_ = model.hosts + policy.spare_hosts;
    next_failure_ = draw();
  }

  RunOutcome run() {
    while (now_ < end_ && !has_enough()) step();
    outcome_.seconds = now_;
    outcome_.useful_seconds = kept_ + unsaved_;
    return outcome_;
  }

 private:
  /// But for what rounding leaves of a sum.
  bool has_enough() const { return kept_ + unsaved_ >= (1 - kRounding) * enough_; }

  double draw() {
    const double rate = model_.failures_per_second();
    if (rate <= 0) return kForever;
    // Two draws of 24 bits: intervals from fractions of a second to years.
    const double u =
        (static_cast<double>(random_.bits()) + (static_cast<double>(random_.bits()) + 0.5) * 0x1p-32) * 0x1p-32;
    return now_ - std::log1p(-u) / rate;
  }

  int there() const { return all_hosts_ - static_cast<int>(repairs_.size()); }
  int working() const { return std::min(model_.hosts, there()); }
  /// Useful seconds per second.
  double rate() const {
    if (working() == model_.hosts) return 1;
    const int hosts = working() / model_.hosts_per_replica * model_.hosts_per_replica;
    if (!policy_.goes_on_with_fewer || hosts < std::max(policy_.fewest_hosts, 1)) return 0;
    return policy_.fewer_efficiency * hosts / model_.hosts;
  }

  void step() {
    while (!repairs_.empty() && repairs_.front() <= now_) repairs_.pop_front();
    const double rate = this->rate();
    const double repaired = repairs_.empty() ? kForever : repairs_.front();
    if (rate == 0) {  // waits for a host; one that fails meanwhile is none that works
      const double until = std::min(repaired, end_);
      outcome_.down_seconds += until - now_;
      now_ = until;
      next_failure_ = draw();
      return;
    }
    const double checkpoint_at = now_ + std::max(0.0, policy_.checkpoint_interval_seconds - since_checkpoint_);
    const double to_enough = (enough_ - kept_ - unsaved_) / rate;
    const double until =
        std::min({checkpoint_at, next_failure_, end_, now_ + to_enough, rate < 1 ? repaired : kForever});
    const double worked = until - now_;
    unsaved_ += worked * rate;
    since_checkpoint_ += worked;
    outcome_.slowed_seconds += worked * (1 - rate);
    now_ = until;
    if (now_ >= end_ || has_enough()) return;
    if (now_ >= next_failure_) {
      fail_one();
    } else if (now_ >= checkpoint_at) {  // by the clock: years in, it may be too coarse for what a sum still lacks
      save();
    } else if (rate < 1 && now_ >= repaired) {
      // The host is there again: a checkpoint, then a start on all of them.
      if (save()) restart();
    }
  }

  /// False where a failure came in between.
  bool save() {
    const double until = std::min(now_ + model_.checkpoint_seconds, end_);
    if (next_failure_ < until) {
      outcome_.checkpoint_seconds += next_failure_ - now_;
      now_ = next_failure_;
      fail_one();
      return false;
    }
    outcome_.checkpoint_seconds += until - now_;
    now_ = until;
    kept_ += unsaved_;
    unsaved_ = since_checkpoint_ = 0;
    return true;
  }

  void fail_one() {
    ++outcome_.failures;
    outcome_.lost_seconds += unsaved_;
    unsaved_ = since_checkpoint_ = 0;
    repairs_.push_back(now_ + model_.repair_seconds);
    restart();
  }

  void restart() {
    const double until = std::min(now_ + model_.restart_seconds + model_.restore_seconds, end_);
    outcome_.down_seconds += until - now_;
    now_ = until;
    next_failure_ = draw();
  }

  const RunModel model_;
  const RunPolicy policy_;
  const double end_, enough_;
  RandomStream random_;
  RunOutcome outcome_;
  int all_hosts_ = 1;
  double now_ = 0, next_failure_ = 0;
  double kept_ = 0, unsaved_ = 0, since_checkpoint_ = 0;
  std::deque<double> repairs_;  // when hosts are there again, ascending
};

}  // namespace

RunOutcome simulate_run(const RunModel& model, const RunPolicy& policy, double seconds, uint64_t seed) {
  return WholeRun(model, policy, seconds, kForever, seed).run();
}

RunOutcome simulate_until(const RunModel& model, const RunPolicy& policy, double useful_seconds, uint64_t seed) {
  // A run that never gets there ends after a thousand times as long.
  return WholeRun(model, policy, 1000 * useful_seconds, useful_seconds, seed).run();
}

double young_interval(double checkpoint_seconds, double mean) { return std::sqrt(2 * checkpoint_seconds * mean); }

double daly_interval(double checkpoint_seconds, double mean) {
  if (checkpoint_seconds >= 2 * mean) return mean;
  const double x = checkpoint_seconds / (2 * mean);
  return std::sqrt(2 * checkpoint_seconds * mean) * (1 + std::sqrt(x) / 3 + x / 9) - checkpoint_seconds;
}

namespace {

/// A second, where it would be less.
double daly_of(const RunModel& model) {
  const double rate = model.failures_per_second();
  return rate > 0 ? std::max(1.0, daly_interval(model.checkpoint_seconds, 1 / rate)) : kForever;
}

/// Of failures, and of checkpoints at this interval while steps run.
void require_few_events(const RunModel& model, double seconds, double interval) {
  const double mean = 1 / model.failures_per_second(), down = model.restart_seconds + model.restore_seconds;
  const double failures = std::isfinite(mean) ? seconds / (mean + down) : 0;
  const double running = std::isfinite(mean) ? failures * mean : seconds;
  if (failures + running / (interval + model.checkpoint_seconds) <= kMostEvents) return;
  fail(ErrorKind::usage,
       "a run of {} with a failure each {} and a checkpoint each {} is too long to simulate; choose fewer weeks or "
       "device-hours, a lower failures.per_device_hour in the cluster file, or a longer --checkpoint-interval",
       human_duration(seconds), human_duration(mean), human_duration(interval));
}

}  // namespace

double best_interval(const RunModel& model, RunPolicy policy, double seconds, uint64_t seed) {
  if (model.failures_per_second() <= 0) return kForever;
  const double daly = daly_of(model);
  const auto goodput = [&](double logarithm) {
    policy.checkpoint_interval_seconds = std::exp(logarithm);
    return simulate_run(model, policy, seconds, seed).goodput();
  };
  constexpr double kGolden = 0.6180339887498949;
  double low = std::log(daly / kSpan), high = std::log(daly * kSpan);
  double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
  double at_a = goodput(a), at_b = goodput(b);
  for (int round = 0; round < 24; ++round) {
    if (at_a >= at_b) {
      high = b;
      b = a;
      at_b = at_a;
      a = high - kGolden * (high - low);
      at_a = goodput(a);
    } else {
      low = a;
      a = b;
      at_a = at_b;
      b = low + kGolden * (high - low);
      at_b = goodput(b);
    }
  }
  return std::exp((low + high) / 2);
}

Campaign campaign(const RunModel& model, double device_hours, double usual_interval_seconds, uint64_t seed) {
  const double seconds = 3600 * device_hours / (model.hosts * model.devices_per_host);
  const double daly = daly_of(model);
  require_few_events(model, seconds, std::min(usual_interval_seconds, daly / kSpan));
  Campaign all;
  const auto add = [&](std::string name, RunPolicy policy) {
    all.rows.push_back({std::move(name), policy, simulate_run(model, policy, seconds, seed)});
  };
  RunPolicy policy{.checkpoint_interval_seconds = kForever};
  add("no checkpoints", policy);
  policy.checkpoint_interval_seconds = usual_interval_seconds;
  add("a checkpoint each so often", policy);
  policy.checkpoint_interval_seconds = daly;
  add("Daly's interval", policy);
  policy.checkpoint_interval_seconds = best_interval(model, policy, seconds, seed);
  add("the simulation's best interval", policy);
  policy.checkpoint_interval_seconds = daly;
  policy.goes_on_with_fewer = model.hosts > 1;
  if (model.hosts > 1) add("Daly's interval, goes on with fewer", policy);
  policy.spare_hosts = 1;
  add(model.hosts > 1 ? "Daly's interval, goes on with fewer, a spare host" : "Daly's interval, a spare host", policy);
  return all;
}

}  // namespace weft::simulate
