#include "weft/base/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft {
namespace {

TEST(Format, BytesUseDecimalUnitsAndThreeDigits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1500), "1.50 kB");
  EXPECT_EQ(human_bytes(12'340'000), "12.3 MB");
  EXPECT_EQ(human_bytes(1.2e9), "1.20 GB");
  EXPECT_EQ(human_bytes(-1500), "-1.50 kB");
}

TEST(Format, RoundingUpMovesToTheNextUnit) {
  EXPECT_EQ(human_bytes(999'600), "1.00 MB");
  EXPECT_EQ(human_count(9'996), "10.0k");
}

TEST(Format, CountsAreExactBelowAThousand) {
  EXPECT_EQ(human_count(7), "7");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(44'426), "44.4k");
  EXPECT_EQ(human_count(11'689'512), "11.7M");
  EXPECT_EQ(human_count(4.1e9), "4.10G");
}

TEST(Format, AmountsOfMemoryAreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("1.5GB"), 1'500'000'000);
  EXPECT_EQ(parse_bytes("800 MB"), 800'000'000);
  EXPECT_EQ(parse_bytes("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(parse_bytes("64kB"), 64'000);
  EXPECT_EQ(parse_bytes("64KiB"), 65'536);
  EXPECT_EQ(parse_bytes("1e6"), 1'000'000);
  EXPECT_EQ(parse_bytes("77 B"), 77);
}

TEST(Format, WhatIsNoAmountOfMemoryIsRefused) {
  for (const char* text : {"", "GB", "1.5XB", "1.5GBs", "-1GB", "0", "nan", "inf", "1 G B", "1e30", "1,5GB"})
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(Format, DurationsPickTheirUnit) {
  EXPECT_EQ(human_duration(15e-6), "15 us");
  EXPECT_EQ(human_duration(0.0012), "1.2 ms");
  EXPECT_EQ(human_duration(0.23), "230 ms");
  EXPECT_EQ(human_duration(5.31), "5.3 s");
  EXPECT_EQ(human_duration(123), "2m 03s");
  EXPECT_EQ(human_duration(3600 + 120), "1h 02m");
  EXPECT_EQ(human_duration(3 * 86400 + 4 * 3600), "3d 04h");
}

TEST(Format, DurationsRoundIntoTheNextUnit) {
  EXPECT_EQ(human_duration(59.96), "1m 00s");
  EXPECT_EQ(human_duration(0.9996), "1.0 s");
}

TEST(Format, NumbersThatAreNotFiniteAreAQuestionMark) {
  EXPECT_EQ(human_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(human_bytes(std::numeric_limits<double>::quiet_NaN()), "?");
}

}  // namespace
}  // namespace weft
