#include "weft/data/dataset/data_spec.h"

#include <gtest/gtest.h>

#include "weft/data/open_dataset.h"

namespace weft::data {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

TEST(DataSpec, IsTakenApart) {
  const DataSpec spec = parse_data_spec("csv:a b.csv?label=R%26D&separator=;");
  EXPECT_EQ(spec.kind, "csv");
  EXPECT_EQ(spec.argument, "a b.csv");
  EXPECT_EQ(spec.options, (Options{{"label", "R&D"}, {"separator", ";"}}));
}

TEST(DataSpec, IsPutTogetherAgain) {
  for (const char* text :
       {"csv:x.csv?label=R%26D&missing=%3F,%25", "fashion-mnist", "cifar10:what?a=b", "text:odd?.txt?", "csv:?label=x"})
    EXPECT_EQ(print_data_spec(parse_data_spec(text)), text);
}

TEST(DataSpec, AQuestionMarkInAPathWantsAnotherBehindIt) {
  EXPECT_EQ(parse_data_spec("text:odd?.txt?").argument, "odd?.txt");
  EXPECT_EQ(parse_data_spec("text:odd?.txt?length=5").argument, "odd?.txt");
}

TEST(DataSpec, PathsBecomeAbsolute) {
  EXPECT_EQ(with_absolute_paths(standard_dataset_kinds(), "csv:/a/../b.csv?test=/c/./d.csv&label=x"),
            "csv:/b.csv?test=/c/d.csv&label=x");
}

TEST(DataSpec, KnowsWhichDataHaveATestPart) {
  EXPECT_TRUE(has_test_split(standard_dataset_kinds(), "csv:x"));
  EXPECT_FALSE(has_test_split(standard_dataset_kinds(), "csv:x?split=0"));
  EXPECT_TRUE(has_test_split(standard_dataset_kinds(), "csv:x?test=y"));
  EXPECT_FALSE(has_test_split(standard_dataset_kinds(), "text:x?split=0"));
  EXPECT_FALSE(has_test_split(standard_dataset_kinds(), "idx:a,b"));
  EXPECT_TRUE(has_test_split(standard_dataset_kinds(), "idx:a,b,c,d"));
}

}  // namespace
}  // namespace weft::data
