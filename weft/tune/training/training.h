// The training of one trial, wherever it runs: in a process of this host, or at a worker on another host
// (worker_server.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/launch/child_process.h"

namespace weft::tune {

/// What is to be trained: a new run by a recipe, or one that goes on.
struct TrainingJob {
  int64_t trial = 0;
  std::filesystem::path run;              // its directory
  std::filesystem::path recipe;           // a file; of a new run
  bool goes_on = false;                   // with what is in its directory
  std::vector<std::string> options = {};  // of `weft train`, behind these
  int64_t memory = 0;                     // bytes, as planned

  /// The words behind `weft` that train it: "train" and what follows.
  std::vector<std::string> words() const;
};

class Training {
 public:
  virtual ~Training() = default;
  /// Whether it has ended; from then on its run directory is here as it left it.
  virtual bool has_ended() = 0;
  /// What it has written since the last call.
  virtual std::string read() = 0;
  /// It makes a checkpoint and ends.
  virtual void stop() = 0;
  /// Then: its exit code, or 128 and the number of the signal that ended it.
  virtual int exit_code() const = 0;
  virtual bool was_killed() const = 0;
  /// Then: whether nobody knows how it went on, since its worker is gone.
  virtual bool was_lost() const = 0;
  /// A file on which poll() returns once it may have ended, if not before; -1: there is none.
  virtual int news() const = 0;
  /// Of a process of this host; 0: it has none here.
  virtual int64_t process() const = 0;
};

/// Processes of this host that train one trial after the other, `weft tune trainer`: each keeps data open that lie in
/// memory. One whose trial fails or is stopped ends, and so does one that is killed; another takes its place.
class Trainers {
 public:
  /// `program`: its path.
  explicit Trainers(std::string program);

  /// In a process that is idle, or else in a new one. Error(usage) where there is no such program.
  std::unique_ptr<Training> train(const TrainingJob& job);
  /// Ends those that are idle.
  void dismiss_idle();

 private:
  using Idle = std::vector<std::unique_ptr<launch::ChildProcess>>;
  class TrainingHere;

  const std::string program_;
  const std::shared_ptr<Idle> idle_ = std::make_shared<Idle>();  // trainings give their process back to it
};

/// What a trainer's process says when the run that it was given has come to its end or its pause.
inline constexpr const char* kTrained = "trained\n";
/// The words of a run, none of them empty, as a trainer reads them: a zero behind each, and one behind all.
std::string print_words(const std::vector<std::string>& words);
/// Takes the words of one run from the beginning of what was read so far; nullopt where they are not whole yet.
/// Error(usage) where they are no words of `weft train`.
std::optional<std::vector<std::string>> take_words(std::string& read);

}  // namespace weft::tune
