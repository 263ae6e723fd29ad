// Ranks in lock-step, each on a clock that the test moves: who is named, with steps of any length.
#include "weft/train/ranks/step_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "weft/comm/local/local_group.h"
#include "weft/comm/wait_meter.h"

namespace weft::train {
namespace {

constexpr int64_t kMicrosecond = 1000, kMillisecond = 1'000'000;  // nanoseconds, so that times add up exactly

double seconds(int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

/// How long a rank computes in a step; nanoseconds of a core.
using Work = std::function<int64_t(int rank, int64_t step)>;

class LockStep {
 public:
  LockStep(int ranks, Work work)
      : group_(std::vector<std::string>(static_cast<size_t>(ranks), "a")), work_(std::move(work)) {
    for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(group_.communicator(rank)));
  }

  /// From now on for so long out of each such period.
  void stop(int rank, int64_t stopped, int64_t period) {
    ranks_[static_cast<size_t>(rank)]->stopped = stopped;
    ranks_[static_cast<size_t>(rank)]->period = period;
  }

  /// What the first rank is told in so many rounds; all are told the same.
  std::vector<RankPace> run(int rounds) {
    std::vector<RankPace> news;
    while (rounds > 0) {
      step();
      if (!ranks_[0]->times.is_due()) continue;
      --rounds;
      for (const RankPace& pace : exchange()) news.push_back(pace);
    }
    return news;
  }

  int64_t steps() const { return steps_; }
  std::vector<double> means() const { return ranks_[0]->times.means(); }

 private:
  struct Rank {
    explicit Rank(comm::Communicator& communicator)
        : meter([this] { return seconds(now); }), times(&communicator, [this] { return seconds(now); }) {}

    int64_t now = 0, stopped = 0, period = 1;
    comm::WaitMeter meter;
    StepTimes times;

    /// Uses a core for so long, as soon as it runs.
    void compute(int64_t nanoseconds) {
      while (stopped > 0) {
        const int64_t phase = std::max(now % period, stopped), left = period - phase;
        now += phase - now % period;
        if (nanoseconds < left) break;
        nanoseconds -= left;
        now += left;
      }
      now += nanoseconds;
    }

    /// As Collectives::wait() does: it looks again and again, then sleeps, until it is woken at `end` at the latest.
    void wait_until(int64_t end) {
      meter.begin();
      double waited = 0;
      while (now < end) {
        if (waited < 100e-6) {
          compute(10 * kMicrosecond);
          waited = meter.looked();
          continue;
        }
        const double sleep = comm::sleep_in_wait(waited, 0.02);
        now = std::min(now + static_cast<int64_t>(1e9 * sleep), end);
        compute(0);
        waited = meter.looked(sleep);
      }
      meter.end();
    }
  };

  void step() {
    std::vector<int64_t> begins;
    int64_t last = 0;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      begins.push_back(ranks_[rank]->now);
      ranks_[rank]->compute(work_(static_cast<int>(rank), steps_));
      last = std::max(last, ranks_[rank]->now);
    }
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      Rank& one = *ranks_[rank];
      const double waited = one.meter.waited_seconds();
      one.wait_until(last);
      const double whole = seconds(one.now - begins[rank]);
      one.times.add({.step = whole - (one.meter.waited_seconds() - waited), .whole = whole});
    }
    ++steps_;
  }

  std::vector<RankPace> exchange() {
    std::vector<RankPace> news;
    std::vector<std::jthread> threads;
    for (size_t rank = 1; rank < ranks_.size(); ++rank)
      threads.emplace_back([this, rank] { ranks_[rank]->times.exchange(); });
    return ranks_[0]->times.exchange();
  }

  comm::LocalGroup group_;
  const Work work_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  int64_t steps_ = 0;
};

constexpr int kEnough = SlowRanks::kRounds + 1;

/// Rank 1 and no other, once.
void expect_named(const std::vector<RankPace>& news, double least_factor) {
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].rank, 1);
  EXPECT_TRUE(news[0].is_slow);
  EXPECT_GT(news[0].factor(), least_factor);
}

