// Ranks that fail, are lost, are slow, or are launched again.
#include "tests/cli/ranks_under_mpirun.h"

namespace weft::cli_tests {
namespace {

TEST_F(Ranks, WhatFailsOnOneOfThemNamesItAndEndsAll) {
  std::vector<std::string> arguments = tiny_run("r"), other = arguments;
  *std::find(other.begin(), other.end(), data()) = "idx:missing,train-labels";
  arguments.insert(arguments.end(), {":", "-n", "1", WEFT_PROGRAM});
  arguments.insert(arguments.end(), other.begin(), other.end());
  const Outcome outcome = weft_on(1, arguments);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: rank 1 on host '"), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("missing"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("r")));
}

// Three jobs at once, as each takes its seconds: rank 1 is stopped before it runs weft, rank 0 is stopped while it
// waits for rank 1, rank 1 ends without a word.
TEST_F(Ranks, OneThatKeepsTheOthersFromStartingIsNamed) {
  Process before(with_second("before", "kill -STOP $$"), path("before"), -1, mpirun(1));
  Process within(with_second("within", "sleep 2"), path("within"), -1, mpirun(1));
  Process ended(with_second("ended", "exit 0"), path("ended"), -1, mpirun(1));
  const auto begin = std::chrono::steady_clock::now();
  const pid_t stopped = wait_for_starting_rank(path("within"), 0);
  ASSERT_GT(stopped, 0);
  kill(stopped, SIGSTOP);
  const auto expect_named = [](Process& job, int code, const std::string& who, const std::string& why,
                               const std::string& seconds = "6") {
    const Outcome outcome = job.wait();
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
    const size_t named = outcome.err.find("weft: the ranks have not found each other: " + who + " on host '");
    ASSERT_NE(named, std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("' has given no sign of life for " + seconds + " s: " + why, named), std::string::npos)
        << outcome.err;
  };
  expect_named(before, 128 + SIGKILL, "rank 1", "its process ");
  expect_named(within, 128 + SIGKILL, "rank 0", "its process " + std::to_string(stopped) + " is stopped");
  expect_named(ended, 75, "rank 1", "its process has ended", "10");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  for (const launch::RunningProcess& one : launch::running_processes()) {
    std::error_code code;
    const fs::path folder = fs::read_symlink(fs::path("/proc") / std::to_string(one.process) / "cwd", code);
    EXPECT_NE(folder.parent_path(), fs::canonical(directory_)) << one.process;
  }
}

TEST_F(Ranks, OneThatIsKilledBeforeTheyHaveFoundEachOtherIsNamedAtOnce) {
  Process job(with_second("killed", "sleep 5"), path("killed"), -1, mpirun(1));
  const pid_t killed = wait_for_starting_rank(path("killed"), 0);
  ASSERT_GT(killed, 0);
  kill(killed, SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 128 + SIGKILL) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: "), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("weft: the ranks have not found each other: rank 0 on host '"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("its process " + std::to_string(killed) + " has ended"), std::string::npos) << outcome.err;
}

TEST_F(Ranks, ALaunchGoesOnWithoutARankThatIsStoppedWhileTheyStart) {
  std::vector<std::string> arguments = {"launch", "-n", "2", "--restarts", "1", "--"};
  const std::vector<std::string> train = tiny_run("r");
  arguments.insert(arguments.end(), train.begin(), train.end());
  Process process(arguments, directory_);
  const pid_t stopped = wait_for_starting_rank(directory_, 1);
  ASSERT_GT(stopped, 0);
  kill(stopped, SIGSTOP);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("has given no sign of life"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("weft: rank 1 on host '"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("; start 2 of at most 2, on 1 rank: `weft train "), std::string::npos) << outcome.err;
  EXPECT_TRUE(fs::exists(path("r/summary.json")));
}

TEST_F(Ranks, OneThatKeepsTheOthersWaitingIsNamed) { expect_named_where_it_is_slow({}); }

TEST_F(Ranks, OneThatKeepsTheOthersWaitingIsNamedWhereTheyAverageTheirWeights) {
  expect_named_where_it_is_slow({"--set", "averaging.period=4"});
}

TEST_F(Ranks, OneThatStaysSlowTakesFewerGrains) {
  with_a_slow_rank({"--set", "balance.grains=16"}, "shares", [](const nlohmann::json& record, const Outcome& outcome) {
    const std::vector<int64_t> grains = record["grains"];
    ASSERT_EQ(grains.size(), 2u) << record;
    EXPECT_EQ(grains[0] + grains[1], 16) << record;
    EXPECT_LT(grains[1], 8) << record;
    EXPECT_EQ(record["before"], (std::vector<int64_t>{8, 8})) << record;
    EXPECT_EQ(count_of(outcome.err, " on, by their speed, rank 0 on host '"), 1) << outcome.err;
  });
}

// As where the link to another host is cut: this host's ranks end, and mpirun waits for the others for ever.
TEST_F(Ranks, ALaunchEndsWhereMpirunWaitsForNobody) {
  fs::create_directory(path("bin"));
  write_all(path("bin/mpirun"), "#!/bin/bash\nshift 3\n\"$@\"\nwhile :; do sleep 0.1; done\n");
  fs::permissions(path("bin/mpirun"), fs::perms::owner_all);
  std::vector<std::string> arguments = {"launch", "-n", "2", "--"};
  const std::vector<std::string> train = tiny_run("r", {"--epochs", "300"});
  arguments.insert(arguments.end(), train.begin(), train.end());
  const std::string search = "PATH=" + path("bin").string() + ":/usr/bin:/bin";
  Process process(arguments, directory_, -1, {search});
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 128 + SIGKILL) << outcome.err;
  EXPECT_NE(outcome.err.find("all ranks of this host have ended, and mpirun, which went on, was ended"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Ranks, ALaunchedRunGoesOnWithoutARankThatWasKilled) {
  const std::vector<std::string> train = tiny_run("r", {"--epochs", "300", "--set", "checkpoint.every_epochs=10"});
  ASSERT_EQ(weft(tiny_run("whole", {"--epochs", "300", "--set", "checkpoint.every_epochs=10"})).code, 0);
  std::vector<std::string> arguments = {"launch", "-n", "2", "--restarts", "1", "--"};
  arguments.insert(arguments.end(), train.begin(), train.end());
  Process process(arguments, directory_);
  while (!process.has_ended() && !fs::exists(path("r/checkpoints/best")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::vector<pid_t> ranks = training_processes();
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks.back(), SIGKILL);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("start 2 of at most 2, on 1 rank: `weft train --resume r --quiet --threads 1`"),
            std::string::npos)
      << outcome.err;
  expect_same_losses("r", "whole");
}

TEST_F(Ranks, LaunchHandsARequestToStopToTheRanks) {
  std::vector<std::string> arguments = {"launch", "-n", "2", "--"};
  const std::vector<std::string> train = tiny_run("r", {"--epochs", "3000", "--set", "checkpoint.every_epochs=10"});
  arguments.insert(arguments.end(), train.begin(), train.end());
  Process process(arguments, directory_);
  while (!process.has_ended() && !fs::exists(path("r/checkpoints/best")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  process.send(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "weft: interrupted after step "), 1) << outcome.err;
}

TEST_F(Ranks, LaunchErrors) {
  expect_error(weft({"launch", "-n", "2", "--", "eval", "r"}), 2, "weft launch starts `weft train`");
  expect_error(weft({"launch", "-n", "2", "--restarts", "1", "--", "train", "demo"}), 2, "add --run DIR");
}

}  // namespace
}  // namespace weft::cli_tests
