// A recipe that tests of weft tune search over: an mlp on small pictures.
#pragma once

#include <string>
#include <vector>

#include "tests/cli/run_files.h"

namespace weft::cli_tests {

class RecipeToTune : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    write_all(path("recipe.toml"), "data = \"" + data() +
                                       "\"\nvalidation = 0.25\nepochs = 2\nbatch = 32\n[model]\nname = \"mlp\"\n"
                                       "hidden = \"8\"\n[optimizer]\nname = \"sgd\"\n");
  }
  static std::vector<std::string> tune(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"tune",  "recipe.toml", "--study",
                                      "study", "--set-range", "optimizer.learning_rate=log:1e-4:1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

}  // namespace weft::cli_tests