class StepTimesOf : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Nanoseconds, StepTimesOf,
                         testing::Values(kMillisecond / 5, 5 * kMillisecond, 500 * kMillisecond));

TEST_P(StepTimesOf, ARankThatIsStoppedForMostOfTheTimeIsNamed) {
  for (const int count : {2, 4}) {
    LockStep ranks(count, [](int, int64_t) { return GetParam(); });
    EXPECT_TRUE(ranks.run(kEnough).empty());
    ranks.stop(1, 60 * kMillisecond, 80 * kMillisecond);
    expect_named(ranks.run(kEnough), 3);
  }
}

TEST_P(StepTimesOf, RanksThatAreStoppedAlikeAreNot) {
  LockStep ranks(2, [](int, int64_t) { return GetParam(); });
  for (const int rank : {0, 1}) ranks.stop(rank, 60 * kMillisecond, (80 + rank) * kMillisecond);
  EXPECT_TRUE(ranks.run(3 * kEnough).empty());
}

class StepTimesOfShort : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Nanoseconds, StepTimesOfShort, testing::Values(kMillisecond / 5, 5 * kMillisecond));

// It has a quarter of the others' work, so that three quarters of the time in which it runs it waits for them.
TEST_P(StepTimesOfShort, AStandstillInARanksOwnWaitCountsToo) {
  for (const int count : {2, 4}) {
    LockStep ranks(count, [](int rank, int64_t) { return rank == 1 ? GetParam() / 4 : GetParam(); });
    EXPECT_TRUE(count == 2 || ranks.run(kEnough).empty());
    ranks.stop(1, 60 * kMillisecond, 80 * kMillisecond);
    expect_named(ranks.run(kEnough), 2);
  }
}

// 3 times as slow in all: (99 + 200) / 100.
TEST_P(StepTimesOfShort, ARankThatIsMuchSlowerInOneStepOfAHundredIsNamed) {
  LockStep ranks(2, [](int rank, int64_t step) { return (rank == 1 && step % 100 == 50 ? 200 : 1) * GetParam(); });
  expect_named(ranks.run(kEnough), 2);
  EXPECT_NEAR(ranks.means()[1] / ranks.means()[0], 2.99, 0.5);
}

// 1.04 times as slow in all.
TEST_P(StepTimesOfShort, ARankThatIsALittleSlowerInOneStepOfAHundredIsNot) {
  LockStep ranks(2, [](int rank, int64_t step) { return (rank == 1 && step % 100 == 50 ? 5 : 1) * GetParam(); });
  EXPECT_TRUE(ranks.run(3 * kEnough).empty());
  EXPECT_NEAR(ranks.means()[1] / ranks.means()[0], 1.04, 0.005);
}

TEST(StepTimes, RoundsOfLongStepsHaveTwo) {
  LockStep ranks(2, [](int, int64_t) { return 10'000 * kMillisecond; });
  ranks.run(3);
  EXPECT_EQ(ranks.steps(), 6);
}

TEST(StepTimes, RoundsOfShortStepsTakeTwoSeconds) {
  LockStep ranks(2, [](int, int64_t) { return 10 * kMillisecond; });
  ranks.run(3);
  EXPECT_EQ(ranks.steps(), 600);
}

// Where ranks average their weights they wait between steps alone.
TEST(StepTimes, TimeBetweenStepsCounts) {
  comm::run_ranks({"a", "a"}, [](comm::Communicator& communicator) {
    double now = 0;
    StepTimes times(&communicator, [&now] { return now; });
    std::vector<RankPace> news;
    for (int round = 0; round < SlowRanks::kRounds; ++round) {
      for (int step = 0; step < 4; ++step) times.add({.step = 0.5, .whole = 0.5});
      times.add_between(communicator.rank() == 1 ? OwnSeconds{.step = 2, .whole = 2} : OwnSeconds{.whole = 2});
      now += 4;
      EXPECT_EQ(times.is_due(), communicator.rank() == 0);
      news = times.exchange();
    }
    expect_named(news, 1.9);
    EXPECT_EQ(times.means(), (std::vector<double>{0.5, 1}));
  });
}

}  // namespace
}  // namespace weft::train
