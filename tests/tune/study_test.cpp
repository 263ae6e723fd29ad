// Studies: nothing that was finished is lost, whatever happens to the processes and files.
#include "weft/tune/study/study.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "weft/tune/study/owner.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;
using State = StudyTrial::State;
using test::error_of;

class StudyTest : public ::testing::Test {
 protected:
  static StudySettings settings() {
    return {.space = Space({log_real("optimizer.learning_rate", 1e-4, 1), integer("batch", 16, 256)}),
            .recipe = "epochs = 3\n",
            .objectives = {{"validation_accuracy", true}, {"parameters", false}}};
  }
  static StudyTrial trial(int64_t number) {
    return {.number = number,
            .state = State::finished,
            .values = {{"optimizer.learning_rate", 0.1}, {"batch", int64_t{32}}},
            .target = 3,
            .results = {0.5 + 0.001 * static_cast<double>(number), 100},
            .curve = {{1, 0.25}, {3, 0.5}},
            .plan = {.parameters = 100, .memory = 1000, .epochs = 3},
            .seconds = 1.5};
  }
  /// Adds the next trial, as a tuner does.
  static int64_t add_next(Study& study) {
    return study
        .change([&](const std::vector<StudyTrial>& trials) { return trial(static_cast<int64_t>(trials.size())); })
        ->number;
  }
  fs::path folder() const { return directory_ / "study"; }

  const TemporaryFolder temporary_;
  const fs::path directory_ = temporary_.path();
};

TEST_F(StudyTest, SeesWhatOtherConnectionsWrite) {
  Study one = Study::create(folder(), settings());
  add_next(one);
  EXPECT_EQ(one.trials().size(), 1u);
  Study other = Study::open(folder());
  add_next(other);
  StudyTrial changed = trial(0);
  changed.reason = "changed";
  other.update(changed);
  ASSERT_EQ(one.trials().size(), 2u);
  EXPECT_EQ(one.trials()[0].reason, "changed");
  add_next(one);
  EXPECT_EQ(other.trials().size(), 3u);
}

TEST_F(StudyTest, WhatWasNotCommittedIsNotKnown) {
  Study study = Study::create(folder(), settings());
  add_next(study);
  EXPECT_THROW(study.change([](const std::vector<StudyTrial>&) -> std::optional<StudyTrial> {
    throw std::runtime_error("while it decides");
  }),
               std::runtime_error);
  EXPECT_EQ(study.trials().size(), 1u);
}

TEST_F(StudyTest, KeepsSettingsAndTrials) {
  {
    Study study = Study::create(folder(), settings());
    add_next(study);
    StudyTrial failed = trial(1);
    failed.state = State::failed;
    failed.reason = "loss is nan";
    failed.results.clear();
    failed.curve.clear();
    study.change([&](const auto&) { return failed; });
    study.set_wanted_trials(70);
  }
  Study study = Study::open(folder());
  EXPECT_EQ(print_space(study.settings().space), print_space(settings().space));
  EXPECT_EQ(study.settings().recipe, settings().recipe);
  EXPECT_EQ(study.settings().objectives, settings().objectives);
  EXPECT_EQ(study.wanted_trials(), 70);
  const std::vector<StudyTrial> trials = study.trials();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].state, State::finished);
  EXPECT_EQ(trials[0].values, trial(0).values);
  EXPECT_EQ(trials[0].results, trial(0).results);
  EXPECT_EQ(trials[0].curve, trial(0).curve);
  EXPECT_EQ(trials[0].plan.memory, 1000);
  EXPECT_EQ(trials[1].reason, "loss is nan");
}

TEST_F(StudyTest, KeepsTheNumberOfWorkers) {
  {
    Study study = Study::create(folder(), settings());
    EXPECT_FALSE(study.workers().has_value()) << "as in a study of before: nobody has asked for any";
    study.set_workers(3);
  }
  EXPECT_EQ(Study::open(folder()).workers(), 3);
  EXPECT_EQ(Study::create(folder(), settings()).workers(), 3) << "it makes no other study of it";
}

