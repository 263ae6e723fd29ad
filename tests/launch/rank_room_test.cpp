// What is said of the end of a start, and the room that it leaves.
#include "weft/launch/rank_room.h"

#include <gmock/gmock.h>

namespace weft::launch {
namespace {

TEST(JobEnds, AreDescribedByWhatIsKnown) {
  EXPECT_EQ(
      describe({.code = 137, .lost = LostRank{.rank = 2, .host = "b", .reason = "was ended by signal 9 (Killed)"}}),
      "rank 2 on host 'b' was ended by signal 9 (Killed) (exit code 137)");
  EXPECT_EQ(describe({.code = 75, .lost = LostRank{.rank = 2, .host = "b"}}),
            "rank 2 on host 'b' was lost (exit code 75)");
  EXPECT_EQ(describe({.code = 75, .lost = LostRank{.rank = -1, .host = "b", .reason = "is cut off from all others"}}),
            "host 'b' is cut off from all others");
  EXPECT_EQ(describe({.code = 137}), "a rank was ended by signal 9 (Killed) (exit code 137)");
  EXPECT_EQ(describe({.code = 137, .was_deserted = true}),
            "all ranks of this host have ended, and mpirun, which went on, was ended (exit code 137)");
  EXPECT_EQ(describe({.code = 75}), "a rank was lost (exit code 75)");
  EXPECT_EQ(describe({.code = 137, .launcher_killed = true}), "mpirun was killed by signal 9");
}

TEST(JobEnds, AreLossesWhereARankWasKilledOrMissed) {
  EXPECT_TRUE(lost_a_rank({.code = 137}));
  EXPECT_TRUE(lost_a_rank({.code = 75}));
  EXPECT_TRUE(lost_a_rank({.code = 1, .lost = LostRank{.rank = 2, .host = "b"}}));
  EXPECT_FALSE(lost_a_rank({.code = 1}));  // the training itself has failed
  EXPECT_FALSE(lost_a_rank({.code = 0}));
  EXPECT_FALSE(lost_a_rank({.code = 137, .unstarted = "rank 10 on host 'a' could not be started: ..."}));
}

TEST(RankRoom, OfThisHostASlotIsTakenAwayButForAKilledLauncher) {
  RankRoom room{.hosts = {}, .slots = 4};
  room.take_away({.code = 137}, {});
  EXPECT_EQ(room.slots, 3);
  room.take_away({.code = 137, .launcher_killed = true}, {});
  EXPECT_EQ(room.slots, 3);
}

}  // namespace
}  // namespace weft::launch
