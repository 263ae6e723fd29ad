// Lists of numbers in options and metadata.
#include "weft/base/number_list.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace weft {
namespace {

TEST(NumberList, CommasDivideNumbers) {
  EXPECT_EQ(parse_number_list<int64_t>("3,224,224"), (std::vector<int64_t>{3, 224, 224}));
  EXPECT_EQ(parse_number_list<float>("0.5,-1e-2"), (std::vector<float>{0.5f, -0.01f}));
}

TEST(NumberList, SpacesMayStandAroundEach) {
  EXPECT_EQ(parse_number_list<int64_t>(" 3 , 4 "), (std::vector<int64_t>{3, 4}));
}

TEST(NumberList, OtherTextIsNone) {
  for (const char* text : {"", " ", ",", "3,", ",3", "3 4", "grey", "3,x", "3;4"})
    EXPECT_FALSE(parse_number_list<int64_t>(text)) << text;
}

TEST(NumberList, WholeNumbersHaveNoFraction) {
  EXPECT_FALSE(parse_number_list<int64_t>("1.9,8.5,8.5"));
  EXPECT_FALSE(parse_number_list<int64_t>("1e3"));
}

}  // namespace
}  // namespace weft