TEST_F(StudyTest, KeepsThePercentileOfItsScheduler) {
  StudySettings with = settings();
  with.scheduler = {.name = "percentile", .most = 3, .percentile = 12.5};
  Study::create(folder(), with);
  EXPECT_EQ(Study::open(folder()).settings().scheduler.percentile, 12.5);
}

TEST_F(StudyTest, KeepsWhatASchedulerHasEnded) {
  StudyTrial cut = trial(0);
  cut.is_cut = true;
  Study::create(folder(), settings()).change([&](const auto&) { return cut; });
  EXPECT_TRUE(Study::open(folder()).trials()[0].is_cut);
}

TEST_F(StudyTest, OpensAStudyThatKnowsNoPredictedTimes) {
  {
    Study study = Study::create(folder(), settings());
    add_next(study);
  }
  Database(folder() / "study.db", Database::Mode::open)
      .execute("ALTER TABLE trials DROP COLUMN predicted; UPDATE settings SET value = '3' WHERE name = 'format'");
  Study study = Study::open(folder());
  add_next(study);
  EXPECT_EQ(study.trials()[0].results, trial(0).results);
  EXPECT_EQ(study.trials()[0].plan.seconds, 0);
}

TEST_F(StudyTest, NamesTheFormatOfAnotherWeft) {
  Study::create(folder(), settings());
  Database(folder() / "study.db", Database::Mode::open)
      .execute("UPDATE settings SET value = '9' WHERE name = 'format'");
  EXPECT_NE(error_of([&] { Study::open(folder()); }, ErrorKind::data).find("was written by another weft (format '9'"),
            std::string::npos);
}

TEST_F(StudyTest, NamesADatabaseThatWasEmptiedBesideItsRuns) {
  Study::create(folder(), settings());
  fs::create_directories(folder() / "runs" / "0000");
  std::ofstream(folder() / "study.db", std::ios::trunc).close();
  EXPECT_NE(error_of([&] { Study::create(folder(), settings()); }, ErrorKind::data).find("the runs of one lie beside"),
            std::string::npos);
}

