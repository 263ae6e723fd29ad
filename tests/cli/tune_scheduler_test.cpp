// What schedulers of weft tune leave behind: copies of a population, and trials that were ended early.
#include "tests/cli/run_files.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::cli_tests {
namespace {

using tune::Study;
using tune::StudyTrial;

class TuneSchedulerTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    write_all(path("recipe.toml"), "data = \"" + data() +
                                       "\"\nvalidation = 0.25\nepochs = 4\nbatch = 32\nthreads = 1\n[model]\n"
                                       "name = \"mlp\"\nhidden = \"8\"\n[optimizer]\nname = \"sgd\"\n");
  }
  static std::vector<std::string> tune(const std::string& study, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"tune", "recipe.toml", "--study",
                                      study,  "--set-range", "optimizer.learning_rate=log:1e-4:1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::vector<std::string> population(const std::string& study) {
    return tune(study, {"--scheduler", "population", "--trials", "4", "--workers", "2"});
  }
  nlohmann::json shown(const std::string& study) {
    return nlohmann::json::parse(weft({"tune", "show", study, "--json"}).out);
  }
  std::string run_of(const std::string& study, int64_t trial) const {
    return fs::relative(Study::open(path(study)).run_of(trial), directory_).string();
  }
  /// "validation_accuracy" by epoch.
  std::map<int64_t, double> accuracies(const std::string& run) const {
    std::map<int64_t, double> found;
    std::istringstream lines(read_all(path(run) / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record["kind"] == "epoch") found[record["epoch"]] = record["validation_accuracy"];
    }
    return found;
  }
};

TEST_F(TuneSchedulerTest, ACopyCountsWithWhatItTrainedItself) {
  ASSERT_EQ(weft(population("study")).code, 0);
  int copies = 0;
  for (const StudyTrial& trial : Study::open(path("study")).trials()) {
    const std::string run = run_of("study", trial.number);
    double best = 0;
    for (const auto& [epoch, value] : accuracies(run))
      if (epoch > trial.begun) best = std::max(best, value);
    ASSERT_TRUE(trial.has_results());
    EXPECT_EQ(trial.results[0], best) << trial.number;
    if (!trial.parent) continue;
    ++copies;
    EXPECT_GT(trial.curve.front().first, trial.begun);
    // The weights that are deployed and tested are of these epochs: 8 steps each.
    const auto manifest = nlohmann::json::parse(read_all(path(run) / "checkpoints/best/manifest.json"));
    EXPECT_GT(manifest["position"]["step"].get<int64_t>(), trial.begun * 7);
  }
  EXPECT_EQ(copies, 3);
}

