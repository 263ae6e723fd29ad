// weft tune --serve and weft tune worker: a tuner and its workers as processes that speak over localhost.
#include "tests/cli/run_files.h"
#include "weft/tune/study/study.h"

namespace weft::cli_tests {
namespace {

using tune::Study;
using tune::StudyTrial;
using State = StudyTrial::State;

class TuneWorkerTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    for (const char* folder : {"w1", "w2", "tuner"}) fs::create_directories(path(folder));
    write_all(path("tuner/recipe.toml"),
              "data = \"idx:../train-images,../train-labels,../test-images,../test-labels\"\n"
              "validation = 0.25\nepochs = 2\nbatch = 32\n[model]\nname = \"mlp\"\n"
              "hidden = \"8\"\n[optimizer]\nname = \"sgd\"\n");
  }
  static std::vector<std::string> tune(const std::string& study, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"tune", "recipe.toml", "--study",
                                      study,  "--set-range", "optimizer.learning_rate=log:1e-4:1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::vector<std::string> served(std::vector<std::string> words) {
    words.insert(words.end(), {"--workers", "0", "--serve", "127.0.0.1:0", "--lost-after", "3s"});
    return words;
  }
  std::unique_ptr<Process> start(const std::vector<std::string>& words) {
    fs::remove(path("tuner/.stderr"));
    return std::make_unique<Process>(words, path("tuner"));
  }
  /// Where the tuner listens, once it says so.
  std::string address(Process& tuner) const {
    const std::string mark = "tune worker ";
    while (!tuner.has_ended()) {
      const std::string said = read_all(path("tuner/.stderr"));
      const size_t begin = said.find(mark), end = said.find(" --token-file");
      if (begin != said.npos && end != said.npos) return said.substr(begin + mark.size(), end - begin - mark.size());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << read_all(path("tuner/.stderr"));
    return "127.0.0.1:1";
  }
  std::unique_ptr<Process> work(const std::string& address, const std::string& folder,
                                const std::string& study = "study", std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"tune",
                                      "worker",
                                      address,
                                      "--token-file",
                                      path("tuner/" + study + "/token").string(),
                                      "--trials",
                                      "1",
                                      "--folder",
                                      path(folder + "/runs").string(),
                                      "--lost-after",
                                      "3s"};
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Process>(words, path(folder));
  }
  std::vector<StudyTrial> trials(const std::string& study = "study") const {
    return Study::open(path("tuner/" + study)).trials();
  }
  int count(State state) const {
    const std::vector<StudyTrial> all = trials();
    return static_cast<int>(
        std::count_if(all.begin(), all.end(), [&](const auto& trial) { return trial.state == state; }));
  }
  void expect_same(const std::string& one, const std::string& other) const {
    const std::vector<StudyTrial> a = trials(one), b = trials(other);
    ASSERT_EQ(a.size(), b.size());
    for (size_t trial = 0; trial < a.size(); ++trial) {
      EXPECT_EQ(a[trial].state, b[trial].state) << trial;
      EXPECT_EQ(a[trial].values, b[trial].values) << trial;
      EXPECT_EQ(a[trial].results, b[trial].results) << trial;
      EXPECT_EQ(a[trial].curve, b[trial].curve) << trial;
    }
  }
  Outcome here(const std::vector<std::string>& words) { return Process(words, path("tuner")).wait(); }
};

TEST_F(TuneWorkerTest, AStudyElsewhereIsThatOfAPoolHere) {
  const std::vector<std::string> more = {"--trials", "6"};
  std::vector<std::string> local = tune("local", more);
  local.insert(local.end(), {"--workers", "1"});
  ASSERT_EQ(here(local).code, 0);
  const auto tuner = start(served(tune("study", more)));
  const auto worker = work(address(*tuner), "w1");
  const Outcome searched = tuner->wait(), worked = worker->wait();
  ASSERT_EQ(searched.code, 0) << searched.err;
  EXPECT_EQ(worked.code, 0) << worked.err;
  EXPECT_NE(worked.err.find("the search has ended; 6 trials went back"), std::string::npos) << worked.err;
  expect_same("local", "study");
  const Study study = Study::open(path("tuner/study"));
  const auto best = best_trial(study.settings(), trials());
  EXPECT_TRUE(fs::exists(study.run_of(best->number) / "summary.json")) << "the winner's weights are here, and tested";
  EXPECT_TRUE(fs::is_empty(path("w1/runs"))) << "nothing stays at the worker";
}

TEST_F(TuneWorkerTest, TwoWorkersTrainAPopulationAsAPoolHereDoes) {
  const std::vector<std::string> more = {"--scheduler", "population", "--trials", "4", "--set", "epochs=3"};
  ASSERT_EQ(here(tune("local", more)).code, 0);
  const auto tuner = start(served(tune("study", more)));
  const std::string at = address(*tuner);
  const auto one = work(at, "w1"), two = work(at, "w2");
  const Outcome searched = tuner->wait();
  ASSERT_EQ(searched.code, 0) << searched.err;
  EXPECT_EQ(one->wait().code, 0);
  EXPECT_EQ(two->wait().code, 0);
  expect_same("local", "study");
}

