#include "weft/launch/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "weft/base/error.h"
#include "weft/launch/process_table.h"

namespace weft::launch {

namespace {
constexpr std::chrono::seconds kTimeToEnd{5};
}

ChildProcess::ChildProcess(const std::vector<std::string>& words, Output output) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int failure[2];  // through which the child says why it could not become the program
  if (pipe2(failure, O_CLOEXEC) != 0)
    fail(ErrorKind::io, "cannot start '{}': {}; raise `ulimit -n`", words.front(), strerror(errno));
  int written_to[2] = {-1, -1};
  if (output != Output::inherited && pipe2(written_to, O_CLOEXEC) != 0)
    fail(ErrorKind::io, "cannot start '{}': {}; raise `ulimit -n`", words.front(), strerror(errno));
  output_ = written_to[0];
  int spoken_through[2] = {-1, -1};
  if (output == Output::spoken_with && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, spoken_through) != 0) {
    const int reason = errno;
    for (const int file : {failure[0], failure[1], written_to[0], written_to[1]}) close(file);
    fail(ErrorKind::io, "cannot start '{}': {}; raise `ulimit -n`", words.front(), strerror(reason));
  }
  speech_ = spoken_through[0];
  if (output_ >= 0) fcntl(output_, F_SETFL, O_NONBLOCK);
  process_ = fork();
  if (process_ == 0) {
    if (output != Output::inherited) dup2(written_to[1], STDERR_FILENO);
    if (output == Output::kept || output == Output::spoken_with) {
      dup2(written_to[1], STDOUT_FILENO);
      const int read_from = output == Output::spoken_with ? spoken_through[1] : open("/dev/null", O_RDONLY | O_CLOEXEC);
      dup2(read_from, STDIN_FILENO);
      fcntl(STDIN_FILENO, F_SETFD, 0);  // where it was that one already
    }
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execvp(arguments.front(), arguments.data());
    const int reason = errno;
    [[maybe_unused]] const ssize_t written = write(failure[1], &reason, sizeof reason);
    _exit(127);
  }
  const int fork_failure = errno;
  close(failure[1]);
  if (written_to[1] >= 0) close(written_to[1]);
  if (spoken_through[1] >= 0) close(spoken_through[1]);
  int reason = process_ < 0 ? fork_failure : 0;
  const bool has_failed = process_ < 0 || ::read(failure[0], &reason, sizeof reason) > 0;
  close(failure[0]);
  if (!has_failed) return;
  if (output_ >= 0) close(output_);
  end_speech();
  if (process_ > 0) waitpid(process_, nullptr, 0);
  fail(ErrorKind::usage, "cannot start '{}': {}; install it, or put it into the PATH", words.front(), strerror(reason));
}

ChildProcess::~ChildProcess() {
  end_speech();
  if (!has_ended()) {
    send(SIGTERM);
    wait(kTimeToEnd);
    if (!has_ended()) {  // stopped, or deaf to it
      send(SIGKILL);
      waitpid(process_, nullptr, 0);
    }
  }
  if (output_ >= 0) close(output_);
}

void ChildProcess::send(int signal) const {
  if (!ended_) kill(process_, signal);
}

std::vector<pid_t> ChildProcess::children() const {
  std::vector<pid_t> found;
  for (const RunningProcess& running : running_processes())
    if (running.parent == process_) found.push_back(running.process);
  return found;
}

std::string ChildProcess::read() {
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t bytes = 0; output_ >= 0 && (bytes = ::read(output_, piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<size_t>(bytes));
  return text;
}

bool ChildProcess::say(const std::string& text) const {
  size_t said = 0;
  while (speech_ >= 0 && said < text.size()) {
    const ssize_t bytes = ::send(speech_, text.data() + said, text.size() - said, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return false;
    said += static_cast<size_t>(bytes);
  }
  return speech_ >= 0;
}

std::string ChildProcess::hear() {
  std::string text;
  std::array<char, 256> piece;
  for (ssize_t bytes = 0; speech_ >= 0 && (bytes = recv(speech_, piece.data(), piece.size(), MSG_DONTWAIT)) > 0;)
    text.append(piece.data(), static_cast<size_t>(bytes));
  return text;
}

void ChildProcess::end_speech() {
  if (speech_ >= 0) close(speech_);
  speech_ = -1;
}

std::string ChildProcess::wait(std::chrono::steady_clock::duration limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string text;
  while (!has_ended() && std::chrono::steady_clock::now() < end) {
    text += read();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return text + read();
}

bool ChildProcess::has_ended() {
  int status = 0;
  if (ended_ || waitpid(process_, &status, WNOHANG) != process_) return ended_;
  ended_ = true;
  was_killed_ = WIFSIGNALED(status);
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

}  // namespace weft::launch
