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

TEST(Names, KeySuggestionStaysInItsSection) {
  const std::vector<std::string> known = {"data", "optimizer.name", "optimizer.momentum", "schedule.name"};
  EXPECT_EQ(key_suggestion("optimizer.momentun", known), "; did you mean 'optimizer.momentum'?");
  EXPECT_EQ(key_suggestion("optimizer.lr", known), "; known: optimizer.name, optimizer.momentum");
  EXPECT_EQ(key_suggestion("optimiser.name", known), "; did you mean 'optimizer.name'?");
  EXPECT_EQ(key_suggestion("date", known), "; did you mean 'data'?");
}

}  // namespace
}  // namespace weft
