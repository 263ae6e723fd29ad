// The training of one trial, wherever it runs: `weft train` here, or at a worker on another host (worker_server.h).
#pragma once

#include <filesystem>
#include <memory>
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

  /// The words of `weft train` with its directories here.
  std::vector<std::string> words(const std::string& program) const;
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
  /// Of a process of this host; 0: it has none here.
  virtual int64_t process() const = 0;
};

std::unique_ptr<Training> train_here(const TrainingJob& job, const std::string& program);

}  // namespace weft::tune