TEST_F(StudyTest, ShowsAStudyToThoseWhoMayNotWriteIt) {
  {
    Study study = Study::create(folder(), settings());
    add_next(study);
  }
  fs::permissions(directory_, fs::perms(0755));
  fs::permissions(folder(), fs::perms(0555));
  fs::permissions(folder() / "study.db", fs::perms(0444));
  const pid_t other = fork();
  if (other == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    const std::string error = error_of([&] {
      if (Study::look_at(folder()).trials().size() != 1) fail(ErrorKind::data, "it has lost its trial");
    });
    _exit(error == "no error" ? 0 : 1);
  }
  int status = 0;
  waitpid(other, &status, 0);
  fs::permissions(folder(), fs::perms(0755));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(StudyTest, RefusesAnotherSpace) {
  Study::create(folder(), settings());
  StudySettings other = settings();
  other.space = Space({integer("batch", 16, 128)});
  EXPECT_NE(error_of([&] { Study::create(folder(), other); }, ErrorKind::usage).find("has another space"),
            std::string::npos);
  other = settings();
  other.seed = 2;
  EXPECT_NE(error_of([&] { Study::create(folder(), other); }).find("has another seed, 1 in place of 2"),
            std::string::npos);
  Study::create(folder(), settings());  // the same may join
}

TEST_F(StudyTest, RefusesAFolderThatHoldsSomethingElse) {
  fs::create_directories(folder());
  std::ofstream(folder() / "notes.txt") << "mine";
  EXPECT_NE(error_of([&] { Study::create(folder(), settings()); }, ErrorKind::usage).find("holds something"),
            std::string::npos);
  EXPECT_NE(error_of([&] { Study::open(folder()); }, ErrorKind::usage).find("is no study"), std::string::npos);
}

TEST_F(StudyTest, NamesADamagedDatabase) {
  Study::create(folder(), settings());
  fs::remove(folder() / "study.db-wal");
  std::ofstream(folder() / "study.db", std::ios::binary) << std::string(8192, 'x');
  EXPECT_NE(error_of([&] { Study::open(folder()); }, ErrorKind::data).find("is damaged"), std::string::npos);
}

TEST_F(StudyTest, NamesTheFileAndTheTrialOfADamagedField) {
  const Values outside = {{"optimizer.learning_rate", 0.1}, {"batch", int64_t{7}}};
  for (const std::string& damage :
       {std::string("results = '[0.5'"), std::string("results = '[0.5]'"), std::string("results = '{\"a\":1}'"),
        std::string("curve = '[[1]]'"), std::string("point = '{'"), "point = '" + print_values(outside) + "'",
        std::string("state = 'sleeping'")}) {
    fs::remove_all(folder());
    Study study = Study::create(folder(), settings());
    add_next(study);
    Database(folder() / "study.db", Database::Mode::open).execute(("UPDATE trials SET " + damage).c_str());
    const std::string message = error_of([&] { study.trials(); }, ErrorKind::data);
    EXPECT_NE(message.find("study.db' is damaged: trial 0 cannot be read"), std::string::npos) << damage << message;
  }
}

TEST_F(StudyTest, NamesTheFolderOfADamagedSetting) {
  for (const char* damage : {"'{' WHERE name = 'space'", "'many' WHERE name = 'seed'", "'0' WHERE name = 'threads'",
                             "'' WHERE name = 'objective'"}) {
    fs::remove_all(folder());
    Study::create(folder(), settings());
    Database(folder() / "study.db", Database::Mode::open)
        .execute((std::string("UPDATE settings SET value = ") + damage).c_str());
    const std::string message = error_of([&] { Study::open(folder()); }, ErrorKind::data);
    EXPECT_NE(message.find(folder().string() + "' holds no study"), std::string::npos) << damage << message;
  }
}

TEST_F(StudyTest, NamesALockThatLasts) {
  Study::create(folder(), settings());
  Database other(folder() / "study.db", Database::Mode::open);
  const Transaction held(other);
  Study study = Study::open(folder(), /*busy_seconds=*/0.05);
  EXPECT_NE(error_of([&] { add_next(study); }, ErrorKind::io).find("locked for 0.05 s"), std::string::npos);
}

TEST_F(StudyTest, SaysThatItWaitsForALock) {
  Study::create(folder(), settings());
  Database other(folder() / "study.db", Database::Mode::open);
  const Transaction held(other);
  Study study = Study::open(folder(), /*busy_seconds=*/2.2);
  testing::internal::CaptureStderr();
  error_of([&] { add_next(study); }, ErrorKind::io);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("study.db'; waiting for it, for 2.2 s at most"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(StudyTest, NamesADiskThatIsFull) {
  { Study::create(folder(), settings()); }
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64 * 1024, 64 * 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
    Study study = Study::open(folder());
    for (int count = 0; count < 1000; ++count) {
      try {
        add_next(study);
      } catch (const Error& error) {
        const std::string message = error.what();
        const bool is_named = error.kind() == ErrorKind::io && message.find("make room") != message.npos;
        _exit(is_named && count > 0 ? 0 : 1);
      }
    }
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  Study study = Study::open(folder());
  EXPECT_GT(study.trials().size(), 0u) << "what was written before is there";
  add_next(study);
}

/// Adds trials until it is killed, and says each number when it is on the disk.
[[noreturn]] void write_until_killed(const fs::path& folder, int said, const std::function<int64_t(Study&)>& add) {
  Study study = Study::open(folder);
  while (true) {
    const int64_t number = add(study);
    [[maybe_unused]] const ssize_t written = write(said, &number, sizeof number);
  }
}

TEST_F(StudyTest, KillingAProcessLosesNoTrialThatIsWritten) {
  { Study::create(folder(), settings()); }
  int64_t last_said = -1;
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) write_until_killed(folder(), ends[1], add_next);
    close(ends[1]);
    for (int count = 0; count < 3 + round; ++count) ASSERT_EQ(read(ends[0], &last_said, sizeof last_said), 8);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    while (read(ends[0], &last_said, sizeof last_said) == 8) {
    }
    close(ends[0]);
    Study study = Study::open(folder());
    const std::vector<StudyTrial> trials = study.trials();
    ASSERT_GT(static_cast<int64_t>(trials.size()), last_said);
    for (const StudyTrial& found : trials) EXPECT_EQ(found.results, trial(found.number).results);
  }
}

TEST_F(StudyTest, TwoProcessesNeverTakeTheSameNumber) {
  { Study::create(folder(), settings()); }
  constexpr int kEach = 100;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    children.push_back(fork());
    if (children.back() == 0) {
      Study study = Study::open(folder());
      for (int count = 0; count < kEach; ++count) {
        study.change([&](const std::vector<StudyTrial>& trials) {
          StudyTrial own = trial(static_cast<int64_t>(trials.size()));
          own.bracket = child;
          return own;
        });
      }
      _exit(0);
    }
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  int64_t of_first = 0;
  const std::vector<StudyTrial> trials = Study::open(folder()).trials();
  for (const StudyTrial& found : trials) of_first += found.bracket == 0;
  EXPECT_EQ(trials.size(), 2u * kEach);
  EXPECT_EQ(of_first, kEach);
}

TEST_F(StudyTest, TrialsOfADeadProcessGoToOthers) {
  Study study = Study::create(folder(), settings());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    Study own = Study::open(folder());
    own.change([&](const auto&) {
      StudyTrial running = trial(0);
      running.state = State::running;
      running.owner = this_process();
      return running;
    });
    [[maybe_unused]] const ssize_t written = write(ends[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  const auto state_seen = [&] {
    State seen = State::failed;
    study.change([&](const std::vector<StudyTrial>& trials) -> std::optional<StudyTrial> {
      seen = trials.at(0).state;
      return std::nullopt;
    });
    return seen;
  };
  EXPECT_EQ(state_seen(), State::running);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(state_seen(), State::interrupted);
  close(ends[0]);
  close(ends[1]);
}

TEST(Owner, IsThisProcessAndNoOther) {
  EXPECT_TRUE(is_running(this_process()));
  EXPECT_FALSE(is_running("boot:1:2"));
  EXPECT_FALSE(is_running(""));
}

TEST(Owner, SaysWhereATrialTrains) {
  EXPECT_FALSE(is_here(this_process()));
  EXPECT_TRUE(is_here(owner_here(this_process())));
  EXPECT_TRUE(is_here(owner_here("boot:1:2", this_process())));
  EXPECT_TRUE(is_running(owner_here("boot:1:2", this_process())));
  EXPECT_FALSE(is_running(owner_here("boot:1:2")));
}

TEST_F(StudyTest, TheBestHasTrainedToItsEnd) {
  std::vector<StudyTrial> trials = {trial(0), trial(1), trial(2)};
  trials[2].state = State::paused;
  EXPECT_EQ(best_trial(settings(), trials)->number, 1);
  trials[0].state = trials[1].state = State::failed;
  EXPECT_EQ(best_trial(settings(), trials)->number, 2);
}

TEST_F(StudyTest, OfEqualTrialsTheBestIsTheOneThatNoOtherBeats) {
  std::vector<StudyTrial> trials = {trial(0), trial(1), trial(2)};
  for (StudyTrial& one : trials) one.results = {0.5, static_cast<double>(300 - one.number)};
  EXPECT_EQ(best_trial(settings(), trials)->number, 2);
  ASSERT_EQ(best_trials(settings(), trials).size(), 1u);
}

TEST_F(StudyTest, TheFrontIsOfTrialsThatTrainedToTheirEnd) {
  std::vector<StudyTrial> trials = {trial(0), trial(1), trial(2)};
  trials[2].state = State::paused;
  const std::vector<StudyTrial> front = best_trials(settings(), trials);
  ASSERT_EQ(front.size(), 1u);
  EXPECT_EQ(front[0].number, best_trial(settings(), trials)->number);
}

TEST_F(StudyTest, SearchersSeeLossesAndFailures) {
  std::vector<StudyTrial> trials = {trial(0), trial(1), trial(2)};
  trials[1].state = State::refused;
  trials[1].results.clear();
  trials[2].state = State::running;
  trials[2].results.clear();
  const History history = history_of(settings(), trials);
  EXPECT_EQ(history[0].losses, (std::vector<double>{-0.5, 100}));
  EXPECT_EQ(history[0].resource, 3);
  EXPECT_EQ(history[1].state, Trial::State::failed);
  EXPECT_EQ(history[2].state, Trial::State::running);
}

}  // namespace
}  // namespace weft::tune
