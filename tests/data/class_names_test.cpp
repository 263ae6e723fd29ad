#include "weft/data/dataset/class_names.h"

#include <gtest/gtest.h>

namespace weft::data {
namespace {

TEST(ClassNames, NumbersStandByValueTextsByLetters) {
  std::vector<std::string> numbers = {"10", "2", "-1"}, texts = {"b", "10", "a"};
  EXPECT_TRUE(sort_classes(numbers, false));
  EXPECT_EQ(numbers, (std::vector<std::string>{"-1", "2", "10"}));
  EXPECT_FALSE(sort_classes(texts, false));
  EXPECT_EQ(texts, (std::vector<std::string>{"10", "a", "b"}));
}

TEST(ClassNames, AClassWithoutANameHasItsNumber) {
  EXPECT_EQ(class_name({"cat"}, 0), "cat");
  EXPECT_EQ(class_name({"cat"}, 1), "class 1");
}

}  // namespace
}  // namespace weft::data
