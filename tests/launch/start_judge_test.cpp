// Who keeps ranks from starting, as looks at them are judged, without MPI.
#include "weft/launch/start_judge.h"

#include <gmock/gmock.h>

namespace weft::launch {
namespace {

const JobRank kFirst{.rank = 0, .process = 100}, kSecond{.rank = 1, .process = 101};
const JobRank kStopped{.rank = 1, .process = 101, .is_stopped = true};

TEST(StartJudge, WhoIsStoppedForLongIsBlamed) {
  StartJudge judge(2, 2, {.gone = 3, .missing = 9});
  EXPECT_FALSE(judge.judge({kFirst, kStopped}));
  EXPECT_FALSE(judge.judge({kFirst, kStopped}));
  EXPECT_FALSE(judge.judge({kFirst, kSecond}));  // it went on: counted anew
  EXPECT_FALSE(judge.judge({kFirst, kStopped}));
  EXPECT_FALSE(judge.judge({kFirst, kStopped}));
  EXPECT_EQ(judge.judge({kFirst, kStopped}), (AbsentRank{.rank = 1, .stopped = 101, .looks = 3}));
}

TEST(StartJudge, WhoHasEndedIsBlamed) {
  StartJudge judge(0, 0, {.gone = 2, .missing = 9});
  EXPECT_FALSE(judge.judge({kFirst, kSecond}));
  EXPECT_FALSE(judge.judge({kFirst}));
  EXPECT_EQ(judge.judge({kFirst}), (AbsentRank{.rank = 1, .stopped = -1, .looks = 2}));
}

TEST(StartJudge, NobodyIsBlamedForBeingSlow) {
  StartJudge judge(2, 4, {.gone = 3, .missing = 3});
  for (int look = 0; look < 100; ++look) EXPECT_FALSE(judge.judge({kFirst, kSecond})) << look;
}

TEST(StartJudge, WhoseTurnNeverCameIsMissedOnceNobodyNewComes) {
  std::vector<JobRank> ranks;
  StartJudge all_here(8, 8, {.gone = 9, .missing = 3}), some_elsewhere(8, 16, {.gone = 9, .missing = 3});
  for (const int rank : {0, 1, 2, 4, 5, 6, 7}) {
    ranks.push_back({.rank = rank, .process = 100 + rank});
    for (int look = 0; look < 3; ++look) {
      EXPECT_FALSE(all_here.judge(ranks)) << rank;
      EXPECT_FALSE(some_elsewhere.judge(ranks)) << rank;
    }
  }
  EXPECT_EQ(all_here.judge(ranks), (AbsentRank{.rank = 3, .stopped = -1, .looks = 3}));
  EXPECT_EQ(some_elsewhere.judge(ranks), (AbsentRank{.rank = -1, .stopped = -1, .looks = 3}));
}

}  // namespace
}  // namespace weft::launch
