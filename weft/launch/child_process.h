// Another program, run with this one's input and output, or with what it writes kept for the caller.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace weft::launch {

class ChildProcess {
 public:
  enum class Output {
    inherited,     // it writes where this program does
    errors_taken,  // what it writes to stderr comes out of read()
    kept,          // stdout too; it reads nothing
    spoken_with,   // stdout too; its stdin is a socket, through which it and this program speak
  };

  /// In a process group of its own: what the terminal sends this program's, such as Ctrl-C, it does not get. Where this
  /// program ends first, however that comes, it is sent SIGTERM.
  /// Error(usage) where there is no such program.
  explicit ChildProcess(const std::vector<std::string>& words, Output output = Output::inherited);
  /// Ends it by SIGTERM, then waits.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t process() const { return process_; }
  void send(int signal) const;
  /// The processes that it has started itself and that still run.
  std::vector<pid_t> children() const;
  /// What it has written since the last call, as far as it is there now.
  std::string read();
  /// Gives it something to read, where it is spoken with. False where it does not listen any more.
  bool say(const std::string& text) const;
  /// What it has answered there since the last call.
  std::string hear();
  /// The socket, which can be read once it has answered or ended; -1: there is none.
  int speech() const { return speech_; }
  /// Closes the socket: the program then reads the end of its input.
  void end_speech();
  /// Whether it has ended.
  bool has_ended();
  /// Until it has ended, or the time is over: what it wrote.
  std::string wait(std::chrono::steady_clock::duration limit);
  /// Once it has: its exit code, or, where a signal ended it, 128 and the signal's number.
  int exit_code() const { return exit_code_; }
  /// Then: whether it was a signal.
  bool was_killed() const { return was_killed_; }

 private:
  pid_t process_ = -1;
  int output_ = -1;  // to read from; -1: none
  int speech_ = -1;  // likewise to speak through
  bool ended_ = false, was_killed_ = false;
  int exit_code_ = 0;
};

}  // namespace weft::launch
