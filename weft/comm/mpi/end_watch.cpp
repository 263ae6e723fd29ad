#include "weft/comm/mpi/end_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <string_view>

namespace weft::comm {

namespace {

constexpr timespec kTurn{.tv_sec = 0, .tv_nsec = 500'000'000};
constexpr int kPatience = 6;  // turns; less than the five seconds that weft launch grants after the end of all others

/// As proc(5) has it: "pid (name) state ...", where a name may hold anything; '?' where it cannot be read.
char state_in(const char* stat_file) {
  std::array<char, 512> text{};
  const int file = open(stat_file, O_RDONLY | O_CLOEXEC);
  if (file < 0) return '?';
  const ssize_t bytes = read(file, text.data(), text.size());
  close(file);
  const std::string_view stat(text.data(), bytes > 0 ? static_cast<size_t>(bytes) : 0);
  const size_t name_end = stat.rfind(") ");
  return name_end == std::string_view::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
}

/// In a process that was split off one with many threads: calls the system only, as these may have held any lock.
[[noreturn]] void watch(pid_t rank, const char* stat_file, std::string_view said) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "weft end");
  for (const int signal_number : {SIGINT, SIGTERM, SIGUSR1}) signal(signal_number, SIG_IGN);
  int stopped = 0;
  while (getppid() == rank) {
    nanosleep(&kTurn, nullptr);
    stopped = state_in(stat_file) == 'T' ? stopped + 1 : 0;
    if (stopped < kPatience) continue;
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, said.data(), said.size());
    kill(rank, SIGCONT);
    stopped = 0;
  }
  _exit(0);
}

}  // namespace

void watch_end(const std::string& who) {
  const pid_t rank = getpid();
  const std::string stat_file = fmt::format("/proc/{}/stat", rank);
  const std::string said = fmt::format(
      "weft: {} was stopped at its very end, with all its work done and written; it is woken to end\n", who);
  if (fork() == 0) watch(rank, stat_file.c_str(), said);
}

}  // namespace weft::comm
