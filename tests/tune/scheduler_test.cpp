// Schedulers on data made by hand.
#include "weft/tune/schedulers/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "tests/support/error_of.h"
#include "weft/tune/schedulers/population.h"

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
    if (job.kind == Job::Kind::copy) {
      trial = run.trials.size();
      run.trials.push_back({.bracket = job.bracket, .target = job.begun, .begun = job.begun});
      for (const auto& [at, measured] : run.trials[job.trial].curve)
        if (at <= job.begun) run.trials.back().curve.emplace_back(at, measured);
    }
    TrialProgress& progress = run.trials[trial];
    for (int64_t epoch = progress.target + 1; epoch <= job.target; ++epoch)
      progress.curve.emplace_back(epoch, loss(trial, epoch));
    run.epochs += job.target - progress.target;
    progress.target = job.target;
    progress.has_finished = job.target == options.most;
    progress.state = progress.has_finished ? Progress::ended : Progress::paused;
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

TEST(Scheduler, AshaTrainsTheBestToItsEndWhereNobodyWouldComeThere) {
  const Simulated run = simulate({.name = "asha", .least = 1, .most = 9, .trials = 8}, steady_loss);
  ASSERT_EQ(run.reached.count(9), 1u);
  EXPECT_EQ(run.reached.at(9), 1);
  EXPECT_EQ(run.reached.at(3), 2) << "8 / 3 go on to the second round, and 2 / 3 of them, none, to the third";
  EXPECT_TRUE(run.trials[0].has_finished) << "trial 0 has the least loss";
}

