// What counts as a number that fills a text.
#include "weft/base/parse_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace weft {
namespace {

TEST(ParseNumber, TheWholeTextIsTheNumber) {
  EXPECT_EQ(parse_number<int64_t>("-12"), -12);
  EXPECT_EQ(parse_number<double>("1e-3"), 1e-3);
  for (const char* text : {"", " 1", "1 ", "1x", "+1", "0x10", "1,5"}) EXPECT_FALSE(parse_number<double>(text)) << text;
  EXPECT_FALSE(parse_number<int64_t>("1.5"));
}

TEST(ParseNumber, WhatDoesNotFitIsNone) {
  EXPECT_EQ(parse_number<int8_t>("127"), 127);
  EXPECT_FALSE(parse_number<int8_t>("128"));
  EXPECT_FALSE(parse_number<int64_t>("9223372036854775808"));
  EXPECT_FALSE(parse_number<double>("1e999"));
}

TEST(ParseNumber, WordsForRealNumbersCount) {
  EXPECT_TRUE(std::isinf(parse_number<double>("inf").value()));
  EXPECT_TRUE(std::isnan(parse_number<double>("nan").value()));
}

}  // namespace
}  // namespace weft
