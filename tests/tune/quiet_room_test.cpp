// Who may train and who may measure, of the processes that work on one study. Locks of two open files exclude each
// other as those of two processes do.
#include "weft/tune/quiet_room.h"

#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"

namespace weft::tune {
namespace {

class QuietRoomTest : public FilesTest {};

TEST_F(QuietRoomTest, ManyTrainAtATime) {
  QuietRoom one(path("")), other(path(""));
  EXPECT_TRUE(one.enter());
  EXPECT_TRUE(other.enter());
  EXPECT_TRUE(one.enter());
}

TEST_F(QuietRoomTest, NobodyMeasuresWhileSomebodyTrains) {
  QuietRoom one(path("")), other(path(""));
  ASSERT_TRUE(one.enter());
  EXPECT_FALSE(other.enter_alone());
  one.leave();
  EXPECT_TRUE(other.enter_alone());
}

TEST_F(QuietRoomTest, WhoTrainsStartsNothingNewWhileSomebodyWaitsToMeasure) {
  QuietRoom one(path("")), other(path(""));
  ASSERT_TRUE(one.enter());
  ASSERT_FALSE(other.enter_alone());
  EXPECT_FALSE(one.enter());
}

TEST_F(QuietRoomTest, NobodyTrainsWhileSomebodyMeasures) {
  QuietRoom one(path("")), other(path(""));
  ASSERT_TRUE(one.enter_alone());
  EXPECT_FALSE(other.enter());
  EXPECT_FALSE(other.enter_alone());
  one.leave_alone();
  EXPECT_TRUE(other.enter());
}

TEST_F(QuietRoomTest, AnEndedProcessHoldsNothing) {
  QuietRoom other(path(""));
  {
    QuietRoom one(path(""));
    ASSERT_TRUE(one.enter_alone());
  }
  EXPECT_TRUE(other.enter());
}

}  // namespace
}  // namespace weft::tune
