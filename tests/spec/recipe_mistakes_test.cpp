// Each mistake of recipe_mistakes.txt gives its message.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/spec/recipe.h"

namespace weft::spec {
namespace {

struct Mistake {
  std::string name, recipe, message;
};

std::vector<Mistake> read_mistakes() {
  std::vector<Mistake> mistakes;
  std::istringstream lines(read_text(WEFT_SOURCE_DIR "/tests/spec/recipe_mistakes.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("== "))
      mistakes.push_back({line.substr(3), {}, {}});
    else if (line.starts_with("-> "))
      mistakes.back().message = line.substr(3);
    else if (!mistakes.empty() && !line.empty())
      mistakes.back().recipe += line + '\n';
  }
  return mistakes;
}

TEST(RecipeMistakes, EachGivesItsMessage) {
  const std::vector<Mistake> mistakes = read_mistakes();
  EXPECT_GE(mistakes.size(), 30u);
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.name);
    RunSpec spec;
    try {
      apply_recipe(spec, mistake.recipe, "recipe");
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(error.what(), mistake.message);
    }
  }
}

}  // namespace
}  // namespace weft::spec
