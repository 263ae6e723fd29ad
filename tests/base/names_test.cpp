#include "weft/base/names.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Names, EditDistanceCountsEachChangeOnce) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("epochs", "epoch"), 1);
  EXPECT_EQ(edit_distance("ab", "ba"), 2);
}

TEST(Names, TheNearestNameWins) {
  EXPECT_EQ(nearest_name("resnet9", {"resnet18", "resnet9", "mlp"}), "resnet9");
  EXPECT_EQ(nearest_name("lerning_rate", {"learning_rate", "label_smoothing"}), "learning_rate");
}

TEST(Names, AFarNameIsNoSuggestion) {
  EXPECT_EQ(nearest_name("zzzzzz", {"mlp", "lenet5"}), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(Names, SuggestionNamesOneOrListsAll) {
  EXPECT_EQ(suggestion("lenet", {"mlp", "lenet5"}), "; did you mean 'lenet5'?");
  EXPECT_EQ(suggestion("transformer", {"mlp", "lenet5"}), "; known: mlp, lenet5");
}

}  // namespace
}  // namespace weft
