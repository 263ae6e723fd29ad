// What weft launch knows of hosts, of what mpirun and ranks say, and of Slurm, without any of them.
#include <gmock/gmock.h>

#include "tests/cli/run_files.h"
#include "weft/base/error.h"
#include "weft/base/host_name.h"
#include "weft/launch/launch_hosts.h"
#include "weft/launch/launch_reports.h"
#include "weft/launch/slurm_job.h"

namespace weft::cli_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(LaunchHosts, AreReadAndPlaced) {
  const std::vector<launch::HostSlots> hosts = launch::parse_hosts("a:2,b,c:3,b");
  EXPECT_THAT(hosts, ElementsAre(launch::HostSlots{"a", 2}, launch::HostSlots{"b", 2}, launch::HostSlots{"c", 3}));
  EXPECT_EQ(launch::count_slots(hosts), 7);
  EXPECT_EQ(launch::print_hosts(launch::place_ranks(hosts, 3)), "a:2,b:1");
  EXPECT_EQ(launch::print_hosts(launch::place_ranks(hosts, 9)), "a:3,b:3,c:3");
  EXPECT_EQ(launch::host_of_rank(hosts, 1), "a");
  EXPECT_EQ(launch::host_of_rank(hosts, 4), "c");
  EXPECT_EQ(launch::host_of_rank(hosts, 7), "");
  EXPECT_EQ(launch::print_hosts(launch::without_slot(launch::parse_hosts("a:2,b"), "b")), "a:2");
  EXPECT_EQ(launch::print_hosts(launch::without_slot(launch::parse_hosts("a:2,b"), "a")), "a:1,b:1");
}

