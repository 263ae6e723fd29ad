// Successive halving: Jamieson and Talwalkar, AISTATS 2016. Hyperband: Li et al., JMLR 18 (2018). ASHA: Li et al., "A
// system for massively parallel hyperparameter tuning", MLSys 2020.
#include "weft/tune/schedulers/scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/predict/learning_curve.h"
#include "weft/tune/schedulers/population.h"

namespace weft::tune {

const std::vector<std::string>& scheduler_names() {
  static const std::vector<std::string> names = {"none",   "asha",       "halving", "hyperband",
                                                 "median", "percentile", "curve",   "population"};
  return names;
}

bool ends_trials_early(const SchedulerOptions& options) {
  return options.name == "median" || options.name == "percentile" || options.name == "curve";
}

namespace {

/// Whether trials pause before their end.
bool has_rounds(const SchedulerOptions& options) { return options.name != "none" && !ends_trials_early(options); }

}  // namespace

void check_scheduler(const SchedulerOptions& options) {
  const auto& names = scheduler_names();
  if (std::find(names.begin(), names.end(), options.name) == names.end())
    fail(ErrorKind::usage, "there is no scheduler '{}'{}", options.name, suggestion(options.name, names));
  if (options.reduction < 2)
    fail(ErrorKind::usage, "one of {} trials cannot go on; the reduction is at least 2", options.reduction);
  if (options.least < 1 || options.least > options.most)
    fail(ErrorKind::usage, "the least training, {}, is not between 1 and that of a whole trial, {}", options.least,
         options.most);
  if (options.name == "population" && options.most <= options.least)
    fail(ErrorKind::usage,
         "{} epochs leave no room for a second round after {}; train for more epochs, or take the scheduler none",
         options.most, options.least);
  if (!(options.percentile > 0 && options.percentile < 100))
    fail(ErrorKind::usage, "--percentile {}: between 0 and 100 % of the trials go on", options.percentile);
  if (has_rounds(options) && options.name != "population" && options.most < options.least * options.reduction)
    fail(ErrorKind::usage,
         "{} epochs leave no room for a second round of {} after {}; train for more epochs, or take the scheduler none",
         options.most, options.reduction, options.least);
}

double TrialProgress::loss_at(int64_t resource) const {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [at, loss] : curve)
    if (at <= resource) best = std::min(best, loss);
  return best;
}

namespace {

bool has_brackets(const SchedulerOptions& options) { return options.name == "halving" || options.name == "hyperband"; }

/// How many rounds there can be behind the first one.
int64_t most_promotions(const SchedulerOptions& options) {
  int64_t promotions = 0;
  for (int64_t resource = options.least; resource * options.reduction <= options.most; resource *= options.reduction)
    ++promotions;
  return promotions;
}

/// Of the trials of this bracket.
int64_t promotions_of(const SchedulerOptions& options, int64_t bracket) {
  const int64_t most = most_promotions(options);
  return options.name == "hyperband" ? most - bracket % (most + 1) : most;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent-- > 0) result *= base;
  return result;
}

}  // namespace

std::vector<int64_t> rungs_of(const SchedulerOptions& options, int64_t bracket) {
  if (!has_rounds(options)) return {options.most};
  if (options.name == "population") {
    std::vector<int64_t> ends;
    for (int64_t end = options.least; end < options.most; end += options.least) ends.push_back(end);
    ends.push_back(options.most);
    return ends;
  }
  std::vector<int64_t> rungs;
  for (int64_t left = promotions_of(options, bracket); left >= 0; --left)
    rungs.push_back(std::max<int64_t>(options.least, options.most / power(options.reduction, left)));
  return rungs;
}

int64_t bracket_size(const SchedulerOptions& options, int64_t bracket) {
  if (!has_brackets(options)) return options.trials;
  if (options.name == "halving")
    return options.trials > 0 ? options.trials : power(options.reduction, most_promotions(options));
  const int64_t promotions = promotions_of(options, bracket), most = most_promotions(options);
  const int64_t first = power(options.reduction, promotions);
  return ((most + 1) * first + promotions) / (promotions + 1);  // rounded up
}

