// weft tune as a user runs it: on small pictures, an mlp and some epochs.
#include "tests/cli/tune_files.h"
#include "weft/base/cores.h"
#include "weft/base/files.h"
#include "weft/tune/study/owner.h"
#include "weft/tune/study/study.h"

namespace weft::cli_tests {
namespace {

class TuneTest : public RecipeToTune {
 protected:
  nlohmann::json shown(const std::string& study = "study") {
    const Outcome outcome = weft({"tune", "show", study, "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  static int count(const nlohmann::json& study, const std::string& state) {
    return static_cast<int>(std::count_if(study["trials"].begin(), study["trials"].end(),
                                          [&](const nlohmann::json& trial) { return trial["state"] == state; }));
  }
};

TEST_F(TuneTest, FindsTheBestRecipeAndTestsItAlone) {
  const Outcome outcome = weft(tune({"--trials", "6", "--set-range", "batch=int:16:64:16"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json study = shown();
  EXPECT_EQ(study["trials"].size(), 6u);
  EXPECT_EQ(count(study, "finished"), 6);
  double best = 0;
  int tested = 0;
  for (const nlohmann::json& trial : study["trials"]) {
    best = std::max(best, trial["results"]["validation_accuracy"].get<double>());
    char number[8];
    std::snprintf(number, sizeof number, "%04d", trial["trial"].get<int>());
    tested += fs::exists(path("study/runs") / number / "summary.json");
  }
  EXPECT_EQ(study["best"]["results"]["validation_accuracy"], best);
  EXPECT_EQ(tested, 1);
  EXPECT_TRUE(study["best"]["summary"].contains("test_accuracy"));
  EXPECT_NE(outcome.out.find("test_accuracy"), std::string::npos) << outcome.out;
  // The recipe that it wrote trains to the same.
  ASSERT_EQ(weft({"train", "study/best.toml", "--run", "again", "--quiet"}).code, 0);
  EXPECT_EQ(json_of("again/summary.json")["best_validation_accuracy"], best);
}

TEST_F(TuneTest, APromotedTrialIsBitwiseTheRunWithoutAPause) {
  ASSERT_EQ(weft(tune({"--trials", "6", "--set", "epochs=4", "--scheduler", "asha", "--reduction", "2"})).code, 0);
  const nlohmann::json study = shown();
  ASSERT_GT(count(study, "finished"), 0);
  EXPECT_LT(count(study, "finished"), 6);
  for (const nlohmann::json& trial : study["trials"]) {
    if (trial["state"] != "finished") continue;
    char number[8];
    std::snprintf(number, sizeof number, "%04d", trial["trial"].get<int>());
    ASSERT_EQ(weft({"train", std::string("study/trials/") + number + ".toml", "--run",
                    std::string("straight-") + number, "--quiet"})
                  .code,
              0);
    EXPECT_EQ(last_state(std::string("study/runs/") + number), last_state(std::string("straight-") + number));
  }
}

TEST_F(TuneTest, APopulationCopiesItsBestWhateverTheNumberOfWorkers) {
  const std::vector<std::string> population = {"--scheduler", "population", "--trials", "4", "--set", "epochs=3"};
  for (const std::string workers : {"1", "2"}) {
    std::vector<std::string> words = tune(population);
    words[3] = "study" + workers;
    words.insert(words.end(), {"--workers", workers});
    const Outcome outcome = weft(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const nlohmann::json one = shown("study1"), two = shown("study2");
  ASSERT_EQ(one["trials"].size(), 4u + 2) << one;
  EXPECT_EQ(count(one, "stopped"), 2);
  EXPECT_EQ(one["trials"][4]["copy_of"]["epochs"], 1);
  EXPECT_EQ(one["best"]["values"], two["best"]["values"]);
  EXPECT_EQ(one["best"]["results"], two["best"]["results"]);
}

/// Bytes of the weights with more than 16 numbers, which the graph's text does not hold: 64 pixels, 4 classes.
int64_t bytes_of_weights(const std::string& hidden) {
  return hidden == "8" ? (64 * 8 + 8 * 4) * 4 : (64 * 512 + 512 + 512 * 256 + 256 + 256 * 4) * 4;
}

TEST_F(TuneTest, LatencyAndSizeAreThoseOfTheDeployedModel) {
  const Outcome outcome =
      weft(tune({"--trials", "4", "--workers", "2", "--searcher", "nsga2", "--objective",
                 "validation_accuracy,latency,size", "--set-range", "model.hidden=choice:8|512,256"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json study = shown();
  EXPECT_EQ(count(study, "finished"), 4);
  for (const nlohmann::json& trial : study["trials"]) {
    EXPECT_GT(trial["results"]["latency"], 0);
    EXPECT_LT(trial["results"]["latency"], 1);
    EXPECT_EQ(trial["results"]["size"], bytes_of_weights(trial["values"]["model.hidden"].get<std::string>()));
    char number[8];
    std::snprintf(number, sizeof number, "%04d", trial["trial"].get<int>());
    EXPECT_FALSE(fs::exists(path(std::string("study/runs/") + number + "/deployed.weft")));
  }
  ASSERT_FALSE(study["front"].empty());
  EXPECT_NE(weft({"tune", "show", "study"}).out.find("front"), std::string::npos);
}

TEST_F(TuneTest, SeveralObjectivesAreSearchedByNsga2) {
  const Outcome outcome = weft(tune({"--trials", "2", "--objective", "validation_accuracy,parameters"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(shown()["searcher"], "nsga2");
}

TEST_F(TuneTest, SaysWhatMattered) {
  const Outcome outcome = weft(tune({"--trials", "8", "--set", "epochs=1", "--set-range", "batch=choice:16,32"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string mattered = "attered for validation_accuracy";
  EXPECT_NE(outcome.out.find(mattered), std::string::npos) << outcome.out;
  EXPECT_NE(read_all(path("study/best.toml")).find(mattered), std::string::npos);
}

TEST_F(TuneTest, TheReportIsOneFile) {
  ASSERT_EQ(weft(tune({"--trials", "4", "--objective", "validation_accuracy,parameters", "--searcher", "random",
                       "--set-range", "model.hidden=choice:8|16"}))
                .code,
            0);
  ASSERT_EQ(weft({"tune", "show", "study", "-o", "report.html"}).code, 0);
  const std::string page = read_all(path("report.html"));
  for (const char* part :
       {"The best trial", "Between the objectives", "What decided", "What the keys did", "All trials", "<svg"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("http-equiv"), std::string::npos);
}

TEST_F(TuneTest, WhatWatchesTheValidationPartFindsTheOneThatIsSetAside) {
  write_all(path("bare.toml"), "data = \"" + data() +
                                   "\"\nepochs = 2\nbatch = 32\n[model]\nname = \"mlp\"\nhidden = \"8\"\n[stop]\n"
                                   "target = \"0.9\"\nmonitor = \"validation_accuracy\"\n");
  const Outcome outcome = weft({"tune", "bare.toml", "--study", "study", "--trials", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("validation=0.1"), std::string::npos) << outcome.err;
}

TEST_F(TuneTest, WithoutAValidationPartTrialsAreComparedByTheTrainingData) {
  const Outcome outcome = weft(tune({"--trials", "2", "--set", "validation=0", "--objective", "train_loss"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("validation=0.1"), std::string::npos) << outcome.err;
  EXPECT_EQ(count(shown(), "finished"), 2);
}

TEST_F(TuneTest, NoValidationPartIsNoneToCompareBy) {
  expect_error(weft(tune({"--set", "validation=0"})), 2,
               "no validation part, on which validation_accuracy is measured");
}

TEST_F(TuneTest, ABatchThatIsMeasuredCannotBePacked) {
  const Outcome outcome = weft(tune({"--set", "batch=auto"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("batch = 'auto' leaves the memory of trials open"), std::string::npos) << outcome.err;
}

TEST_F(TuneTest, ASearchOfTheBatchReplacesAMeasuredOne) {
  const Outcome outcome = weft(tune({"--set", "batch=auto", "--set-range", "batch=choice:16,32", "--trials", "1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(shown()["trials"][0]["values"].contains("batch"));
}

TEST_F(TuneTest, APopulationChangesOnlyWhatMayChange) {
  const Outcome outcome = weft(tune({"--scheduler", "population", "--set-range", "batch=int:16:64:16"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("'batch' cannot change while a trial trains"), std::string::npos) << outcome.err;
}

TEST_F(TuneTest, AStudyGoesOnAndIsTheSameAsWithoutAStop) {
  ASSERT_EQ(weft(tune({"--trials", "8", "--workers", "1"})).code, 0);
  fs::rename(path("study"), path("whole"));
  ASSERT_EQ(weft(tune({"--trials", "5", "--workers", "1"})).code, 0);
  ASSERT_EQ(weft({"tune", "--resume", "study", "--trials", "8", "--workers", "1"}).code, 0);
  const nlohmann::json whole = shown("whole"), resumed = shown();
  for (size_t trial = 0; trial < 8; ++trial) {
    EXPECT_EQ(whole["trials"][trial]["values"], resumed["trials"][trial]["values"]);
    EXPECT_EQ(whole["trials"][trial]["results"], resumed["trials"][trial]["results"]);
  }
}

TEST_F(TuneTest, KillingTheTunerLosesNothingThatIsFinished) {
  const std::vector<std::string> words = tune({"--trials", "12", "--workers", "2", "--set", "epochs=6"});
  for (int round = 0; round < 3; ++round) {
    Process process(words, directory_);
    const auto begin = std::chrono::steady_clock::now();
    while (!process.has_ended() &&
           std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(600 + 100 * round))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    process.send(SIGKILL);
    process.wait();
  }
  const int finished = fs::exists(path("study/study.db")) ? count(shown(), "finished") : 0;
  const Outcome outcome = weft(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json study = shown();
  EXPECT_GE(count(study, "finished"), finished);
  EXPECT_EQ(count(study, "finished"), 12) << study.dump(1);
  for (const nlohmann::json& trial : study["trials"]) EXPECT_EQ(trial["epochs"], 6);
}

TEST_F(TuneTest, AKilledTrialGoesOn) {
  Process process(tune({"--trials", "2", "--workers", "1", "--set", "epochs=400"}), directory_);
  while (!process.has_ended() && !fs::exists(path("study/runs/0000/checkpoints")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const std::string pid = std::to_string(process.pid());
  const std::string children = read_all("/proc/" + pid + "/task/" + pid + "/children");
  ASSERT_FALSE(children.empty());
  kill(std::stoi(children), SIGKILL);
  const Outcome outcome = process.wait();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("trial 0: interrupted"), std::string::npos) << outcome.err;
  EXPECT_EQ(count(shown(), "finished"), 2);
}

TEST_F(TuneTest, CtrlCEndsItAndKeepsWhatItHas) {
  Process process(tune({"--trials", "500", "--workers", "2"}), directory_);
  while (!process.has_ended() && !fs::exists(path("study/runs/0003")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  process.send(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("tune --resume study"), std::string::npos) << outcome.err;
  const nlohmann::json study = shown();
  EXPECT_GE(count(study, "finished"), 1);
  EXPECT_EQ(count(study, "running"), 0);
  EXPECT_EQ(count(study, "failed"), 0) << study.dump(1);
}

TEST_F(TuneTest, AFailedTrialIsKeptWithItsReason) {
  const Outcome outcome =
      weft({"tune", "recipe.toml", "--study", "study", "--trials", "6", "--searcher", "random", "--set-range",
            "optimizer.learning_rate=choice:0.01,1e6", "--set-range", "batch=choice:16,32,64", "--set", "epochs=4"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json study = shown();
  EXPECT_EQ(count(study, "failed"), 3) << study.dump(1);
  EXPECT_EQ(count(study, "finished"), 3);
  for (const nlohmann::json& trial : study["trials"])
    EXPECT_EQ(trial["state"] == "failed",
              trial.contains("reason") && trial["reason"].get<std::string>().find("loss") != std::string::npos)
        << trial;
}

TEST_F(TuneTest, NoTrialBreaksAConstraint) {
  const Outcome outcome =
      weft({"tune", "recipe.toml", "--study", "study", "--trials", "5", "--set-range",
            "model.hidden=choice:8|16|32|64|128|256|512|1024|2048", "--constraint", "parameters <= 3000"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const nlohmann::json& trial : shown()["trials"]) {
    const bool is_large = trial["parameters"].get<int64_t>() > 3000;
    EXPECT_EQ(trial["state"], is_large ? "refused" : "finished") << trial;
    EXPECT_EQ(trial["results"].empty(), is_large);
  }
}

TEST_F(TuneTest, ConstraintsThatNothingMeetsAreNamedWithTheNearest) {
  const Outcome outcome = weft(tune({"--trials", "5", "--quiet", "--constraint", "parameters <= 10"}));
  expect_error(outcome, 2, "do not keep to the constraints; the nearest is trial 0 with parameters 556");
}

TEST_F(TuneTest, ConstraintsThatNoPointOfASmallSpaceMeetsAreNamedWithTheNearest) {
  const Outcome outcome = weft({"tune", "recipe.toml", "--study", "study", "--quiet", "--set-range",
                                "model.hidden=choice:16|8", "--constraint", "parameters <= 10"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("no point of the space keeps to the constraints; the nearest is trial "),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("with parameters 556, but parameters <= 10"), std::string::npos) << outcome.err;
}

TEST_F(TuneTest, ShowPrintsTheBestFirst) {
  ASSERT_EQ(weft(tune({"--trials", "3"})).code, 0);
  const Outcome outcome = weft({"tune", "show", "study"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json study = shown();
  std::istringstream lines(outcome.out);
  std::string title, rule, first;
  std::getline(lines, title);
  std::getline(lines, rule);
  std::getline(lines, first);
  EXPECT_NE(title.find("optimizer.learning_rate"), std::string::npos) << outcome.out;
  EXPECT_EQ(std::stoi(first), study["best"]["trial"].get<int>()) << outcome.out;
}

TEST_F(TuneTest, ShowDrawsTheSearch) {
  ASSERT_EQ(weft(tune({"--trials", "3"})).code, 0);
  const Outcome outcome = weft({"tune", "show", "study", "-o", "search.svg"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string picture = read_all(path("search.svg"));
  EXPECT_NE(picture.find("<svg"), std::string::npos);
  EXPECT_GT(picture.size(), 5000u) << "two panels with their legend";
  expect_error(weft({"tune", "show", "study", "-o", "search.txt"}), 2, "neither a .svg nor a .png");
}

TEST_F(TuneTest, ShowDrawsWhatTheKeysDid) {
  ASSERT_EQ(weft(tune({"--trials", "6", "--searcher", "sobol", "--set-range", "optimizer.momentum=float:0:0.9",
                       "--set-range", "batch=choice:16,32"}))
                .code,
            0);
  for (const std::string picture : {"slices", "parallel", "contour", "importance"}) {
    const Outcome outcome = weft({"tune", "show", "study", "--picture", picture, "-o", picture + ".svg"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(read_all(path(picture + ".svg")).find("</svg>"), std::string::npos) << picture;
  }
  const std::string parallel = read_all(path("parallel.svg")), bars = read_all(path("importance.svg"));
  size_t lines = 0;
  for (size_t at = parallel.find("<polyline"); at != parallel.npos; at = parallel.find("<polyline", at + 1)) ++lines;
  EXPECT_EQ(lines, 6u);
  EXPECT_NE(bars.find("optimizer.learning_rate x optimizer.momentum"), std::string::npos) << bars;
  ASSERT_EQ(
      weft({"tune", "show", "study", "--picture", "contour", "--keys", "batch,optimizer.momentum", "-o", "c.svg"}).code,
      0);
  EXPECT_NE(read_all(path("c.svg")).find(">batch<"), std::string::npos);
  const auto shares = nlohmann::json::parse(weft({"tune", "show", "study", "--importance", "--json"}).out);
  EXPECT_EQ(shares["keys"].size(), 3u);
  EXPECT_EQ(shares["pairs"].size(), 3u);
  expect_error(weft({"tune", "show", "study", "--picture", "contour"}), 2, "add -o FILE.svg");
  expect_error(weft({"tune", "show", "study", "--picture", "parallel", "-o", "p.png"}), 2, "is drawn as .svg");
  expect_error(
      weft({"tune", "show", "study", "--picture", "contour", "--keys", "batch,optimizer.momentm", "-o", "c.svg"}), 2,
      "did you mean 'optimizer.momentum'?");
}

TEST_F(TuneTest, TwoTunersShareAStudy) {
  const std::vector<std::string> words = tune({"--trials", "10", "--workers", "1"});
  // Each process's output goes to files of its folder.
  fs::create_directories(path("other"));
  Process first(words, directory_);
  while (!first.has_ended() && !fs::exists(path("study/runs/0000")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  Process second({"tune", "--resume", "../study", "--workers", "1"}, path("other"));
  const Outcome one = first.wait(), two = second.wait();
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(two.code, 0) << two.err;
  const nlohmann::json study = shown();
  EXPECT_EQ(study["trials"].size(), 10u);
  EXPECT_EQ(count(study, "finished"), 10) << study.dump(1);
}

TEST_F(TuneTest, TwoTunersTogetherTakeNoMoreThanTheCores) {
  fs::create_directories(path("other"));
  Process first(tune({"--trials", "12", "--workers", "1024", "--set", "epochs=40"}), directory_);
  while (!first.has_ended() && !fs::exists(path("study/runs/0000")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  Process second({"tune", "--resume", "../study", "--workers", "1024"}, path("other"));
  tune::Study study = tune::Study::open(path("study"));
  int64_t most = 0;
  while (!first.has_ended() || !second.has_ended()) {
    const std::vector<tune::StudyTrial> trials = study.trials();
    most = std::max<int64_t>(most, std::count_if(trials.begin(), trials.end(), [](const tune::StudyTrial& trial) {
                               return trial.state == tune::StudyTrial::State::running && tune::is_here(trial.owner);
                             }));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const Outcome one = first.wait(), two = second.wait();
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_NE(one.err.find("warning: --workers 1024"), std::string::npos) << one.err;
  EXPECT_GE(most, 1);
  EXPECT_LE(most, available_cores());
  EXPECT_EQ(count(shown(), "finished"), 12);
}

TEST_F(TuneTest, AnotherSpaceIsAnotherStudy) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  expect_error(weft(tune({"--trials", "2", "--set-range", "batch=int:16:64"})), 2, "has another space");
  expect_error(weft(tune({"--trials", "2", "--set", "epochs=3"})), 2, "has another set");
}

TEST_F(TuneTest, SearchesTheUsualKeysOfARecipeWithoutRanges) {
  const Outcome outcome = weft({"tune", "recipe.toml", "--study", "study", "--trials", "2", "--set", "epochs=1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* range : {"optimizer.learning_rate=log:", "optimizer.momentum=float:0.7:0.98",
                            "batch=choice:8,16,32,64", "model.hidden=choice:64|128|256|128,64|256,128"})
    EXPECT_NE(outcome.err.find(range), std::string::npos) << outcome.err;
  for (const nlohmann::json& trial : shown()["trials"])
    EXPECT_TRUE(trial["values"].contains("optimizer.learning_rate"));
}

TEST_F(TuneTest, SchedulesAndAugmentationAreProposed) {
  write_all(path("network.toml"), "data = \"" + data() +
                                      "\"\nvalidation = 0.25\nepochs = 3\nbatch = 32\n[model]\nname = \"resnet9\"\n"
                                      "width = 2\n[optimizer]\nname = \"sgd\"\n");
  const Outcome outcome = weft({"tune", "network.toml", "--study", "study", "--trials", "4", "--searcher", "random",
                                "--propose", "schedules,augmentation"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("proposed for all trials: batch_schedule.boundaries=[1,2]"), std::string::npos)
      << outcome.err;
  const nlohmann::json study = shown();
  EXPECT_EQ(count(study, "finished"), 4);
  for (const char* key : {"batch_schedule.batches", "momentum_schedule.name", "augment.cutout"})
    EXPECT_TRUE(study["trials"][0]["values"].contains(key)) << key;
}

TEST_F(TuneTest, ARunThatThePowerCutTookOutOfTheStudyIsBegunAnew) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  fs::copy_file(path("study/study.db"), path("before.db"));
  ASSERT_EQ(weft({"tune", "--resume", "study", "--trials", "2"}).code, 0);
  fs::remove(path("study/study.db-wal"));
  fs::copy_file(path("before.db"), path("study/study.db"), fs::copy_options::overwrite_existing);
  write_all(path("study/runs/0001/of_before"), "");
  ASSERT_EQ(weft({"tune", "--resume", "study", "--trials", "2"}).code, 0);
  EXPECT_EQ(count(shown(), "finished"), 2);
  EXPECT_FALSE(fs::exists(path("study/runs/0001/of_before")));
}

TEST_F(TuneTest, ARecipeThatThePowerCutTookIsWrittenAgain) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  {
    tune::Study study = tune::Study::open(path("study"));
    tune::StudyTrial trial = study.trials().at(0);
    trial.state = tune::StudyTrial::State::interrupted;
    trial.results.clear();
    study.update(trial);
  }
  fs::remove_all(path("study/runs/0000"));
  write_all(path("study/trials/0000.toml"), "");
  ASSERT_EQ(weft({"tune", "--resume", "study", "--trials", "1"}).code, 0);
  EXPECT_EQ(count(shown(), "finished"), 1);
  EXPECT_NE(read_text(path("study/trials/0000.toml")), "");
}

TEST_F(TuneTest, AStudyWhoseDataCannotBeReadTouchesNoTrial) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  fs::rename(path("train-images"), path("elsewhere"));
  expect_error(weft({"tune", "--resume", "study", "--trials", "3"}), 1, "train-images");
  EXPECT_EQ(shown()["trials"].size(), 1u);
  fs::rename(path("elsewhere"), path("train-images"));
  ASSERT_EQ(weft({"tune", "--resume", "study", "--trials", "3"}).code, 0);
  EXPECT_EQ(count(shown(), "finished"), 3);
}

TEST_F(TuneTest, AStudyWhoseDataHaveChangedDoesNotGoOn) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  write_idx("train", 160, 8);
  expect_error(weft({"tune", "--resume", "study", "--trials", "3"}), 1,
               "the data of the study 'study' have changed: there were 240 samples, now 120");
  EXPECT_EQ(shown()["trials"].size(), 1u);
}

TEST_F(TuneTest, TenTrialsThatFailAlikeEndTheSearch) {
  ASSERT_EQ(weft(tiny_run("first", {"--set", "model.hidden=8"})).code, 0);
  fs::rename(path("first/checkpoints") / last_checkpoint("first") / "model.safetensors", path("first.safetensors"));
  ASSERT_EQ(weft(tune({"--trials", "1", "--set", "init=first.safetensors"})).code, 0);
  fs::remove(path("first.safetensors"));
  expect_error(weft({"tune", "--resume", "study", "--trials", "30", "--workers", "1", "--quiet"}), 1,
               "10 trials in a row failed alike");
  EXPECT_EQ(count(shown(), "failed"), 10);
}

TEST_F(TuneTest, ChoosesTheRecipeWhereThereAreDataAlone) {
  const Outcome outcome = weft(
      {"tune", "--data", data(), "--study", "study", "--trials", "1", "--set", "epochs=1", "--set", "model.width=4"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the recipe is that of `weft init`"), std::string::npos) << outcome.err;
  EXPECT_EQ(count(shown(), "finished"), 1);
}

TEST_F(TuneTest, NamesMistakes) {
  expect_error(weft({"tune"}), 2, "there is nothing to tune");
  expect_error(weft({"tune", "recipe.toml", "--data", data()}), 2, "give either RECIPE or --data");
  expect_error(weft(tune({"--objective", "validation_acuracy"})), 2, "did you mean 'validation_accuracy'?");
  expect_error(weft(tune({"--objective", "validation_rmse"})), 2, "no run of this recipe measures it");
  expect_error(weft(tune({"--set-range", "model.hidden=choice:abc|8"})), 2, "'abc'");
  expect_error(weft(tune({"--scheduler", "asha"})), 2, "leave no room for a second round");
  expect_error(weft(tune({"--scheduler", "median", "--percentile", "10"})), 2, "is of the scheduler percentile");
  expect_error(weft(tune({"--scheduler", "asha", "--set", "epochs=9", "--set", "evaluation.every_epochs=3"})), 2,
               "after 1, 3, 9 epochs, and the recipe measures validation_accuracy every 3 epochs; set "
               "evaluation.every_epochs=1, or --least-epochs 3");
  expect_error(weft(tune({"--set", "batch=5000"})), 2, "no trial of this recipe could train: batch = 5000");
  expect_error(weft(tune({"--time", "soon"})), 2, "is no duration");
  expect_error(weft(tune({"--propose", "schedule"})), 2, "did you mean 'schedules'?");
  expect_error(weft(tune({"--in-order", "2", "--scheduler", "median"})), 2, "decides by what has ended first");
  expect_error(weft({"tune", "--resume", "nothing"}), 2, "is no study");
  expect_error(weft({"tune", "--resume", "study", "--searcher", "gp"}), 2, "leave --searcher away");
  expect_error(weft({"tune", "recipe.toml", "--resume", "study"}), 2, "leave RECIPE away");
  expect_error(weft({"tune", "show", "."}), 2, "is no study");
  expect_error(weft({"tune", "show", ".", "--importance", "-o", "i.svg"}), 2, "take --picture importance");
  EXPECT_FALSE(fs::exists(path("study"))) << "nothing is written before all is checked";
}

TEST_F(TuneTest, ARunCanPause) {
  const std::vector<std::string> more = {"--epochs", "4", "--validation", "0.25"};
  ASSERT_EQ(weft(tiny_run("straight", more)).code, 0);
  std::vector<std::string> paused = more;
  paused.insert(paused.end(), {"--pause-after", "2"});
  ASSERT_EQ(weft(tiny_run("r", paused)).code, 0);
  EXPECT_FALSE(fs::exists(path("r/summary.json"))) << "the test data were not measured";
  ASSERT_EQ(weft({"train", "--resume", "r", "--pause-after", "4", "--quiet"}).code, 0);
  EXPECT_FALSE(fs::exists(path("r/summary.json")));
  ASSERT_EQ(weft({"train", "--resume", "r", "--quiet"}).code, 0);
  EXPECT_EQ(last_state("r"), last_state("straight"));
  EXPECT_EQ(json_of("r/summary.json")["test_accuracy"], json_of("straight/summary.json")["test_accuracy"]);
}

}  // namespace
}  // namespace weft::cli_tests
