#include "weft/base/json_numbers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weft {
namespace {

using nlohmann::json;

TEST(JsonNumbers, TakesWholeNumbers) {
  EXPECT_EQ(whole_number(json::parse("-3")), -3);
  EXPECT_EQ(unsigned_number(json::parse("18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(whole_numbers(json::parse("[1, 2]")), (std::vector<int64_t>{1, 2}));
}

TEST(JsonNumbers, RefusesWhatIsNone) {
  for (const char* text : {"1e42", "2.5", "true", "\"3\"", "null", "[1]"}) {
    EXPECT_THROW(whole_number(json::parse(text)), json::exception) << text;
    EXPECT_THROW(unsigned_number(json::parse(text)), json::exception) << text;
  }
  EXPECT_THROW(unsigned_number(json::parse("-1")), json::exception);
}

}  // namespace
}  // namespace weft
