// Another program, run with this one's input and output.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace weft::cli {

class ChildProcess {
 public:
  /// In a process group of its own: what the terminal sends this program's, such as Ctrl-C, it does not get. Where this
  /// program ends first, however that comes, it is sent SIGTERM.
  /// Error(usage) where there is no such program.
  explicit ChildProcess(const std::vector<std::string>& words);
  /// Ends it by SIGTERM, then waits.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void send(int signal) const;
  /// The processes that it has started itself and that still run.
  std::vector<pid_t> children() const;
  /// Whether it has ended.
  bool has_ended();
  /// Once it has: its exit code, or, where a signal ended it, 128 and the signal's number.
  int exit_code() const { return exit_code_; }

 private:
  pid_t process_ = -1;
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace weft::cli
