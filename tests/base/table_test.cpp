#include "weft/base/table.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoSpacesAtLineEnds) {
  Table table({{"model"}, {"parameters", Align::right}, {"note"}});
  table.add_row({"mlp", "269k", ""});
  table.add_row({"resnet18", "11.7M", "ImageNet"});
  EXPECT_EQ(table.text(),
            "model     parameters  note\n"
            "--------  ----------  --------\n"
            "mlp             269k\n"
            "resnet18       11.7M  ImageNet\n");
}

TEST(Table, WithoutTitlesHasNoHead) {
  Table table({{""}, {""}});
  table.add_row({"seed", "1"});
  table.add_rule();
  table.add_row({"epochs"});
  EXPECT_EQ(table.text(), "seed    1\n------  -\nepochs\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{""}, {""}});
  table.add_row({"naïve", "1"});
  table.add_row({"plain", "2"});
  EXPECT_EQ(table.text(), "naïve  1\nplain  2\n");
}

TEST(Table, TooManyCellsAreABug) {
  Table table({{"a"}});
  EXPECT_THROW(table.add_row({"1", "2"}), Error);
}

}  // namespace
}  // namespace weft