namespace {

std::vector<size_t> trials_of_bracket(const std::vector<TrialProgress>& trials, int64_t bracket) {
  std::vector<size_t> found;
  for (size_t trial = 0; trial < trials.size(); ++trial)
    if (trials[trial].bracket == bracket) found.push_back(trial);
  return found;
}

/// Those that have been measured at this amount of training or were to be, the best first.
std::vector<size_t> ranked_at(const std::vector<TrialProgress>& trials, const std::vector<size_t>& candidates,
                              int64_t resource) {
  std::vector<size_t> ranked;
  for (const size_t trial : candidates) {
    const TrialProgress& progress = trials[trial];
    const bool is_on_its_way = progress.state == TrialProgress::State::running && progress.target <= resource;
    if (progress.target >= resource && !is_on_its_way && std::isfinite(progress.loss_at(resource)))
      ranked.push_back(trial);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](size_t a, size_t b) { return trials[a].loss_at(resource) < trials[b].loss_at(resource); });
  return ranked;
}

bool waits_at(const TrialProgress& trial, int64_t resource) {
  return trial.state == TrialProgress::State::paused && trial.target == resource;
}

/// The first of the best `count` that waits at this rung.
Job promotion(const std::vector<TrialProgress>& trials, const std::vector<size_t>& ranked, size_t count, int64_t from,
              int64_t to) {
  for (size_t place = 0; place < std::min(count, ranked.size()); ++place)
    if (waits_at(trials[ranked[place]], from)) return {Job::Kind::go_on, ranked[place], 0, to};
  return {};
}

Job asha_promotion(const SchedulerOptions& options, const std::vector<TrialProgress>& trials) {
  const std::vector<int64_t> rungs = rungs_of(options, 0);
  const std::vector<size_t> all = trials_of_bracket(trials, 0);
  for (size_t rung = rungs.size() - 1; rung-- > 0;) {
    const std::vector<size_t> ranked = ranked_at(trials, all, rungs[rung]);
    const size_t count = ranked.size() / static_cast<size_t>(options.reduction);
    const Job job = promotion(trials, ranked, count, rungs[rung], rungs[rung + 1]);
    if (job.kind == Job::Kind::go_on) return job;
  }
  return {};
}

/// In a bracket all of whose trials have begun.
Job halving_promotion(const SchedulerOptions& options, const std::vector<TrialProgress>& trials, int64_t bracket) {
  const std::vector<int64_t> rungs = rungs_of(options, bracket);
  const std::vector<size_t> all = trials_of_bracket(trials, bracket);
  auto left = static_cast<int64_t>(all.size());
  for (size_t rung = 0; rung + 1 < rungs.size(); ++rung) {
    const bool some_are_on_their_way = std::any_of(all.begin(), all.end(), [&](size_t trial) {
      return trials[trial].state == TrialProgress::State::running && trials[trial].target <= rungs[rung];
    });
    if (some_are_on_their_way) return {};
    left = std::max<int64_t>(1, left / options.reduction);
    const Job job =
        promotion(trials, ranked_at(trials, all, rungs[rung]), static_cast<size_t>(left), rungs[rung], rungs[rung + 1]);
    if (job.kind == Job::Kind::go_on) return job;
  }
  return {};
}

Job bracket_job(const SchedulerOptions& options, const std::vector<TrialProgress>& trials, bool may_start) {
  int64_t last = 0;
  for (const TrialProgress& trial : trials) last = std::max(last, trial.bracket);
  for (int64_t bracket = 0; bracket <= last + 1; ++bracket) {
    const auto begun = static_cast<int64_t>(trials_of_bracket(trials, bracket).size());
    if (begun < bracket_size(options, bracket) && may_start)
      return {Job::Kind::start, 0, bracket, rungs_of(options, bracket).front()};
    const Job job = halving_promotion(options, trials, bracket);
    if (job.kind == Job::Kind::go_on) return job;
  }
  return {};
}

