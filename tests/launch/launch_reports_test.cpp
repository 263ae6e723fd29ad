// What is read of the words of mpirun and of ranks, and what of them is passed on.
#include "weft/launch/launch_reports.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace weft::launch {
namespace {

using ::testing::ElementsAre;

TEST(LaunchReports, WhoWasLostIsReadFromWhatRanksSay) {
  const std::string line =
      "weft: rank 0 on host 'a': [all_reduce] 'collective 3 (fc.weight)' at step 12 of epoch 3: rank 2 on host 'b' has "
      "given no sign of life for 5.1 s: it died, was stopped, or its network is cut; look there";
  const auto lost = silent_rank_in(line);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rank, 2);
  EXPECT_EQ(lost->host, "b");
  EXPECT_FALSE(silent_rank_in("weft: rank 0 on host 'a': cannot open 'x'"));
}

TEST(LaunchReports, WhoWasLostIsReadFromWhatMpirunSays) {
  const auto killed = lost_rank_in(
      {"---", "mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).", "---"});
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 2);
  EXPECT_EQ(killed->host, "vm");
  EXPECT_EQ(killed->reason, "was ended by signal 9 (Killed)");
  const auto cut = lost_rank_in({"ORTE has lost communication with a remote daemon.", "",
                                 "  HNP daemon   : [[57,0],0] on node a", "  Remote daemon: [[57,0],2] on node c", ""});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->rank, -1);
  EXPECT_EQ(cut->host, "c");
}

TEST(LaunchReports, WhoCouldNotBeStartedIsReadFromWhatMpirunSays) {
  const std::string dashes(74, '-');
  std::vector<std::string> lines;
  LaunchReports reports([&](std::string_view line) { lines.emplace_back(line); });
  reports.add(
      dashes +
      "\nmpirun was unable to launch the specified application as it encountered an error:\n\nError: system limit "
      "exceeded on number of processes that can be started\nNode: vm\n\nwhen attempting to start process rank "
      "10.\n\nThis can be resolved by either asking\n" +
      dashes + "\n");
  reports.finish();
  EXPECT_EQ(
      reports.unstarted(),
      "rank 10 on host 'vm' could not be started: system limit exceeded on number of processes that can be started");
  EXPECT_FALSE(reports.lost());
  EXPECT_TRUE(lines.empty()) << testing::PrintToString(lines);
}

TEST(LaunchReports, WhereMpirunOnlyLogsThatARankCouldNotBeStartedThatIsRead) {
  LaunchReports reports([](std::string_view) {});
  reports.add(
      "[vm:03528] [[24886,0],0] ORTE_ERROR_LOG: The system limit on number of children a process can have was reached "
      "in "
      "file odls_default_module.c at line 657\n");
  EXPECT_EQ(reports.unstarted(),
            "a rank on host 'vm' could not be started: the system limit on number of children a process can have was "
            "reached");
}

TEST(LaunchReports, AHostThatIsCutOffNamesItself) {
  LaunchReports reports([](std::string_view) {});
  reports.add(
      "weft: rank 0 on host 'a': [all_reduce] 'x': no other host has given a sign of life for 5.0 s: host 'a' is "
      "cut off from all others; see its network\n");
  ASSERT_TRUE(reports.lost());
  EXPECT_EQ(reports.lost()->rank, -1);
  EXPECT_EQ(reports.lost()->host, "a");
}

TEST(LaunchReports, MpirunIsHeardWhereItSaysWhatNobodyElseDoes) {
  const std::string dashes(74, '-');
  std::vector<std::string> lines;
  LaunchReports reports([&](std::string_view line) { lines.emplace_back(line); });
  reports.add("epoch 1/2: tra");
  reports.add("in loss 0.5\n" + dashes + "\nPrimary job  terminated normally, but 1 process returned\n" + dashes +
              "\n");
  reports.add(dashes + "\nThere are not enough slots available\n" + dashes + "\n");
  reports.add("[vm:123] 2 more processes have sent help message help-mpi-api.txt / mpi-abort\n");
  for (const char* rank : {"1", "3", "3"})
    reports.add(std::string("weft: x: rank ") + rank + " on host 'h' has given no sign of life for 5.1 s\n");
  reports.add("the end");
  reports.finish();
  ASSERT_EQ(lines.size(), 8u) << testing::PrintToString(lines);
  EXPECT_EQ(lines[0], "epoch 1/2: train loss 0.5");
  EXPECT_EQ(lines[2], "There are not enough slots available");
  EXPECT_EQ(lines[7], "the end");
  ASSERT_TRUE(reports.lost());
  EXPECT_EQ(reports.lost()->rank, 3);  // whom most have missed
}

TEST(LaunchReports, WhoWasLostIsFoundBehindAnUnfinishedLineAndBeforeAFloodOfThem) {
  const std::string dashes(74, '-');
  std::vector<std::string> lines;
  LaunchReports reports([&](std::string_view line) { lines.emplace_back(line); });
  for (int i = 0; i < 1000; ++i) reports.add("[c][[48303,1],2] invalid connection state (2)\n");
  reports.add("[c][[48303,1],2][" + dashes +
              "\nmpirun noticed that process rank 3 with PID 31726 on node d exited on signal 9 (Killed).\n" + dashes +
              "\n");
  reports.add("the end\n");
  reports.finish();
  ASSERT_TRUE(reports.lost());
  EXPECT_EQ(reports.lost()->rank, 3);
  EXPECT_EQ(reports.lost()->host, "d");
  ASSERT_EQ(lines.size(), 6u) << testing::PrintToString(lines);
  EXPECT_EQ(lines[3], "(the last line 997 times more)");
  EXPECT_EQ(lines[4], "[c][[48303,1],2][");
  EXPECT_EQ(lines[5], "the end");
}

}  // namespace
}  // namespace weft::launch
