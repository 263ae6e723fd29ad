// `weft launch` from the command line: its errors, its script for Slurm, and hosts that keep the run on disks of their
// own, all without MPI, Slurm or other hosts.
#include <gmock/gmock.h>

#include "tests/cli/run_files.h"

namespace weft::cli_tests {
namespace {

using ::testing::HasSubstr;

class Launch : public RunTest {};

TEST_F(Launch, Errors) {
  expect_error(weft({"launch", "-n", "2", "--slurm", "--", "train", "demo"}), 2,
               "--slurm wants to know the run directory");
  expect_error(weft({"launch", "-n", "2", "--nodes", "2", "--", "train", "demo", "--run", "r"}), 2, "add --slurm");
  expect_error(weft({"launch", "-n", "2", "--slurm", "--hosts", "a", "--", "train", "demo", "--run", "r"}), 2,
               "Slurm chooses the hosts");
  expect_error(weft({"launch", "-n", "2", "--hosts", "a:x", "--", "train", "demo"}), 2, "'a:x' is no host");
  expect_error(weft({"launch", "-n", "2", "--slurm", "--setup", "a\nb", "--dry-run", "--", "train", "--run", "r"}), 2,
               "--setup: a value has several lines");
}

TEST_F(Launch, TheScriptIsPrintedOrSubmitted) {
  const std::vector<std::string> train = {"--", "train", "demo", "--run", "runs/x"};
  std::vector<std::string> words = {"launch", "-n", "2", "--slurm", "--time", "10", "--dry-run"};
  words.insert(words.end(), train.begin(), train.end());
  const Outcome dry = weft(words);
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("#SBATCH --time=10\n"));
  EXPECT_FALSE(fs::exists(path("runs")));
  std::erase(words, "--dry-run");
  fs::create_directory(path("bin"));
  const std::string search = "PATH=" + path("bin").string() + ":/usr/bin:/bin";
  write_all(path("bin/sbatch"), "#!/bin/bash\necho '17;here'\necho \"$@\" > called\n");
  fs::permissions(path("bin/sbatch"), fs::perms::owner_all);
  const Outcome submitted = Process(words, directory_, -1, {search}).wait();
  EXPECT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_EQ(submitted.out,
            "job 17, by runs/x.sbatch\n  squeue -j 17                        how it stands\n"
            "  tail -F runs/x.slurm-17.log\n  scancel --batch --signal=TERM 17    ends it after a checkpoint\n");
  EXPECT_EQ(read_all(path("called")), "--parsable runs/x.sbatch\n");
  EXPECT_EQ(read_all(path("runs/x.sbatch")), dry.out);
  write_all(path("bin/sbatch"), "#!/bin/bash\necho 'sbatch: error: invalid partition specified: x' >&2\nexit 1\n");
  expect_error(Process(words, directory_, -1, {search}).wait(), 2, "invalid partition specified: x");
}

TEST_F(Launch, HostsThatCannotBeReachedAreNamed) {
  write_all(path("agent"), "#!/bin/bash\n[[ $1 == good ]] && exit 0\necho \"no route to $1\" >&2\nexit 255\n");
  fs::permissions(path("agent"), fs::perms::owner_all);
  const std::string agent = "OMPI_MCA_plm_rsh_agent=" + path("agent").string();
  const Outcome outcome =
      Process({"launch", "-n", "2", "--hosts", "good,bad", "--", "train", "demo"}, directory_, -1, {agent}).wait();
  expect_error(outcome, 2, "host 'bad' cannot be reached: no route to bad;");
}

class LaunchWithOwnDisks : public Launch {
 protected:
  /// Hosts that do not see this one's disk. The first mpirun is killed; later ones end well. `reachable`: which hosts
  /// answer from then on. What a host holds lies in HOST.toml and HOST.names; a host without is asked in vain.
  Outcome launch_on(const std::string& hosts, const std::string& reachable, int ranks = 2,
                    const std::vector<std::string>& more = {}) {
    fs::create_directories(path("bin"));
    write_all(path("bin/mpirun"),
              "#!/bin/bash\necho \"$@\" >> calls\n[[ $(wc -l < calls) == 1 ]] && kill -9 $$\nexit 0\n");
    write_all(path("bin/agent"),
              "#!/bin/bash\n[[ $2 == \"'test'\" || $2 == test ]] && exit 1\n[[ -f calls ]] || exit 0\n"
              "[[ ' " +
                  reachable +
                  " ' == *\" $1 \"* ]] || { echo 'no route' >&2; exit 255; }\n"
                  "[[ $* == *weft-recipe* ]] || exit 0\n[[ -f $1.silent ]] && exit 0\n"
                  "echo '*** Welcome to the cluster ***' >&2\necho weft-recipe; cat $1.toml 2>/dev/null\n"
                  "echo weft-names; cat $1.names 2>/dev/null; echo weft-end\n");
    for (const char* program : {"bin/mpirun", "bin/agent"}) fs::permissions(path(program), fs::perms::owner_all);
    std::vector<std::string> words = {"launch",  "-n",      std::to_string(ranks),
                                      "--hosts", hosts,     "--restarts",
                                      "1",       "--",      "train",
                                      "--model", "mlp",     "--data",
                                      data(),    "--batch", "32",
                                      "--run",   "runs/r"};
    words.insert(words.end(), more.begin(), more.end());
    return Process(words, directory_, -1,
                   {"PATH=" + path("bin").string() + ":/usr/bin:/bin",
                    "OMPI_MCA_plm_rsh_agent=" + path("bin/agent").string()})
        .wait();
  }
  void holds(const std::string& host, int step, const std::string& more = "") const {
    write_all(path(host + ".toml"), "data = \"x\"\nbatch = 32\n" + more + "[model]\nname = \"mlp\"\n");
    write_all(path(host + ".names"), "best\nstep-00000007\nstep-" + std::string(8 - std::to_string(step).size(), '0') +
                                         std::to_string(step) + "\n");
  }
  /// Words of the start after the loss; empty where there was none.
  std::string second_call() const {
    const std::string calls = read_all(path("calls"));
    return calls.substr(calls.find('\n') + 1);
  }
};

TEST_F(LaunchWithOwnDisks, EachKeepsACopyAndNothingOfTheQuestionIsLeft) {
  const Outcome outcome = launch_on("a,b", "");
  EXPECT_NE(
      outcome.err.find("hosts 'a', 'b' do not see the folder of 'runs/r' on this host: each host with ranks keeps a "
                       "full copy"),
      std::string::npos)
      << outcome.err;
  EXPECT_NE(read_all(path("calls")).find("--copies"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(path("runs")));
}

TEST_F(LaunchWithOwnDisks, ARestartGoesOnWithTheHostThatHasTheNewestCheckpointFirst) {
  holds("a", 100);
  holds("b", 150);
  const Outcome outcome = launch_on("a,b,c", "a b c");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the run goes on from step 150, as it stands on host 'b'"), std::string::npos)
      << outcome.err;
  EXPECT_NE(second_call().find("b:1,a:1"), std::string::npos) << second_call();
  EXPECT_NE(second_call().find("train --resume runs/r --copies"), std::string::npos) << second_call();
}

TEST_F(LaunchWithOwnDisks, AHostWithAnotherRunUnderThePathIsLeftOut) {
  holds("a", 100);
  holds("c", 9999, "seed = 3\n");
  const Outcome outcome = launch_on("a:1,b:1,c:2", "a c");
  EXPECT_NE(outcome.err.find("host 'c' holds another run under the same path and is left out"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(second_call().find("c:"), std::string::npos) << second_call();
  EXPECT_NE(second_call().find("a:1"), std::string::npos) << second_call();
}

TEST_F(LaunchWithOwnDisks, HostsThatHadRanksAndHoldDifferentRunsAreRefused) {
  holds("a", 100);
  holds("b", 100, "seed = 3\n");
  const Outcome outcome = launch_on("a,b", "a b");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("hold different runs under 'runs/r'"), std::string::npos) << outcome.err;
  EXPECT_EQ(second_call(), "");
}

TEST_F(LaunchWithOwnDisks, WhatAHostWithoutRanksHasIsNotTakenForTheNewest) {
  holds("c", 50);
  const Outcome outcome = launch_on("a,b,c", "c");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("no host that is left had ranks of 'runs/r'"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("nothing is begun anew"), std::string::npos) << outcome.err;
  EXPECT_EQ(second_call(), "");
}

TEST_F(LaunchWithOwnDisks, WithVirtualRanksTheHostThatHasTheRunHasRanks) {
  holds("a", 100, "virtual_ranks = 4\n");
  const Outcome outcome = launch_on("a:2,b:2,c:4", "a c", 4, {"--virtual-ranks", "4"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(second_call().find("a:"), std::string::npos) << second_call();
}

TEST_F(LaunchWithOwnDisks, AHostThatDoesNotSayWhatItHasIsNoWitness) {
  holds("a", 100);
  for (const char* host : {"a.silent", "b.silent"}) write_all(path(host), "");
  const Outcome outcome = launch_on("a,b", "a b");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("nothing is begun anew"), std::string::npos) << outcome.err;
  EXPECT_EQ(second_call(), "");
}

TEST_F(LaunchWithOwnDisks, WhatHadNotComeToWriteAnythingBeginsAgain) {
  const Outcome outcome = launch_on("a,b", "a b");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(second_call().find("--resume"), std::string::npos) << second_call();
  EXPECT_NE(second_call(), "");
}

TEST_F(Launch, ARankLostBeforeTheRunHasItsSpecLeavesAsManyAsDivideTheBatch) {
  fs::create_directories(path("bin"));
  write_all(path("bin/mpirun"),
            "#!/bin/bash\necho \"$@\" >> calls\n[[ $(wc -l < calls) == 1 ]] && kill -9 $$\nexit 0\n");
  fs::permissions(path("bin/mpirun"), fs::perms::owner_all);
  const Outcome outcome =
      Process({"launch", "-n", "4", "--hosts", "a:2,b:2", "--restarts", "1", "--", "train", "--model", "mlp", "--data",
               data(), "--batch", "32", "--run", "r"},
              directory_, -1, {"PATH=" + path("bin").string() + ":/usr/bin:/bin", "OMPI_MCA_plm_rsh_agent=/bin/true"})
          .wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("start 2 of at most 2, on "), std::string::npos) << outcome.err;
}

TEST_F(Launch, WhereMpirunCannotStartARankNothingIsTriedAgainWithFewer) {
  fs::create_directories(path("bin"));
  write_all(
      path("bin/mpirun"),
      "#!/bin/bash\necho called >> calls\ndashes=$(printf -- '-%.0s' {1..74})\n"
      "printf '%s\\n' $dashes 'mpirun was unable to launch the specified application as it encountered an error:' "
      "'' 'Error: system limit exceeded on number of processes that can be started' 'Node: vm' '' "
      "'when attempting to start process rank 10.' $dashes >&2\nexit 137\n");
  fs::permissions(path("bin/mpirun"), fs::perms::owner_all);
  const Outcome outcome = Process({"launch", "-n", "64", "--restarts", "3", "--", "train", "demo", "--run", "r"},
                                  directory_, -1, {"PATH=" + path("bin").string() + ":/usr/bin:/bin"})
                              .wait();
  expect_error(outcome, 1,
               "rank 10 on host 'vm' could not be started: system limit exceeded on number of processes that can be "
               "started; start fewer ranks there");
  EXPECT_EQ(read_all(path("calls")), "called\n");
}

/// What an mpirun that starts nothing gets, where weft launch is told to stop.
class StoppedLaunch : public Launch {
 protected:
  std::string signal_to_mpirun(const std::string& hosts) {
    fs::create_directories(path("bin"));
    fs::remove(path("told"));
    write_all(path("bin/mpirun"),
              "#!/bin/bash\ntrap 'echo USR1 > told; exit' USR1\ntrap 'echo TERM > told; exit' TERM\n"
              "touch started\nwhile :; do sleep 0.02; done\n");
    fs::permissions(path("bin/mpirun"), fs::perms::owner_all);
    Process launch({"launch", "-n", "2", "--hosts", hosts, "--", "train", "demo"}, directory_, -1,
                   {"PATH=" + path("bin").string() + ":/usr/bin:/bin", "OMPI_MCA_plm_rsh_agent=/bin/true"});
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!fs::exists(path("started")) && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    launch.send(SIGTERM);
    EXPECT_EQ(launch.wait().code, 130);
    fs::remove(path("started"));
    return read_all(path("told"));
  }
};

TEST_F(StoppedLaunch, RanksOfOtherHostsAreAskedThroughMpirun) {
  EXPECT_EQ(signal_to_mpirun("a.elsewhere:1,b.elsewhere:1"), "USR1\n");
}

TEST_F(StoppedLaunch, MpirunIsEndedWhereItHasNotStartedTheRanksOfThisHost) {
  EXPECT_EQ(signal_to_mpirun("localhost:1,b.elsewhere:1"), "TERM\n");
}

}  // namespace
}  // namespace weft::cli_tests