TEST_F(TuneWorkerTest, ResultsThatAreToldInOrderGiveTheSameStudy) {
  const std::vector<std::string> more = {"--trials", "16", "--in-order", "2", "--set-range", "batch=int:16:64:16"};
  ASSERT_EQ(here(tune("local", more)).code, 0);
  const auto tuner = start(served(tune("study", more)));
  const std::string at = address(*tuner);
  const auto one = work(at, "w1"), two = work(at, "w2");
  const Outcome searched = tuner->wait();
  ASSERT_EQ(searched.code, 0) << searched.err;
  one->wait(), two->wait();
  expect_same("local", "study");
}

TEST_F(TuneWorkerTest, APromotedTrialGoesOnAtAnotherWorker) {
  const auto tuner =
      start(served(tune("study", {"--trials", "6", "--set", "epochs=4", "--scheduler", "asha", "--reduction", "2"})));
  const std::string at = address(*tuner);
  const auto one = work(at, "w1"), two = work(at, "w2");
  const Outcome searched = tuner->wait();
  ASSERT_EQ(searched.code, 0) << searched.err;
  one->wait(), two->wait();
  int finished = 0;
  for (const StudyTrial& trial : trials()) {
    if (trial.state != State::finished) continue;
    const std::string number = std::string("000") + std::to_string(trial.number);
    ASSERT_EQ(weft({"train", "tuner/study/trials/" + number + ".toml", "--run", "straight-" + number, "--quiet"}).code,
              0);
    EXPECT_EQ(last_state("tuner/study/runs/" + number), last_state("straight-" + number));
    ++finished;
  }
  EXPECT_GT(finished, 0);
}

