// The checkpoints of a run: directories step-00000120/ with
//   model.safetensors      parameters and running statistics, named as in PyTorch; their averages where there are any
//   optimizer.safetensors  the optimiser's slots; with averages, also the weights as "optimizer/trained/NAME"
//   manifest.json          where the run stood, sizes and checksums of the other files
// Of states that ranks share each rank writes its part beside these, at the same time as the others (write_parts.h). A
// rename makes each directory appear whole or not at all. The link `best` points to the best one on the validation
// part; without such a part, to the newest.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/device/state.h"
#include "weft/run/checkpoint/manifest.h"

namespace weft::run {

struct Checkpoint {
  std::filesystem::path path;
  Manifest manifest;
  State state;
};

/// Reads a checkpoint directory and checks sizes, checksums and content. Error(data) or Error(io) says what is damaged.
/// With `with_optimizer` = false it omits the optimiser's slots.
Checkpoint read_checkpoint(const std::filesystem::path& directory, bool with_optimizer = true);

/// The manifest of a checkpoint whose files have the sizes and checksums that it says. Error(data) or Error(io) says
/// what is damaged. The tensors are not read.
Manifest check_checkpoint(const std::filesystem::path& directory);

/// A directory that is being written, which goes again unless it gets its own name.
class UnfinishedDirectory {
 public:
  explicit UnfinishedDirectory(std::filesystem::path path);
  ~UnfinishedDirectory();
  UnfinishedDirectory(UnfinishedDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  UnfinishedDirectory(const UnfinishedDirectory&) = delete;
  UnfinishedDirectory& operator=(const UnfinishedDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  /// At each moment there is a whole checkpoint of the target's step: the older one of that step, or this.
  void rename_to(const std::filesystem::path& target);

 private:
  std::filesystem::path path_;
};

class CheckpointStore {
 public:
  /// Creates nothing before the first write.
  CheckpointStore(std::filesystem::path directory, int64_t keep) : directory_(std::move(directory)), keep_(keep) {}

  /// Writes a checkpoint, and points `best` at it where the manifest says that it is the best. Then removes checkpoints
  /// that are neither among the newest nor the best. Error(numeric) where the state holds NaN or infinity, Error(io)
  /// where the system refuses; the older checkpoints then stay as they are.
  std::filesystem::path write(const State& state, Manifest manifest);
  /// The same in steps, between which others may write into the directory: `write_whole` writes all but the manifest's
  /// parts, and notes the files in it.
  UnfinishedDirectory begin(int64_t step) const;
  static void write_whole(const std::filesystem::path& unfinished, const State& state, Manifest& manifest);
  std::filesystem::path finish(UnfinishedDirectory unfinished, const Manifest& manifest);

  /// Reads the newest whole checkpoint; calls `warn` with a line for each newer one that is damaged, and for one
  /// without a checksum of its manifest. nullopt where there are no checkpoints. Error(data) where all are damaged.
  std::optional<Checkpoint> read_newest(const std::function<void(const std::string&)>& warn,
                                        bool with_optimizer = true) const;
  /// The same without its tensors, which are checked all the same.
  std::optional<Checkpoint> check_newest(const std::function<void(const std::string&)>& warn) const;
  /// Reads the checkpoint that `best` links to. Error(usage) where there is none.
  Checkpoint read_best(bool with_optimizer = false) const;

  /// Of a checkpoint's directory while it is not whole; tidy() removes what is left of such.
  static std::string unfinished_name(const std::string& name);
  /// Gives a directory with such a name, in which all files lie, its own one. One that is there already is there until
  /// the new one is whole.
  static void make_whole(const std::filesystem::path& unfinished, const std::filesystem::path& checkpoint);
  /// Of the checkpoint of that step.
  static std::string directory_name(int64_t step);
  /// Newest first.
  std::vector<std::filesystem::path> list() const;
  /// Renames each checkpoint after `step` to damaged-STEP; a run that continued from `step` found them damaged. Nothing
  /// reads or counts them any more. Only the process that trains may call it.
  void set_damaged_aside(int64_t step) const;
  /// After a kill: restores the name of a checkpoint that was moved aside for one that was never completed.
  void put_back() const;
  /// After a kill: removes half-written files and points `best` where the manifest says.
  void tidy(const std::optional<BestCheckpoint>& best) const;

 private:
  void remove_old(int64_t written) const;
  std::optional<Checkpoint> newest(const std::function<void(const std::string&)>& warn,
                                   const std::function<Checkpoint(const std::filesystem::path&)>& read_one) const;
  std::filesystem::path directory_;
  int64_t keep_;
};

}  // namespace weft::run
