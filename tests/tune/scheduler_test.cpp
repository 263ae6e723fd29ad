// Schedulers on data made by hand.
#include "weft/tune/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tests/support/error_of.h"

namespace weft::tune {
namespace {

using Progress = TrialProgress::State;
using test::error_of;

/// Runs all jobs in turn on one worker: the loss of trial i at r epochs is loss(i, r). Epochs trained in all.
struct Simulated {
  std::vector<TrialProgress> trials;
  int64_t epochs = 0;
  std::map<int64_t, int> reached;  // how many trials trained so far
};

Simulated simulate(const SchedulerOptions& options, const std::function<double(size_t, int64_t)>& loss) {
  Simulated run;
  for (int round = 0; round < 10'000; ++round) {
    const Job job = next_job(options, run.trials);
    if (job.kind == Job::Kind::none || job.kind == Job::Kind::wait) break;
    size_t trial = job.trial;
    if (job.kind == Job::Kind::start) {
      trial = run.trials.size();
      run.trials.push_back({.bracket = job.bracket});
    }
    TrialProgress& progress = run.trials[trial];
    for (int64_t epoch = progress.target + 1; epoch <= job.target; ++epoch)
      progress.curve.emplace_back(epoch, loss(trial, epoch));
    run.epochs += job.target - progress.target;
    progress.target = job.target;
    progress.state = job.target == options.most ? Progress::ended : Progress::paused;
    ++run.reached[job.target];
  }
  return run;
}

double steady_loss(size_t trial, int64_t epoch) {
  return static_cast<double>((trial * 7) % 27) + 1.0 / static_cast<double>(epoch);
}

TEST(Scheduler, NoneTrainsEveryTrialToItsEnd) {
  const Simulated run = simulate({.name = "none", .most = 9, .trials = 5}, steady_loss);
  EXPECT_EQ(run.trials.size(), 5u);
  EXPECT_EQ(run.epochs, 45);
}

TEST(Scheduler, HalvingKeepsTheBestThird) {
  const Simulated run = simulate({.name = "halving", .least = 1, .most = 9, .trials = 27}, steady_loss);
  EXPECT_EQ(run.reached.at(1), 27);
  EXPECT_EQ(run.reached.at(3), 9);
  EXPECT_EQ(run.reached.at(9), 3);
  for (const TrialProgress& trial : run.trials)
    EXPECT_EQ(trial.target == 9, trial.loss_at(1) < 4) << "losses 1, 2, 3 are the three best";
}

TEST(Scheduler, HalvingWaitsForTheWholeRound) {
  std::vector<TrialProgress> trials(3, {.state = Progress::paused, .target = 1, .curve = {{1, 1.0}}});
  trials[1].state = Progress::running;
  trials[1].curve.clear();
  const SchedulerOptions options{.name = "halving", .least = 1, .most = 3, .trials = 3};
  EXPECT_EQ(next_job(options, trials).kind, Job::Kind::wait);
  trials[1] = {.state = Progress::paused, .target = 1, .curve = {{1, 0.5}}};
  const Job job = next_job(options, trials);
  EXPECT_EQ(job.kind, Job::Kind::go_on);
  EXPECT_EQ(job.trial, 1u);
  EXPECT_EQ(job.target, 3);
}

TEST(Scheduler, AshaPromotesWithoutWaiting) {
  std::vector<TrialProgress> trials(3, {.state = Progress::paused, .target = 1, .curve = {{1, 1.0}}});
  trials[2].curve = {{1, 0.1}};
  trials.push_back({.state = Progress::running, .target = 1});
  const SchedulerOptions options{.name = "asha", .least = 1, .most = 9, .trials = 100};
  const Job job = next_job(options, trials);
  EXPECT_EQ(job.kind, Job::Kind::go_on);
  EXPECT_EQ(job.trial, 2u);
  EXPECT_EQ(job.target, 3);
  trials[2].state = Progress::running;
  trials[2].target = 3;
  EXPECT_EQ(next_job(options, trials).kind, Job::Kind::start) << "of three one goes on, and it does already";
}

TEST(Scheduler, AshaNeverLetsAWorkerIdleWhileTrialsAreLeft) {
  const SchedulerOptions options{.name = "asha", .least = 1, .most = 27, .trials = 200};
  std::vector<TrialProgress> trials;
  std::vector<size_t> running;
  for (int round = 0; trials.size() < 200; ++round) {
    const Job job = next_job(options, trials);
    ASSERT_TRUE(job.kind == Job::Kind::start || job.kind == Job::Kind::go_on) << round;
    if (job.kind == Job::Kind::start) trials.push_back({.target = job.target});
    const size_t trial = job.kind == Job::Kind::start ? trials.size() - 1 : job.trial;
    trials[trial].state = Progress::running;
    trials[trial].target = job.target;
    running.push_back(trial);
    if (running.size() < 2) continue;  // two workers: the older job ends
    TrialProgress& ended = trials[running.front()];
    running.erase(running.begin());
    ended.curve.emplace_back(ended.target, steady_loss(static_cast<size_t>(&ended - trials.data()), ended.target));
    ended.state = ended.target == options.most ? Progress::ended : Progress::paused;
  }
  EXPECT_GT(std::count_if(trials.begin(), trials.end(), [](const auto& trial) { return trial.target == 27; }), 3);
}

TEST(Scheduler, AFailedTrialIsNotPromoted) {
  std::vector<TrialProgress> trials(3, {.state = Progress::paused, .target = 1, .curve = {{1, 1.0}}});
  trials[0] = {.state = Progress::ended, .target = 1, .curve = {}};
  const Job job = next_job({.name = "halving", .least = 1, .most = 3, .trials = 3}, trials);
  EXPECT_EQ(job.kind, Job::Kind::go_on);
  EXPECT_EQ(job.trial, 1u);
}

TEST(Scheduler, HyperbandBeginsGroupsWithDifferentTraining) {
  const SchedulerOptions options{.name = "hyperband", .least = 1, .most = 9, .reduction = 3};
  EXPECT_EQ(bracket_size(options, 0), 9);
  EXPECT_EQ(bracket_size(options, 1), 5);
  EXPECT_EQ(bracket_size(options, 2), 3);
  EXPECT_EQ(rungs_of(options, 0), (std::vector<int64_t>{1, 3, 9}));
  EXPECT_EQ(rungs_of(options, 1), (std::vector<int64_t>{3, 9}));
  EXPECT_EQ(rungs_of(options, 2), (std::vector<int64_t>{9}));
  EXPECT_EQ(bracket_size(options, 3), 9) << "and again";
  SchedulerOptions of_all = options;
  of_all.trials = 17;
  const Simulated run = simulate(of_all, steady_loss);
  EXPECT_EQ(run.trials.size(), 17u);
  EXPECT_EQ(run.reached.at(1), 9);
  EXPECT_EQ(run.reached.at(3), 3 + 5);
  EXPECT_EQ(run.reached.at(9), 1 + 1 + 3);
}

TEST(Scheduler, TheMedianRuleStopsTheWorseHalf) {
  const SchedulerOptions options{.name = "median", .least = 1, .most = 10, .trials = 20};
  std::vector<TrialProgress> trials;
  for (int trial = 0; trial < 5; ++trial) {
    trials.push_back({.state = Progress::ended, .target = 10, .curve = {}});
    for (int64_t epoch = 1; epoch <= 10; ++epoch)
      trials.back().curve.emplace_back(epoch, trial + 10.0 / static_cast<double>(epoch));
  }
  trials.push_back(
      {.state = Progress::running, .target = 10, .curve = {{1, 13}, {2, 9.6}}});  // means at 2: 7.5 to 11.5
  EXPECT_TRUE(should_stop(options, trials, 5));
  trials[5].curve[1].second = 9.4;
  EXPECT_FALSE(should_stop(options, trials, 5));
  trials.erase(trials.begin());
  trials.back().curve[1].second = 100;
  EXPECT_FALSE(should_stop(options, trials, 4)) << "four others are too few";
}

TEST(Scheduler, NamesMistakes) {
  EXPECT_EQ(error_of([] { check_scheduler({.name = "ahsa"}); }, ErrorKind::usage),
            "there is no scheduler 'ahsa'; did you mean 'asha'?");
  EXPECT_NE(error_of([] {
              check_scheduler({.name = "asha", .least = 2, .most = 5});
            }).find("leave no room for a second round"),
            std::string::npos);
  EXPECT_NE(error_of([] { check_scheduler({.name = "median", .least = 7, .most = 5}); }).find("not between 1 and"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::tune
