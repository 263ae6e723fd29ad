#include "weft/base/toml_depth.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/error_of.h"

namespace weft {
namespace {

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int count = 0; count < times; ++count) text += part;
  return text;
}

TEST(TomlDepth, OrdinaryTextsAreShallow) {
  EXPECT_EQ(test::error_of([] { require_shallow_toml("a = [[1, 2], [3]]\n[b.c]\nd = {e = 1}\n", "f"); }), "no error");
  EXPECT_EQ(test::error_of([] {
              require_shallow_toml("a = \"" + repeated("[", 500) + "\"\n# " + repeated("{", 500) + "\nb = '''\n" +
                                       repeated("a.", 500) + "'''\n",
                                   "f");
            }),
            "no error")
      << "strings and comments nest nothing";
  EXPECT_EQ(test::error_of([] { require_shallow_toml(repeated("a.b = 1.5\n", 500), "f"); }), "no error");
}

TEST(TomlDepth, BracketsAndNamesThatNestWithoutEndAreRefused) {
  const std::string error = "f:2: nests more than 64 levels deep; write it with fewer";
  EXPECT_EQ(test::error_of([] { require_shallow_toml("\na = " + repeated("[", 25000), "f"); }), error);
  EXPECT_EQ(test::error_of([] { require_shallow_toml("\na = " + repeated("{a=", 25000), "f"); }), error);
  EXPECT_EQ(test::error_of([] { require_shallow_toml("\n" + repeated("a.", 25000) + "b = 1", "f"); }), error);
  EXPECT_EQ(test::error_of([] { require_shallow_toml("\n[" + repeated("a.", 25000) + "b]", "f"); }), error);
}

}  // namespace
}  // namespace weft