/// To the end of the best one that is paused, where nobody has come there: it is the result of the search.
Job finishing_job(const SchedulerOptions& options, const std::vector<TrialProgress>& trials) {
  Job job;
  double best = std::numeric_limits<double>::infinity();
  for (size_t trial = 0; trial < trials.size(); ++trial) {
    const TrialProgress& progress = trials[trial];
    if (progress.has_finished) return {};
    if (progress.state != TrialProgress::State::paused || progress.is_held) continue;
    if (const double loss = progress.loss_at(progress.target); loss < best) {
      best = loss;
      job = {Job::Kind::go_on, trial, 0, options.most};
    }
  }
  return job;
}

}  // namespace

Job next_job(const SchedulerOptions& options, const std::vector<TrialProgress>& trials) {
  const bool may_start = options.trials == 0 || static_cast<int64_t>(trials.size()) < options.trials;
  Job job;
  const bool is_population = options.name == "population";
  if (is_population)
    job = population_job(options, trials);
  else if (has_brackets(options))
    job = bracket_job(options, trials, may_start);
  else if (options.name == "asha")
    job = asha_promotion(options, trials);
  if (job.kind == Job::Kind::none && may_start && !has_brackets(options) && !is_population)
    job = {Job::Kind::start, 0, 0, rungs_of(options, 0).front()};
  const bool some_run = std::any_of(trials.begin(), trials.end(), [](const TrialProgress& trial) {
    return trial.state == TrialProgress::State::running;
  });
  if (job.kind == Job::Kind::none && some_run) job.kind = Job::Kind::wait;
  if (job.kind == Job::Kind::none && !may_start) job = finishing_job(options, trials);
  return job;
}

namespace {

/// Of sorted numbers, between two of them in proportion.
double at_percentile(const std::vector<double>& sorted, double percentile) {
  const double place = percentile / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

/// Worse than the percentile of the others' mean losses up to here.
bool is_poor(const std::vector<TrialProgress>& trials, size_t trial, double percentile) {
  constexpr size_t kLeastOthers = 5;
  const TrialProgress& own = trials[trial];
  const int64_t resource = own.curve.back().first;
  std::vector<double> means;  // of each other trial's losses up to here
  for (size_t other = 0; other < trials.size(); ++other) {
    if (other == trial || trials[other].state == TrialProgress::State::running) continue;
    double sum = 0;
    int64_t count = 0, furthest = 0;
    for (const auto& [at, loss] : trials[other].curve) {
      furthest = std::max(furthest, at);
      if (at > resource) continue;
      sum += loss;
      ++count;
    }
    if (count > 0 && furthest >= resource) means.push_back(sum / static_cast<double>(count));
  }
  if (means.size() < kLeastOthers) return false;
  std::sort(means.begin(), means.end());
  return own.loss_at(resource) > at_percentile(means, percentile);
}

/// Whether its curve leads past what the best trial has reached that trained to its end.
bool leads_nowhere(const SchedulerOptions& options, const std::vector<TrialProgress>& trials, size_t trial) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t other = 0; other < trials.size(); ++other)
    if (other != trial && !trials[other].curve.empty() && trials[other].curve.back().first >= options.most)
      best = std::min(best, trials[other].loss_at(options.most));
  const auto reached = predict::extrapolate(trials[trial].curve, options.most);
  return reached && std::isfinite(best) && reached->low > best;
}

}  // namespace

bool should_stop(const SchedulerOptions& options, const std::vector<TrialProgress>& trials, size_t trial) {
  const TrialProgress& own = trials[trial];
  if (own.curve.empty()) return false;
  const int64_t resource = own.curve.back().first;
  if (resource < options.least || resource >= options.most) return false;
  if (options.name == "curve") return leads_nowhere(options, trials, trial);
  if (options.name == "median") return is_poor(trials, trial, 50);
  return options.name == "percentile" && is_poor(trials, trial, options.percentile);
}

}  // namespace weft::tune