TEST(LaunchHosts, WhatIsNoneIsNamed) {
  for (const char* text : {"a:0", "a:2,:3", "a:b", "a:-1", "a b"}) {
    try {
      launch::parse_hosts(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is no host with a number of ranks; write node1:2,node2:2"));
    }
  }
}

TEST(LaunchHosts, ThisHostIsKnown) {
  EXPECT_TRUE(launch::has_ranks_here({}));
  EXPECT_TRUE(launch::has_ranks_here(launch::parse_hosts("a.elsewhere:2,localhost:2")));
  EXPECT_TRUE(launch::has_ranks_here({{host_name(), 1}}));
  EXPECT_FALSE(launch::has_ranks_here(launch::parse_hosts("a.elsewhere:2,b.elsewhere:2")));
}

TEST(LaunchHosts, SlurmCounts) {
  EXPECT_THAT(launch::parse_slurm_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(launch::parse_slurm_counts("4"), ElementsAre(4));
  EXPECT_THROW(launch::parse_slurm_counts("2(x"), Error);
  EXPECT_THROW(launch::parse_slurm_counts("two"), Error);
}

std::string placed(const std::string& hosts, int most, const launch::RankNeeds& needs) {
  const launch::PlacedRanks ranks = launch::usable_ranks(launch::parse_hosts(hosts), most, needs);
  EXPECT_EQ(launch::count_slots(ranks.hosts), ranks.count);
  return launch::print_hosts(ranks.hosts);
}

TEST(UsableRanks, VirtualRanksFindAsManyOnEachHost) {
  const launch::RankNeeds eight{.divided = {64, 8}, .as_many_on_each = true};
  EXPECT_EQ(placed("a:4,b:4", 8, eight), "a:4,b:4");
  EXPECT_EQ(placed("a:3,b:4", 7, eight), "b:4");  // a host is left out
  EXPECT_EQ(placed("a:3,b:3", 6, eight), "a:2,b:2");
  EXPECT_EQ(placed("a:3,b:4,c:4", 8, eight), "b:4,c:4");
  EXPECT_EQ(placed("a:2,b:3,c:2,d:3", 10, eight), "a:2,b:2,c:2,d:2");
  EXPECT_EQ(placed("a:1,b:3,c:2", 6, eight), "b:2,c:2");
  EXPECT_EQ(placed("a:1,b:1,c:1", 3, eight), "a:1,b:1");
  EXPECT_EQ(placed("a:8,b:8", 16, eight), "a:8");  // no more than there are virtual ranks
  EXPECT_EQ(placed("a:1", 1, eight), "a:1");
}

TEST(UsableRanks, BatchesAreDivided) {
  EXPECT_EQ(placed("a:3,b:4", 7, {.divided = {4, 8}, .as_many_on_each = true}), "b:4");
  EXPECT_EQ(placed("a:3,b:4", 7, {.divided = {4, 2}, .as_many_on_each = true}), "a:2");
  EXPECT_EQ(placed("a:3,b:4", 7, {.divided = {64, 96}}), "a:3,b:1");
  EXPECT_EQ(placed("a:3,b:4", 6, {.divided = {96}}), "a:3,b:3");
}

TEST(UsableRanks, WithoutVirtualRanksHostsAreFilled) {
  EXPECT_EQ(placed("a:3,b:4", 7, {}), "a:3,b:4");
  EXPECT_EQ(placed("a:3,b:4", 4, {}), "a:3,b:1");
}

TEST(UsableRanks, ThisHostTakesAnyNumber) {
  EXPECT_EQ(launch::usable_ranks({}, 7, {.divided = {8}, .as_many_on_each = true}).count, 4);
  EXPECT_EQ(launch::usable_ranks({}, 7, {.divided = {96}}).count, 6);
  EXPECT_THAT(launch::usable_ranks({}, 7, {}).hosts, ElementsAre());
}

TEST(UsableRanks, ACopyOfTheModelKeepsItsRanks) {
  const launch::RankNeeds shared{.divided = {48}, .tensor = 2};
  EXPECT_EQ(launch::usable_ranks({}, 4, shared).count, 4);
  const launch::PlacedRanks three = launch::usable_ranks({}, 3, shared);
  EXPECT_EQ(three.count, 2);
  EXPECT_EQ(three.tensor, 2);
  const launch::RankNeeds stages{.divided = {48, 12}, .tensor = 2, .pipeline = 2};
  EXPECT_EQ(launch::usable_ranks({}, 15, stages).count, 12);
  EXPECT_EQ(launch::usable_ranks({}, 23, {.divided = {4}, .pipeline = 4}).count, 16);  // of 5 copies 4 divide the batch
}

TEST(UsableRanks, WhereTooFewAreLeftForOneCopyItTakesFewerRanks) {
  const auto mesh = [](int most, const launch::RankNeeds& needs) {
    const launch::PlacedRanks placed = launch::usable_ranks({}, most, needs);
    return std::vector<int>{placed.count, placed.tensor, placed.pipeline};
  };
  EXPECT_THAT(mesh(1, {.divided = {48}, .tensor = 2}), ElementsAre(1, 1, 1));
  EXPECT_THAT(mesh(3, {.divided = {48}, .tensor = 4}), ElementsAre(2, 2, 1));  // as little more memory as can be
  EXPECT_THAT(mesh(3, {.divided = {8}, .pipeline = 4}), ElementsAre(2, 1, 2));
  EXPECT_THAT(mesh(3, {.divided = {8}, .tensor = 2, .pipeline = 2}), ElementsAre(2, 2, 1));
}

TEST(UsableRanks, NoneWhereThereIsNoRoom) {
  EXPECT_EQ(launch::usable_ranks({}, 0, {}).count, 0);
  EXPECT_EQ(launch::usable_ranks({}, -1, {.divided = {8}, .as_many_on_each = true}).count, 0);
}

TEST(LaunchReports, WhoWasLostIsReadFromWhatRanksSay) {
  const std::string line =
      "weft: rank 0 on host 'a': [all_reduce] 'collective 3 (fc.weight)' at step 12 of epoch 3: rank 2 on host 'b' has "
      "given no sign of life for 5.1 s: it died, was stopped, or its network is cut; look there";
  const auto lost = launch::silent_rank_in(line);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rank, 2);
  EXPECT_EQ(lost->host, "b");
  EXPECT_FALSE(launch::silent_rank_in("weft: rank 0 on host 'a': cannot open 'x'"));
}

TEST(LaunchReports, WhoWasLostIsReadFromWhatMpirunSays) {
  const auto killed = launch::lost_rank_in(
      {"---", "mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).", "---"});
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 2);
  EXPECT_EQ(killed->host, "vm");
  EXPECT_EQ(killed->reason, "was ended by signal 9 (Killed)");
  const auto cut =
      launch::lost_rank_in({"ORTE has lost communication with a remote daemon.", "",
                            "  HNP daemon   : [[57,0],0] on node a", "  Remote daemon: [[57,0],2] on node c", ""});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->rank, -1);
  EXPECT_EQ(cut->host, "c");
}

TEST(LaunchReports, AHostThatIsCutOffNamesItself) {
  launch::LaunchReports reports([](std::string_view) {});
  reports.add(
      "weft: rank 0 on host 'a': [all_reduce] 'x': no other host has given a sign of life for 5.0 s: host 'a' is "
      "cut off from all others; see its network\n");
  ASSERT_TRUE(reports.lost());
  EXPECT_EQ(reports.lost()->rank, -1);
  EXPECT_EQ(reports.lost()->host, "a");
}

