// Who keeps ranks from starting: what is judged of looks at them, and what /proc shows, without MPI.
#include <gmock/gmock.h>

#include "tests/cli/program.h"
#include "weft/launch/job_ranks.h"
#include "weft/launch/process_table.h"
#include "weft/launch/start_judge.h"

namespace weft::cli_tests {
namespace {

using launch::AbsentRank;
using launch::JobRank;
using ::testing::ElementsAre;

const JobRank kFirst{.rank = 0, .process = 100}, kSecond{.rank = 1, .process = 101};
const JobRank kStopped{.rank = 1, .process = 101, .is_stopped = true};

TEST(StartJudge, WhoIsStoppedForLongIsBlamed) {
  launch::StartJudge judge(2, 2, {.gone = 3, .missing = 9});
  EXPECT_FALSE(judge.judge({kFirst, kStopped}));
  EXPECT_FALSE(judge.judge({kFirst, kStopped}));
  EXPECT_FALSE(judge.judge({kFirst, kSecond}));  // it went on: counted anew
  EXPECT_FALSE(judge.judge({kFirst, kStopped}));
  EXPECT_FALSE(judge.judge({kFirst, kStopped}));
  EXPECT_EQ(judge.judge({kFirst, kStopped}), (AbsentRank{.rank = 1, .stopped = 101, .looks = 3}));
}

TEST(StartJudge, WhoHasEndedIsBlamed) {
  launch::StartJudge judge(0, 0, {.gone = 2, .missing = 9});
  EXPECT_FALSE(judge.judge({kFirst, kSecond}));
  EXPECT_FALSE(judge.judge({kFirst}));
  EXPECT_EQ(judge.judge({kFirst}), (AbsentRank{.rank = 1, .stopped = -1, .looks = 2}));
}

TEST(StartJudge, NobodyIsBlamedForBeingSlow) {
  launch::StartJudge judge(2, 4, {.gone = 3, .missing = 3});
  for (int look = 0; look < 100; ++look) EXPECT_FALSE(judge.judge({kFirst, kSecond})) << look;
}

TEST(StartJudge, WhoseTurnNeverCameIsMissedOnceNobodyNewComes) {
  std::vector<JobRank> ranks;
  launch::StartJudge all_here(8, 8, {.gone = 9, .missing = 3}), some_elsewhere(8, 16, {.gone = 9, .missing = 3});
  for (const int rank : {0, 1, 2, 4, 5, 6, 7}) {
    ranks.push_back({.rank = rank, .process = 100 + rank});
    for (int look = 0; look < 3; ++look) {
      EXPECT_FALSE(all_here.judge(ranks)) << rank;
      EXPECT_FALSE(some_elsewhere.judge(ranks)) << rank;
    }
  }
  EXPECT_EQ(all_here.judge(ranks), (AbsentRank{.rank = 3, .stopped = -1, .looks = 3}));
  EXPECT_EQ(some_elsewhere.judge(ranks), (AbsentRank{.rank = -1, .stopped = -1, .looks = 3}));
}

/// Stands for mpirun: a shell whose children have the variables of ranks. Ends them with itself.
class Launcher {
 public:
  explicit Launcher(const std::string& script) {
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);
      execlp("bash", "bash", "-c", script.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Launcher() {
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  /// Of its children that has the variable.
  pid_t child_with(const std::string& name, const std::string& value) const {
    for (int tries = 0; tries < 500; ++tries) {
      for (const launch::RunningProcess& one : launch::running_processes())
        if (one.parent == process_ && launch::variable_of(one.process, name) == value) return one.process;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
  }

 private:
  pid_t process_;
};

TEST(JobRanks, AreSeenWithTheirStateAndThroughScripts) {
  const std::string rank = "PMIX_NAMESPACE=job PMIX_RANK=";
  // Rank 1 is a script that has started the program; beside them runs a rank of another job.
  Launcher launcher(rank + "0 sleep 100 & " + rank + "1 bash -c 'sleep 100; true' & " + rank + "2 sleep 100 & " +
                    "PMIX_NAMESPACE=other PMIX_RANK=3 sleep 100 & wait");
  const pid_t first = launcher.child_with("PMIX_RANK", "0"), script = launcher.child_with("PMIX_RANK", "1"),
              third = launcher.child_with("PMIX_RANK", "2");
  ASSERT_GT(launcher.child_with("PMIX_RANK", "3"), 0);
  kill(third, SIGSTOP);
  pid_t inner = -1;
  for (int tries = 0; tries < 500 && inner < 0; ++tries) {
    for (const launch::RunningProcess& one : launch::running_processes())
      if (one.parent == script && launch::program_of(one.process) == launch::program_of(first)) inner = one.process;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const pid_t member : {first, inner}) {
    launch::JobRanks job(member);
    EXPECT_THAT(job.look(), ElementsAre(JobRank{.rank = 0, .process = first}, JobRank{.rank = 1, .process = inner},
                                        JobRank{.rank = 2, .process = third, .is_stopped = true}));
  }
}

}  // namespace
}  // namespace weft::cli_tests
