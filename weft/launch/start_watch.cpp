#include "weft/launch/start_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "weft/base/error.h"
#include "weft/base/host_name.h"
#include "weft/base/say.h"
#include "weft/launch/job_ranks.h"
#include "weft/launch/process_table.h"
#include "weft/launch/start_judge.h"

namespace weft::launch {

namespace {

constexpr std::chrono::seconds kLimit{120};  // thousands of ranks take a minute
constexpr std::chrono::milliseconds kTurn{500};
// Of a turn each, so that a pause of the whole machine accuses nobody.
constexpr StartPatience kPatience{.gone = 12, .missing = 20};
// So many ranks of each host have a watcher: some may themselves be stopped. The next one speaks later, as by then the
// job should be over.
constexpr int kWatchers = 8;
constexpr std::chrono::seconds kStagger{2};

/// As waits for ranks say it later (comm/patience.h), which weft launch reads.
std::string describe(const AbsentRank& absent) {
  const auto seconds = std::chrono::duration<double>(kTurn * absent.looks).count();
  const std::string who = absent.rank < 0 ? fmt::format("one of the ranks on host '{}'", host_name())
                                          : fmt::format("rank {} on host '{}'", absent.rank, host_name());
  return fmt::format("the ranks have not found each other: {} has given no sign of life for {:.0f} s: {}", who, seconds,
                     absent.stopped > 0 ? fmt::format("its process {} is stopped, and is ended now", absent.stopped)
                                        : "its process has ended; see what that one said");
}

/// Launchers do not always say whose death has ended a job; who is killed cannot.
[[noreturn]] void tell_end_of(pid_t rank) {
  say(
      fmt::format("the ranks have not found each other: rank {} on host '{}' has given no sign of life: its process {} "
                  "has ended; see what it said, or who killed it",
                  told_rank(), host_name(), rank));
  _exit(0);
}

/// The end of a rank, which the system tells by a signal.
class EndOfRank {
 public:
  explicit EndOfRank(pid_t rank) : rank_(rank) {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &signal_, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGRTMIN);
  }
  /// Sleeps, and does not return once the rank has ended.
  void sleep(std::chrono::milliseconds time) const {
    const auto until = std::chrono::steady_clock::now() + time;
    for (auto now = until - time; now < until; now = std::chrono::steady_clock::now()) {
      if (getppid() != rank_) tell_end_of(rank_);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
      const timespec rest{.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1'000'000};
      sigtimedwait(&signal_, nullptr, &rest);
    }
  }

 private:
  const pid_t rank_;
  sigset_t signal_;
};

[[noreturn]] void watch(pid_t rank, int local_rank, int found) {
  const EndOfRank end(rank);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_NAME, "weft start");
  set_shown_command("weft: watches the ranks start");
  end.sleep(kTurn + local_rank * kStagger);
  JobRanks job(rank);
  StartJudge judge(told_ranks_on_host(), told_ranks(), kPatience);
  for (;; end.sleep(kTurn)) {
    const std::optional<AbsentRank> absent = judge.judge(job.look());
    if (!absent) continue;
    say(describe(*absent));
    if (absent->stopped > 0) {
      for (const RunningProcess& one : running_processes())  // its watcher, which would tell its end
        if (one.parent == absent->stopped && one.process != getpid()) kill(one.process, SIGKILL);
      kill(absent->stopped, SIGKILL);
      std::this_thread::sleep_for(std::chrono::seconds(1));  // in which the launcher sees who was lost
    }
    const char word = '!';
    [[maybe_unused]] const ssize_t written = write(found, &word, 1);
    _exit(0);
  }
}

}  // namespace

StartWatch::StartWatch(int exit_code) {
  std::array<int, 2> ends = {-1, -1};
  const int local_rank = told_local_rank();
  if (told_ranks() != 1 && local_rank < kWatchers && pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0) {
    const pid_t rank = getpid();
    watcher_ = fork();
    if (watcher_ == 0) watch(rank, local_rank, ends[1]);
    close(ends[1]);
    found_ = ends[0];
  }
  thread_ = std::jthread([this, exit_code](const std::stop_token& stopped) {
    std::mutex mutex;
    std::condition_variable_any bell;
    std::unique_lock lock(mutex);
    for (const auto end = std::chrono::steady_clock::now() + kLimit; std::chrono::steady_clock::now() < end;) {
      if (bell.wait_for(lock, stopped, kTurn, [&] { return stopped.stop_requested(); })) return;
      if (char word = 0; found_ >= 0 && read(found_, &word, 1) == 1) _exit(exit_code);
    }
    std::fflush(stdout);
    if (watcher_ > 0) kill(watcher_, SIGKILL);  // all is said
    say(
        fmt::format("the ranks have not found each other within {} s: one is gone, or a host cannot be reached by MPI; "
                    "see `mpirun -n 2 --host ... hostname`",
                    kLimit.count()));
    _exit(exit_code);
  });
}

StartWatch::~StartWatch() {
  if (watcher_ > 0) {
    kill(watcher_, SIGKILL);  // though it were stopped
    waitpid(watcher_, nullptr, 0);
  }
  thread_.request_stop();
  thread_.join();
  if (found_ >= 0) close(found_);
}

}  // namespace weft::launch