TEST(LaunchReports, MpirunIsHeardWhereItSaysWhatNobodyElseDoes) {
  const std::string dashes(74, '-');
  std::string passed;
  launch::LaunchReports reports([&](std::string_view line) { passed += std::string(line) + "\n"; });
  reports.add("epoch 1/2: tra");
  reports.add("in loss 0.5\n" + dashes + "\nPrimary job  terminated normally, but 1 process returned\n" + dashes +
              "\n");
  reports.add(dashes + "\nThere are not enough slots available\n" + dashes + "\n");
  reports.add("[vm:123] 2 more processes have sent help message help-mpi-api.txt / mpi-abort\n");
  for (const char* rank : {"1", "3", "3"})
    reports.add(std::string("weft: x: rank ") + rank + " on host 'h' has given no sign of life for 5.1 s\n");
  reports.add("the end");
  reports.finish();
  const std::vector<std::string> lines = lines_of(passed);
  ASSERT_EQ(lines.size(), 8u) << passed;
  EXPECT_EQ(lines[0], "epoch 1/2: train loss 0.5");
  EXPECT_EQ(lines[2], "There are not enough slots available");
  EXPECT_EQ(lines[7], "the end");
  ASSERT_TRUE(reports.lost());
  EXPECT_EQ(reports.lost()->rank, 3);  // whom most have missed
}

TEST(LaunchReports, WhoWasLostIsFoundBehindAnUnfinishedLineAndBeforeAFloodOfThem) {
  const std::string dashes(74, '-');
  std::string passed;
  launch::LaunchReports reports([&](std::string_view line) { passed += std::string(line) + "\n"; });
  for (int i = 0; i < 1000; ++i) reports.add("[c][[48303,1],2] invalid connection state (2)\n");
  reports.add("[c][[48303,1],2][" + dashes +
              "\nmpirun noticed that process rank 3 with PID 31726 on node d exited on signal 9 (Killed).\n" + dashes +
              "\n");
  reports.add("the end\n");
  reports.finish();
  ASSERT_TRUE(reports.lost());
  EXPECT_EQ(reports.lost()->rank, 3);
  EXPECT_EQ(reports.lost()->host, "d");
  const std::vector<std::string> lines = lines_of(passed);
  ASSERT_EQ(lines.size(), 6u) << passed;
  EXPECT_EQ(lines[3], "(the last line 997 times more)");
  EXPECT_EQ(lines[4], "[c][[48303,1],2][");
  EXPECT_EQ(lines[5], "the end");
}

launch::SlurmTraining training() {
  return {.ranks = 4,
          .restarts = 2,
          .run = "runs/my run",
          .words = {"train", "demo", "--run", "runs/my run"},
          .resuming_words = {"train", "--resume", "runs/my run"}};
}

TEST(SlurmScript, SaysWhatItWasAskedFor) {
  launch::SlurmOptions options;
  options.nodes = 2;
  options.cpus_per_rank = 16;
  options.time = "12:00:00";
  options.partition = "cpu";
  options.lines = {"--account=me"};
  options.setup = {"module load openmpi"};
  const std::string script = launch::slurm_script(training(), options, "/opt/weft");
  for (const char* line :
       {"#SBATCH --ntasks=4\n", "#SBATCH --nodes=2\n", "#SBATCH --cpus-per-task=16\n", "#SBATCH --time=12:00:00\n",
        "#SBATCH --partition=cpu\n", "#SBATCH --account=me\n", "#SBATCH --requeue\n", "#SBATCH --no-kill\n",
        "#SBATCH --signal=B:USR1@60\n", "#SBATCH --output='runs/my run.slurm-%j.log'\n", "\nmodule load openmpi\n",
        "/opt/weft launch -n 4 --restarts 2 -- train demo --run 'runs/my run' &\n",
        "/opt/weft launch -n 4 --restarts 2 -- train --resume 'runs/my run' &\n"})
    EXPECT_THAT(script, HasSubstr(line));
  const std::vector<std::string> lines = lines_of(script);
  const auto first_command = std::find(lines.begin(), lines.end(), "module load openmpi");
  EXPECT_TRUE(
      std::none_of(first_command, lines.end(), [](const std::string& line) { return line.starts_with("#SBATCH"); }));
}

TEST(SlurmScript, WithoutRestartsAndLimit) {
  launch::SlurmTraining once = training();
  once.restarts = 0;
  const std::string script = launch::slurm_script(once, {}, "weft");
  EXPECT_THAT(script, HasSubstr("#SBATCH --no-requeue\n"));
  EXPECT_THAT(script, Not(HasSubstr("--signal")));
  EXPECT_THAT(script, HasSubstr("weft launch -n 4 -- train demo"));
}

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
