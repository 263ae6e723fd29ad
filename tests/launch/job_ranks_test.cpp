// The ranks of a job as /proc shows them, without MPI.
#include "weft/launch/job_ranks.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "weft/launch/process_table.h"

namespace weft::launch {
namespace {

using ::testing::ElementsAre;

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
      for (const RunningProcess& one : running_processes())
        if (one.parent == process_ && variable_of(one.process, name) == value) return one.process;
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
    for (const RunningProcess& one : running_processes())
      if (one.parent == script && program_of(one.process) == program_of(first)) inner = one.process;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const pid_t member : {first, inner}) {
    JobRanks job(member);
    EXPECT_THAT(job.look(), ElementsAre(JobRank{.rank = 0, .process = first}, JobRank{.rank = 1, .process = inner},
                                        JobRank{.rank = 2, .process = third, .is_stopped = true}));
  }
}

}  // namespace
}  // namespace weft::launch
