// Lines of progress that come only now and then.
#include "weft/base/now_and_then.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

TEST(NowAndThen, PassesOnWhatComesWhenTheTimeHasGoneBy) {
  double now = 10;
  std::vector<std::string> said;
  const auto tell = now_and_then([&](const std::string& line) { said.push_back(line); }, 5, [&now] { return now; });
  tell("at once");
  now = 14.9;
  tell("too early");
  now = 15;
  tell("first");
  now = 16;
  tell("too early again");
  now = 25;
  tell("second");
  EXPECT_EQ(said, (std::vector<std::string>{"first", "second"}));
}

}  // namespace
}  // namespace weft
