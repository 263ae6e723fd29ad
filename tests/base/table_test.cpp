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

TEST(Table, AsHtmlHoldsNoMarkupOfItsCells) {
  Table table({{"model"}, {"size", Align::right}});
  table.add_row({"<b>&\"", "1"});
  table.add_rule();
  table.add_row({"all", "1"});
  EXPECT_EQ(table.html(),
            "<table>\n<thead>\n<tr><th>model</th><th class=\"right\">size</th></tr>\n</thead>\n<tbody>\n"
            "<tr><td>&lt;b&gt;&amp;&quot;</td><td class=\"right\">1</td></tr>\n</tbody>\n<tbody>\n"
            "<tr><td>all</td><td class=\"right\">1</td></tr>\n</tbody>\n</table>\n");
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