TEST_F(TuneWorkerTest, TheTrialOfAKilledWorkerGoesToAnotherOne) {
  const auto tuner = start(served(tune("study", {"--trials", "4", "--set", "epochs=60"})));
  const std::string at = address(*tuner);
  auto first = work(at, "w1");
  while (!tuner->has_ended() && !fs::exists(path("tuner/study/runs/0001/metrics.jsonl")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(count(State::finished), 1);
  first->send(SIGKILL);
  first->wait();
  const auto second = work(at, "w2");
  const Outcome searched = tuner->wait();
  ASSERT_EQ(searched.code, 0) << searched.err;
  EXPECT_EQ(second->wait().code, 0);
  EXPECT_NE(searched.err.find("is lost"), std::string::npos) << searched.err;
  EXPECT_EQ(count(State::finished), 4);
}

TEST_F(TuneWorkerTest, ASilentWorkerIsFoundAndEndsItselfOnceItSpeaksAgain) {
  const auto tuner = start(served(tune("study", {"--trials", "2", "--set", "epochs=120"})));
  const std::string at = address(*tuner);
  auto first = work(at, "w1");
  while (!tuner->has_ended() && !fs::exists(path("tuner/study/runs/0000/metrics.jsonl")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  first->send(SIGSTOP);  // as where its cable is cut: the connection stays, and nothing comes
  const auto second = work(at, "w2");
  const Outcome searched = tuner->wait();
  ASSERT_EQ(searched.code, 0) << searched.err;
  EXPECT_NE(searched.err.find("silent for 3 s"), std::string::npos) << searched.err;
  EXPECT_EQ(count(State::finished), 2);
  second->wait();
  first->send(SIGCONT);
  const Outcome late = first->wait();
  EXPECT_EQ(late.code, 1);
  EXPECT_NE(late.err.find("is gone"), std::string::npos) << late.err;
}

TEST_F(TuneWorkerTest, ASchedulerEndsATrialElsewhere) {
  const auto tuner = start(served(
      tune("study", {"--trials", "6", "--scheduler", "median", "--set", "epochs=4000", "--searcher", "random"})));
  const auto worker = work(address(*tuner), "w1");
  while (!tuner->has_ended() && !fs::exists(path("tuner/study/runs/0000/metrics.jsonl")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  Study study = Study::open(path("tuner/study"));
  for (int64_t number = 1; number <= 5; ++number)  // five that nobody comes near
    study.change([&](const std::vector<StudyTrial>& trials) {
      return StudyTrial{.number = static_cast<int64_t>(trials.size()),
                        .state = State::finished,
                        .values = trials[0].values,
                        .target = 4000,
                        .results = {2.0},
                        .curve = {{1, 2.0}, {4000, 2.0}},
                        .plan = trials[0].plan};
    });
  tuner->wait();
  const StudyTrial trial = trials()[0];
  EXPECT_EQ(trial.state, State::stopped) << name_of(trial.state);
  ASSERT_FALSE(trial.curve.empty());
  EXPECT_LT(trial.curve.back().first, 4000);
  EXPECT_TRUE(fs::exists(path("tuner/study/runs/0000/checkpoints")));
}

TEST_F(TuneWorkerTest, AStoppedTunerTellsItsWorkersAndTheStudyGoesOnHere) {
  auto tuner = start(served(tune("study", {"--trials", "3", "--set", "epochs=80"})));
  const auto worker = work(address(*tuner), "w1");
  while (!tuner->has_ended() && !fs::exists(path("tuner/study/runs/0001/metrics.jsonl")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  tuner->send(SIGINT);
  EXPECT_EQ(tuner->wait().code, 130);
  const Outcome worked = worker->wait();
  EXPECT_EQ(worked.code, 0) << worked.err;
  EXPECT_NE(worked.err.find("the tuner was stopped"), std::string::npos) << worked.err;
  EXPECT_EQ(trials()[1].state, State::interrupted);
  EXPECT_TRUE(fs::exists(path("tuner/study/runs/0001/checkpoints"))) << "its checkpoint came back";
  ASSERT_EQ(here({"tune", "--resume", "study"}).code, 0);
  EXPECT_EQ(count(State::finished), 3);
}

TEST_F(TuneWorkerTest, AWorkerWhoseTunerIsKilledEnds) {
  auto tuner = start(served(tune("study", {"--trials", "2", "--set", "epochs=2000"})));
  const auto worker = work(address(*tuner), "w1");
  while (!tuner->has_ended() && !fs::exists(path("tuner/study/runs/0000/metrics.jsonl")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  tuner->send(SIGKILL);
  tuner->wait();
  const Outcome worked = worker->wait();
  EXPECT_EQ(worked.code, 1);
  EXPECT_NE(worked.err.find("is gone"), std::string::npos) << worked.err;
  EXPECT_NE(worked.err.find("tune --resume STUDY --serve"), std::string::npos) << worked.err;
}

TEST_F(TuneWorkerTest, AStoppedWorkerSendsBackWhatItHas) {
  auto tuner = start(served(tune("study", {"--trials", "2", "--set", "epochs=120"})));
  const std::string at = address(*tuner);
  const auto first = work(at, "w1");
  while (!tuner->has_ended() && !fs::exists(path("tuner/study/runs/0000/metrics.jsonl")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  first->send(SIGINT);
  EXPECT_EQ(first->wait().code, 130);
  EXPECT_TRUE(fs::exists(path("tuner/study/runs/0000/checkpoints")));
  const auto second = work(at, "w2");
  const Outcome searched = tuner->wait();
  ASSERT_EQ(searched.code, 0) << searched.err;
  EXPECT_EQ(count(State::finished), 2);
  second->wait();
}

TEST_F(TuneWorkerTest, AWorkerWithoutTheDataIsRefusedByName) {
  auto tuner = start(served(tune("study", {"--trials", "1"})));
  const std::string at = address(*tuner);
  while (!tuner->has_ended() && !fs::exists(path("tuner/study/trials/0000.toml")))  // it reads the data itself
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  fs::rename(path("train-images"), path("elsewhere"));
  const Outcome without = work(at, "w1")->wait();
  EXPECT_NE(without.code, 0);
  EXPECT_NE(without.err.find("train-images"), std::string::npos) << without.err;
  fs::rename(path("elsewhere"), path("train-images"));
  const std::string labels = read_all(path("train-labels"));
  std::string changed = labels;
  for (size_t sample = 8; sample < changed.size(); ++sample)
    changed[sample] = static_cast<char>((changed[sample] + 1) % 4);
  write_all(path("train-labels"), changed);
  const Outcome other = work(at, "w1")->wait();
  EXPECT_NE(other.code, 0);
  EXPECT_NE(other.err.find("is not the data of the study"), std::string::npos) << other.err;
  write_all(path("train-labels"), labels);
  const auto worker = work(at, "w2");
  const Outcome searched = tuner->wait();
  EXPECT_EQ(searched.code, 0);
  EXPECT_NE(searched.err.find("cannot work: "), std::string::npos) << searched.err;
  worker->wait();
}

TEST_F(TuneWorkerTest, NamesMistakes) {
  write_all(path("short"), "abc\n");
  write_all(path("token"), "0123456789abcdef0123456789abcdef\n");
  expect_error(weft({"tune", "worker", "nowhere"}), 2, "'nowhere' is no address");
  expect_error(weft({"tune", "worker", "127.0.0.1:1"}), 2, "give --token-file FILE");
  expect_error(weft({"tune", "worker", "127.0.0.1:1", "--token-file", "short"}), 2, "has 3 characters");
  expect_error(weft({"tune", "worker", "127.0.0.1:1", "--token-file", "token"}), 1,
               "cannot reach a tuner at 127.0.0.1:1");
  expect_error(here(tune("study", {"--workers", "0"})), 2, "leaves nobody to train");
  auto tuner = start(served(tune("study", {"--trials", "1"})));
  const std::string at = address(*tuner);
  const Outcome stranger = weft({"tune", "worker", at, "--token-file", path("token").string()});
  EXPECT_EQ(stranger.code, 1);
  EXPECT_NE(stranger.err.find("its token is not that of the study"), std::string::npos) << stranger.err;
  tuner->send(SIGINT);
  tuner->wait();
}

}  // namespace
}  // namespace weft::cli_tests
