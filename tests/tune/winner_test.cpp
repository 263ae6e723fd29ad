// The recipes that a search leaves behind.
#include "weft/tune/results/winner.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/support/temporary_folder.h"
#include "weft/base/files.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;

class WinnerTest : public ::testing::Test {
 protected:
  /// Trials with these accuracies and parameters, all of which trained to their end.
  Study study(const std::vector<std::pair<double, double>>& results) const {
    Study made =
        Study::create(directory_ / "study",
                      {.space = Space({log_real("optimizer.learning_rate", 1e-4, 1)}),
                       .recipe = "data = \"fashion-mnist\"\n[model]\nname = \"mlp\"\n[optimizer]\nname = \"sgd\"\n",
                       .objectives = {{"validation_accuracy", true}, {"parameters", false}}});
    add(made, results);
    return made;
  }
  static void add(Study& study, const std::vector<std::pair<double, double>>& results) {
    for (const auto& [accuracy, parameters] : results)
      study.change([accuracy = accuracy, parameters = parameters](const std::vector<StudyTrial>& trials) {
        return StudyTrial{.number = static_cast<int64_t>(trials.size()),
                          .state = StudyTrial::State::finished,
                          .values = {{"optimizer.learning_rate", 0.1}},
                          .target = 1,
                          .results = {accuracy, parameters},
                          .curve = {{1, accuracy}}};
      });
  }
  static void write(Study& study) {
    write_best(study, best_trial(study.settings(), study.trials()).value(), standard_library());
  }
  std::set<std::string> recipes() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_ / "study"))
      if (entry.path().filename().string().starts_with("best")) names.insert(entry.path().filename().string());
    return names;
  }
  const TemporaryFolder folder_;
  const fs::path directory_ = folder_.path();
};

TEST_F(WinnerTest, ThereIsARecipeForEachTrialOfTheFront) {
  Study made = study({{0.9, 300}, {0.8, 100}, {0.8, 200}});
  write(made);
  EXPECT_EQ(recipes(), (std::set<std::string>{"best.toml", "best-0001.toml"}));
}

TEST_F(WinnerTest, AmongEqualTrialsTheBestHasARecipe) {
  Study made = study({{0.9, 300}, {0.9, 100}});
  write(made);
  EXPECT_EQ(recipes(), std::set<std::string>{"best.toml"});
  EXPECT_NE(read_text(made.best()).find("trial 1,"), std::string::npos);
}

TEST_F(WinnerTest, AWinnerWhoseRunIsGoneIsNamedOnceWithWhatToDo) {
  Study made = study({{0.9, 300}});
  std::vector<std::string> notes;
  const auto summary = measure_winner(made, made.trials().at(0), "/bin/false", {},
                                      [&](const std::string& line) { notes.push_back(line); });
  EXPECT_FALSE(summary.has_value());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("the run of the best trial, 0, is gone from '"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("`weft train " + made.best().string() + "`"), std::string::npos) << notes[0];
}

TEST_F(WinnerTest, RecipesOfAnEarlierFrontGo) {
  Study made = study({{0.9, 300}, {0.8, 100}});
  write(made);
  std::ofstream(made.folder() / "best_of_all.toml") << "mine";
  add(made, {{0.95, 50}});
  write(made);
  EXPECT_EQ(recipes(), (std::set<std::string>{"best.toml", "best_of_all.toml"}));
}

}  // namespace
}  // namespace weft::tune
