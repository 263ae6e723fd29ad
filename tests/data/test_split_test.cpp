// What is set aside for testing, and what is said where options or samples do not allow it.
#include "weft/data/dataset/test_split.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/files_for_tests.h"

namespace weft::data {
namespace {

TestSplit of(const std::string& spec, double usual = 0.25) {
  return TestSplit(SpecOptions(parse_data_spec(spec), {"test", "split", "seed"}), usual);
}

const std::vector<int32_t> kEight(8, 0);

TEST(TestSplit, EverySampleBelongsToOnePart) {
  const TestSplit split = of("csv:x?split=0.5");
  std::vector<bool> train = split.members(kEight, Split::train, "x", "rows");
  EXPECT_EQ(std::count(train.begin(), train.end(), true), 4);
  train.flip();
  EXPECT_EQ(split.members(kEight, Split::test, "x", "rows"), train);
}

TEST(TestSplit, NothingIsDividedWhereThereIsAFileOrNoShare) {
  const std::vector<bool> all(8, true);
  EXPECT_EQ(of("csv:x").members(kEight, Split::all, "x", "rows"), all);
  for (const char* spec : {"csv:x?test=y", "csv:x?split=0"})
    for (const Split split : {Split::train, Split::test}) EXPECT_EQ(of(spec).members(kEight, split, "x", "rows"), all);
}

TEST(TestSplit, ExistsWithAFileOrAShare) {
  EXPECT_TRUE(of("csv:x").exists());
  EXPECT_TRUE(of("csv:x?test=y", 0).exists());
  EXPECT_FALSE(of("csv:x?split=0").exists());
}

TEST(TestSplit, AFileAndAShareExcludeEachOther) {
  expect_error([] { of("csv:x?test=y&split=0.5"); }, ErrorKind::usage,
               {"[csv] test=y and split=0.5 exclude each other"});
}

TEST(TestSplit, SaysWhereNothingIsLeft) {
  const std::vector<int32_t> one(1, 0);
  expect_error([&] { of("csv:x").members(one, Split::test, "a.csv", "rows"); }, ErrorKind::data,
               {"'a.csv' has 1 rows, of which split=0.25 leaves none for the test split; add more, or say split=0"});
}

TEST(TestSplit, KeepsTheMembers) {
  std::vector<int> samples = {1, 2, 3};
  keep_members(samples, {true, false, true});
  EXPECT_EQ(samples, (std::vector<int>{1, 3}));
}

}  // namespace
}  // namespace weft::data
