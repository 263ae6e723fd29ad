// Copies in a study: when an origin may go on, and which values led to a copy.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"
#include "weft/library/library.h"
#include "weft/tune/study/lineage.h"
#include "weft/tune/study/owner.h"
#include "weft/tune/trials/trial_chooser.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;
using State = StudyTrial::State;

class PopulationStudy : public ::testing::Test {
 protected:
  /// Four members at the end of the first round, the later the worse.
  Study study() const {
    Study made = Study::create(directory_ / "study", {.space = Space({log_real("optimizer.learning_rate", 1e-4, 1)}),
                                                      .objectives = {{"validation_loss", false}},
                                                      .searcher = "sobol",
                                                      .scheduler = {.name = "population", .least = 1, .most = 3}});
    for (int64_t number = 0; number < 4; ++number)
      made.change([&](const auto&) {
        return StudyTrial{.number = number,
                          .state = State::paused,
                          .values = {{"optimizer.learning_rate", 0.1}},
                          .bracket = number,
                          .target = 1,
                          .results = {static_cast<double>(number)},
                          .curve = {{1, static_cast<double>(number)}}};
      });
    return made;
  }
  const TemporaryFolder folder_;
  const fs::path directory_ = folder_.path();
};

TEST_F(PopulationStudy, TheOriginStaysUntilTheCopyIsThere) {
  Study made = study();
  const Library library = standard_library();
  TrialChooser chooser(library, made, 4, this_process(), {});
  const auto choose = [&] {
    return made.change([&](const std::vector<StudyTrial>& trials) { return chooser.choose(trials); });
  };
  const std::optional<StudyTrial> copy = choose();
  ASSERT_TRUE(copy && copy->parent);
  EXPECT_EQ(copy->parent, 0);
  EXPECT_TRUE(copy->curve.empty()) << "what its origin has measured is not its own";
  EXPECT_FALSE(fs::exists(made.run_of(4))) << "nothing is copied while the database is locked";
  EXPECT_EQ(choose()->number, 1);
  EXPECT_EQ(choose()->number, 2);
  EXPECT_FALSE(choose()) << "trial 0 is still to be copied";
  EXPECT_TRUE(chooser.waits_for_others());
  fs::create_directories(made.run_of(4));
  EXPECT_EQ(choose()->number, 0);
}

TEST_F(PopulationStudy, ACopyThatAKillPreventedIsMadeByTheNext) {
  Study made = study();
  const Library library = standard_library();
  TrialChooser chooser(library, made, 4, "", {});  // of a process that is dead
  const auto choose = [&] {
    return made.change([&](const std::vector<StudyTrial>& trials) { return chooser.choose(trials); });
  };
  EXPECT_EQ(choose()->number, 4);
  const std::optional<StudyTrial> again = choose();
  EXPECT_EQ(again->number, 4);
  EXPECT_EQ(again->parent, 0);
}

TEST_F(PopulationStudy, ATrialWaitsForTheResultsThatAreToBeToldBefore) {
  Study made = Study::create(directory_ / "ordered", {.space = Space({log_real("optimizer.learning_rate", 1e-4, 1)}),
                                                      .objectives = {{"validation_loss", false}},
                                                      .searcher = "random",
                                                      .in_order = 2});
  const Library library = standard_library();
  TrialChooser chooser(library, made, 4, this_process(), {});
  const auto choose = [&] {
    return made.change([&](const std::vector<StudyTrial>& trials) { return chooser.choose(trials); });
  };
  const auto end = [&](int64_t number) {
    StudyTrial trial = made.trials()[static_cast<size_t>(number)];
    trial.state = State::finished;
    trial.results = {1.0};
    made.update(trial);
  };
  EXPECT_EQ(choose()->number, 0);
  EXPECT_EQ(choose()->number, 1);
  EXPECT_FALSE(choose());
  end(1);
  EXPECT_FALSE(choose()) << "trial 0 is still to be told";
  EXPECT_TRUE(chooser.waits_for_others());
  end(0);
  EXPECT_EQ(choose()->number, 2);
}

TEST(Lineage, HasTheValuesOfAllThatLedToATrial) {
  const auto trial = [](int64_t number, double rate) {
    return StudyTrial{.number = number, .values = {{"optimizer.learning_rate", rate}}};
  };
  std::vector<StudyTrial> trials = {trial(0, 0.1), trial(1, 0.2), trial(2, 0.3), trial(3, 0.4)};
  trials[0].curve = {{1, 1.0}, {2, 1.0}, {6, 1.0}};
  trials[2].parent = 0, trials[2].begun = 2, trials[2].curve = {{3, 1.0}, {4, 0.5}};
  trials[3].parent = 2, trials[3].begun = 4, trials[3].curve = {{6, 0.25}};
  const std::vector<Stretch> lineage = lineage_of(trials, trials[3]);
  ASSERT_EQ(lineage.size(), 3u);
  EXPECT_EQ(lineage[0].values, trials[0].values);
  EXPECT_EQ(epochs_in_words(lineage[0]), "epochs 1 to 2");
  EXPECT_EQ(lineage[1].trial, 2);
  EXPECT_EQ(epochs_in_words(lineage[1]), "epochs 3 to 4");
  EXPECT_EQ(epochs_in_words(lineage[2]), "epochs 5 to 6");
  EXPECT_EQ(lineage_of(trials, trials[0]).size(), 1u);
}

}  // namespace
}  // namespace weft::tune
