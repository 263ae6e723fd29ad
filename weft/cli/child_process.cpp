#include "weft/cli/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "weft/base/error.h"

namespace weft::cli {

namespace {

/// From "/proc/N/stat": "pid (name) state ppid ...", where a name may hold anything.
pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  const size_t end = line.rfind(") ");
  char state = 0;
  pid_t parent = -1;
  if (end != std::string::npos) std::sscanf(line.c_str() + end + 2, "%c %d", &state, &parent);
  return state == 'Z' ? -1 : parent;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int failure[2];  // through which the child says why it could not become the program
  if (pipe2(failure, O_CLOEXEC) != 0) fail(ErrorKind::io, "cannot start '{}': {}", words.front(), strerror(errno));
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execvp(arguments.front(), arguments.data());
    const int reason = errno;
    [[maybe_unused]] const ssize_t written = write(failure[1], &reason, sizeof reason);
    _exit(127);
  }
  const int fork_failure = errno;
  close(failure[1]);
  int reason = process_ < 0 ? fork_failure : 0;
  const bool has_failed = process_ < 0 || read(failure[0], &reason, sizeof reason) > 0;
  close(failure[0]);
  if (!has_failed) return;
  if (process_ > 0) waitpid(process_, nullptr, 0);
  fail(ErrorKind::usage, "cannot start '{}': {}; install it, or put it into the PATH", words.front(), strerror(reason));
}

ChildProcess::~ChildProcess() {
  if (ended_) return;
  send(SIGTERM);
  waitpid(process_, nullptr, 0);
}

void ChildProcess::send(int signal) const {
  if (!ended_) kill(process_, signal);
}

std::vector<pid_t> ChildProcess::children() const {
  std::vector<pid_t> found;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos && parent_of(entry.path()) == process_)
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

bool ChildProcess::has_ended() {
  int status = 0;
  if (ended_ || waitpid(process_, &status, WNOHANG) != process_) return ended_;
  ended_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

}  // namespace weft::cli