TEST(Scheduler, AnotherTrialComesToItsEndWhereTheBestFails) {
  std::vector<TrialProgress> trials(3, {.state = Progress::paused, .target = 1, .curve = {{1, 2.0}}});
  trials[0] = {.state = Progress::ended, .target = 3, .curve = {{1, 0.5}}};
  trials[2].curve = {{1, 1.0}};
  const Job job = next_job({.name = "asha", .least = 1, .most = 3, .trials = 3}, trials);
  EXPECT_EQ(job.kind, Job::Kind::go_on);
  EXPECT_EQ(job.trial, 2u);
  EXPECT_EQ(job.target, 3);
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

TEST(Scheduler, APercentileStopsAllButTheBest) {
  SchedulerOptions options{.name = "percentile", .least = 1, .most = 10, .trials = 20};
  std::vector<TrialProgress> trials;
  for (int trial = 0; trial < 5; ++trial)
    trials.push_back({.state = Progress::ended, .target = 10, .curve = {{1, trial}, {2, trial}, {10, trial}}});
  trials.push_back({.state = Progress::running, .target = 10, .curve = {{1, 9.0}, {2, 1.1}}});
  EXPECT_TRUE(should_stop(options, trials, 5)) << "a quarter of the others are at 1 or below";
  trials[5].curve[1].second = 0.9;
  EXPECT_FALSE(should_stop(options, trials, 5));
  trials[5].curve[1].second = 3.4;  // between 3 and 4 the percentile 87.5 is 3.5
  options.percentile = 87.5;
  EXPECT_FALSE(should_stop(options, trials, 5));
  trials[5].curve[1].second = 3.6;
  EXPECT_TRUE(should_stop(options, trials, 5));
}

TEST(Scheduler, NamesMistakes) {
  EXPECT_NE(error_of([] { check_scheduler({.name = "percentile", .percentile = 100}); }).find("between 0 and 100 %"),
            std::string::npos);
  EXPECT_EQ(error_of([] { check_scheduler({.name = "ahsa"}); }, ErrorKind::usage),
            "there is no scheduler 'ahsa'; did you mean 'asha'?");
  EXPECT_NE(error_of([] {
              check_scheduler({.name = "asha", .least = 2, .most = 5});
            }).find("leave no room for a second round"),
            std::string::npos);
  EXPECT_NE(error_of([] { check_scheduler({.name = "median", .least = 7, .most = 5}); }).find("not between 1 and"),
            std::string::npos);
}

TEST(Scheduler, CurveStopsATrialThatWillNotComeNearTheBest) {
  const SchedulerOptions options{.name = "curve", .least = 1, .most = 20, .trials = 3};
  std::vector<TrialProgress> trials(3);
  trials[0].state = Progress::ended;
  for (int64_t epoch = 1; epoch <= 20; ++epoch)
    trials[0].curve.emplace_back(epoch, 0.1 + 1.0 / static_cast<double>(epoch));
  for (int64_t epoch = 1; epoch <= 6; ++epoch) {
    trials[1].curve.emplace_back(epoch, 0.8 + 0.5 / static_cast<double>(epoch));
    trials[2].curve.emplace_back(epoch, 0.05 + 1.0 / static_cast<double>(epoch));
  }
  EXPECT_TRUE(should_stop(options, trials, 1));
  EXPECT_FALSE(should_stop(options, trials, 2));
  trials[1].curve.resize(3);
  EXPECT_FALSE(should_stop(options, trials, 1)) << "three points say nothing";
}

SchedulerOptions population(int64_t members, int64_t most = 6) {
  return {.name = "population", .least = 2, .most = most, .trials = members};
}

TEST(Population, ReplacesTheWorstQuarterByCopiesOfTheBestAfterEachRound) {
  // Losses 0 to 7, which members keep; a copy is as good as a new trial of its number.
  const Simulated run = simulate(population(8), [](size_t trial, int64_t) { return static_cast<double>(trial); });
  ASSERT_EQ(run.trials.size(), 8u + 2 + 2);
  EXPECT_EQ(run.trials[8].bracket, 7);
  EXPECT_EQ(run.trials[9].bracket, 6);
  EXPECT_EQ(run.trials[8].begun, 2);
  EXPECT_EQ(run.trials[8].loss_at(2), 0) << "of trial 0, whose copy it is";
  EXPECT_EQ(run.trials[9].loss_at(2), 1);
  EXPECT_EQ(run.trials[10].begun, 4);
  EXPECT_EQ(run.trials[7].target, 2) << "it has given way";
  EXPECT_EQ(run.epochs, 8 * 6);
}

TEST(Population, AllMembersComeToTheEnd) {
  const Simulated run = simulate(population(5, 7), steady_loss);
  std::map<int64_t, int64_t> target_of_place;
  for (const TrialProgress& trial : run.trials) target_of_place[trial.bracket] = trial.target;  // of the newest
  ASSERT_EQ(target_of_place.size(), 5u);
  for (const auto& [place, target] : target_of_place) EXPECT_EQ(target, 7) << place;
}

TEST(Population, WaitsForTheWholeRound) {
  std::vector<TrialProgress> trials;
  for (int64_t place = 0; place < 4; ++place)
    trials.push_back(
        {.state = Progress::paused, .bracket = place, .target = 2, .curve = {{2, static_cast<double>(place)}}});
  trials[1].state = Progress::running;
  EXPECT_EQ(next_job(population(4), trials).kind, Job::Kind::wait);
  trials[1].state = Progress::paused;
  const Job job = next_job(population(4), trials);
  EXPECT_EQ(job.kind, Job::Kind::copy);
  EXPECT_EQ(job.trial, 0u);
  EXPECT_EQ(job.bracket, 3);
  EXPECT_EQ(job.target, 4);
}

TEST(Population, CopiesAreMadeBeforeTheirOriginGoesOn) {
  std::vector<TrialProgress> trials;
  for (int64_t place = 0; place < 4; ++place)
    trials.push_back(
        {.state = Progress::paused, .bracket = place, .target = 2, .curve = {{2, static_cast<double>(place)}}});
  trials.push_back({.state = Progress::running, .bracket = 3, .target = 4, .begun = 2, .curve = {{2, 0.0}}});
  const Job job = next_job(population(4), trials);
  EXPECT_EQ(job.kind, Job::Kind::go_on);
  EXPECT_EQ(job.trial, 0u);
}

TEST(Population, AFailedMemberIsReplacedWhateverItsPlace) {
  std::vector<TrialProgress> trials;
  for (int64_t place = 0; place < 4; ++place)
    trials.push_back(
        {.state = Progress::paused, .bracket = place, .target = 2, .curve = {{2, static_cast<double>(place)}}});
  trials[1] = {.state = Progress::ended, .bracket = 1, .target = 2, .curve = {}};
  const Job job = next_job(population(4), trials);
  EXPECT_EQ(job.kind, Job::Kind::copy);
  EXPECT_EQ(job.bracket, 1);
}

TEST(Population, RanksByTheWeightsAtHandNotByTheBestEver) {
  std::vector<TrialProgress> trials;
  for (int64_t place = 0; place < 4; ++place)
    trials.push_back({.state = Progress::paused, .bracket = place, .target = 2, .curve = {{1, 5.0}, {2, 1.0}}});
  trials[2].curve = {{1, 0.1}, {2, 9.0}};
  const Job job = next_job(population(4), trials);
  EXPECT_EQ(job.kind, Job::Kind::copy);
  EXPECT_EQ(job.bracket, 2);
}

TEST(Population, NeedsASecondRound) {
  EXPECT_NE(error_of([] { check_scheduler(population(4, 2)); }).find("no room for a second round"), std::string::npos);
}

TEST(Explored, StaysInTheSpaceAndNearItsOrigin) {
  const Space space({log_real("rate", 1e-4, 1), real("momentum", 0, 1), integer("width", 8, 64, 8),
                     choice("kind", {std::string("a"), std::string("b")})});
  const Values from = space.values({1e-2, 0.5, 32.0, 0.0});
  int near = 0;
  for (int64_t number = 0; number < 400; ++number) {
    const Values values = explored(space, from, 1, number);
    const Point point = space.point(values);  // Error(data) outside of the space
    EXPECT_EQ(values, explored(space, from, 1, number));
    const double factor = *point[0] / 1e-2;
    near += std::abs(factor - 1.25) < 1e-9 || std::abs(factor - 0.8) < 1e-9;
    EXPECT_NE(*point[1], 0.5);
  }
  EXPECT_NEAR(near, 300, 40) << "three in four move, one is drawn anew";
}

TEST(Explored, DimensionsThatItsChoiceDoesNotHaveAreLeftAway) {
  const Space space({choice("kind", {std::string("a"), std::string("b")}), real("of_a", 0, 1).when("kind", {"a"})});
  for (int64_t number = 0; number < 50; ++number) {
    const Values values = explored(space, space.values({0.0, 0.5}), 3, number);
    EXPECT_EQ(has_value(values, "of_a"), value_of(values, "kind") == KeyValue(std::string("a")));
  }
}

}  // namespace
}  // namespace weft::tune