TEST_F(TuneSchedulerTest, ACopyCanBeTrainedAgainByItsRecipe) {
  ASSERT_EQ(weft(population("study")).code, 0);
  Study study = Study::open(path("study"));
  const std::vector<StudyTrial> trials = study.trials();
  const auto copy = std::find_if(trials.begin(), trials.end(), [](const StudyTrial& trial) {
    return trial.parent && trial.state == StudyTrial::State::finished;
  });
  ASSERT_NE(copy, trials.end());
  const auto lineage = lineage_of(trials, *copy);
  write_all(path("best.toml"), print_best(study.settings(), lineage, *copy, standard_library()));
  std::istringstream lines(read_all(path("best.toml")));
  size_t commands = 0;
  for (std::string line; std::getline(lines, line) && line.starts_with("#");) {
    if (!line.starts_with("#   weft train")) continue;
    ++commands;
    std::istringstream words(line.substr(9));
    std::vector<std::string> command;
    for (std::string word; words >> word;) {
      std::erase(word, '\'');
      command.push_back(word == "THIS.toml" ? "best.toml" : word == "RUN" ? "again" : word);
    }
    const Outcome outcome = weft(command);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_EQ(commands, lineage.size());
  EXPECT_GE(commands, 2u);
  EXPECT_EQ(last_state("again"), last_state(run_of("study", copy->number)));
}

TEST_F(TuneSchedulerTest, AKillWhileARunIsCopiedChangesNothing) {
  ASSERT_EQ(weft(population("whole")).code, 0);
  for (const int64_t copy : {4, 5, 6}) {
    Process process(copy == 4 ? population("study") : std::vector<std::string>{"tune", "--resume", "study"},
                    directory_);
    const auto has_copy = [&] {
      std::error_code code;
      return fs::exists(path("study/recipe.toml"), code) &&
             static_cast<int64_t>(Study::open(path("study")).trials().size()) > copy;
    };
    while (!process.has_ended() && !has_copy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.send(SIGKILL);
    process.wait();
  }
  const Outcome outcome = weft({"tune", "--resume", "study"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto whole = Study::open(path("whole")).trials(), study = Study::open(path("study")).trials();
  ASSERT_EQ(whole.size(), study.size());
  for (size_t trial = 0; trial < whole.size(); ++trial) {
    EXPECT_EQ(whole[trial].state, study[trial].state) << trial;
    EXPECT_EQ(whole[trial].values, study[trial].values) << trial;
    EXPECT_EQ(whole[trial].results, study[trial].results) << trial;
    EXPECT_FALSE(fs::exists(study[trial].parent ? path("study/runs/0004.partial") : path("none")));
  }
}

TEST_F(TuneSchedulerTest, TheBestOfAFewTrialsIsTrainedToItsEndAndTested) {
  const Outcome outcome = weft(tune("study", {"--scheduler", "asha", "--trials", "4", "--set", "epochs=9"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("test_accuracy"), std::string::npos) << outcome.out;
  const nlohmann::json best = shown("study")["best"];
  const StudyTrial trial = Study::open(path("study")).trials()[best["trial"].get<size_t>()];
  EXPECT_EQ(trial.state, StudyTrial::State::finished);
  ASSERT_EQ(weft({"train", "study/best.toml", "--run", "straight", "--quiet"}).code, 0);
  EXPECT_EQ(last_state(run_of("study", trial.number)), last_state("straight"));
}

TEST_F(TuneSchedulerTest, TheBestIsTrainedToItsEndWhereTheSpaceHasNoMorePoints) {
  const Outcome outcome = weft({"tune", "recipe.toml", "--study", "study", "--set-range",
                                "optimizer.learning_rate=choice:0.01,0.1", "--scheduler", "asha", "--set", "epochs=9"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("test_accuracy"), std::string::npos) << outcome.out;
}

TEST_F(TuneSchedulerTest, RoundsThatEndWithAnEvaluationAreCompared) {
  const Outcome outcome = weft(tune("study", {"--scheduler", "asha", "--trials", "4", "--set", "epochs=9", "--set",
                                              "evaluation.every_epochs=3", "--least-epochs", "3"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const StudyTrial& trial : Study::open(path("study")).trials()) EXPECT_TRUE(trial.has_results()) << trial.reason;
}

TEST_F(TuneSchedulerTest, RoundsThatTheTrainingLossComparesNeedNoEvaluation) {
  const Outcome outcome = weft(tune("study", {"--scheduler", "asha", "--trials", "3", "--set", "epochs=9", "--set",
                                              "evaluation.every_epochs=0", "--objective", "train_loss"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const StudyTrial& trial : Study::open(path("study")).trials()) EXPECT_TRUE(trial.has_results()) << trial.reason;
}

TEST_F(TuneSchedulerTest, TrialsThatDidAllTheirStepsAreFinished) {
  ASSERT_EQ(
      weft(tune("study", {"--scheduler", "asha", "--trials", "3", "--set", "epochs=9", "--set", "max_steps=5"})).code,
      0);
  for (const StudyTrial& trial : Study::open(path("study")).trials())
    EXPECT_EQ(trial.state, StudyTrial::State::finished) << trial.number;
}

TEST_F(TuneSchedulerTest, AStudyThatItsTimeEndedSaysHowItsBestIsTested) {
  ASSERT_EQ(weft(tune("study", {"--scheduler", "asha", "--trials", "4", "--set", "epochs=9"})).code, 0);
  Study study = Study::open(path("study"));
  for (StudyTrial trial : study.trials())
    if (trial.state == StudyTrial::State::finished) {
      trial.state = StudyTrial::State::paused;
      study.update(trial);
    }
  const Outcome outcome = weft({"tune", "--resume", "study", "--time", "0.001", "--trials", "5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("of 9 epochs: its test data are not measured"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("`weft tune --resume study --trials "), std::string::npos) << outcome.err;
}

TEST_F(TuneSchedulerTest, WhatASchedulerEndedDoesNotTrainOn) {
  const std::vector<std::string> words =
      tune("study", {"--scheduler", "median", "--trials", "6", "--workers", "1", "--set", "epochs=3000", "--objective",
                     "validation_accuracy,size", "--searcher", "nsga2"});
  {
    Process process(words, directory_);
    while (!process.has_ended() && !fs::exists(path("study/runs/0000/metrics.jsonl")))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Study study = Study::open(path("study"));
    for (int64_t number = 1; number <= 5; ++number)  // five that nobody comes near
      study.change([&](const std::vector<StudyTrial>& trials) {
        StudyTrial trial{.number = static_cast<int64_t>(trials.size()),
                         .state = StudyTrial::State::finished,
                         .values = trials[0].values,
                         .target = 3000,
                         .results = {2.0, 1000.0},
                         .curve = {{1, 2.0}, {3000, 2.0}},
                         .plan = trials[0].plan};
        return trial;
      });
    while (!process.has_ended() && !study.trials()[0].is_cut) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(study.trials()[0].is_cut);
    process.send(SIGINT);
    process.wait();
  }
  weft({"tune", "--resume", "study"});  // the best one has no run to be tested
  const StudyTrial trial = Study::open(path("study")).trials()[0];
  EXPECT_EQ(trial.state, StudyTrial::State::stopped) << name_of(trial.state) << ": " << trial.reason;
  ASSERT_FALSE(trial.curve.empty());
  EXPECT_LT(trial.curve.back().first, 3000);
  EXPECT_EQ(trial.results.size(), 2u);
}

TEST_F(TuneSchedulerTest, AResumedStudyMeasuresWhatASchedulerEnded) {
  ASSERT_EQ(weft(tune("study", {"--scheduler", "median", "--trials", "1", "--objective", "validation_accuracy,size",
                                "--searcher", "nsga2"}))
                .code,
            0);
  fs::remove_all(path("study/runs/0000"));
  ASSERT_EQ(weft({"train", "study/trials/0000.toml", "--run", "study/runs/0000", "--pause-after", "2"}).code, 0);
  Study study = Study::open(path("study"));
  StudyTrial trial = study.trials()[0];
  trial.state = StudyTrial::State::interrupted;
  trial.is_cut = true;
  trial.results.clear();
  study.update(trial);
  ASSERT_EQ(weft({"tune", "--resume", "study"}).code, 0);
  trial = study.trials()[0];
  EXPECT_EQ(trial.state, StudyTrial::State::stopped);
  EXPECT_EQ(trial.curve.back().first, 2);
  EXPECT_EQ(trial.results.size(), 2u);
}

}  // namespace
}  // namespace weft::cli_tests
