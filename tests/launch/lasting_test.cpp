// How long something lasts, on a clock of the tests.
#include "weft/launch/lasting.h"

#include <gtest/gtest.h>

namespace weft::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Lasting, CountsFromTheFirstLookThatFindsIt) {
  const Lasting::Clock::time_point begin{};
  Lasting lasting(milliseconds(200));
  lasting.look(false, begin);
  for (int look = 1; look <= 10; ++look) lasting.look(true, begin + milliseconds(100) * look);
  EXPECT_EQ(lasting.time(), milliseconds(900));
  lasting.look(false, begin + milliseconds(1100));
  EXPECT_EQ(lasting.time(), milliseconds(0));
}

TEST(Lasting, AProcessThatStoodStillBlamesNobody) {
  const Lasting::Clock::time_point begin{};
  Lasting lasting(milliseconds(200));
  lasting.look(true, begin);
  lasting.look(true, begin + seconds(60));
  EXPECT_EQ(lasting.time(), milliseconds(200));
}

}  // namespace
}  // namespace weft::launch
