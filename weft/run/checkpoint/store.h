// The checkpoints of a run: directories step-00000120/ with
//   model.safetensors      parameters and running statistics, plain, named as in PyTorch; their averages where there
//   are optimizer.safetensors  the optimiser's slots; with averages, the weights themselves as "optimizer/trained/NAME"
//   manifest.json          where the run stood, sizes and checksums of the other two
// Each appears whole, by one rename, or not at all. `best` is a link to the one that did best on the test data.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
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
/// `with_optimizer` = false leaves the optimiser's slots out.
Checkpoint read_checkpoint(const std::filesystem::path& directory, bool with_optimizer = true);

class CheckpointStore {
 public:
  /// Nothing is created before the first write.
  CheckpointStore(std::filesystem::path directory, int64_t keep) : directory_(std::move(directory)), keep_(keep) {}

  /// Writes a checkpoint, points `best` at it where the manifest says that it is the best, and removes those that are
  /// neither among the newest nor the best. Error(numeric) where the state holds NaN or infinity, Error(io) where the
  /// system refuses; the older checkpoints stay untouched then.
  std::filesystem::path write(const State& state, Manifest manifest);

  /// The newest whole checkpoint; `warn` gets a line for each newer one that is damaged. nullopt where there are none
  /// at all; Error(data) where all are damaged.
  std::optional<Checkpoint> read_newest(const std::function<void(const std::string&)>& warn,
                                        bool with_optimizer = true) const;
  /// The one that `best` links to. Error(usage) where there is none.
  Checkpoint read_best() const;

  /// Newest first.
  std::vector<std::filesystem::path> list() const;
  /// Renames what stands after `step`, which was found damaged when a run went on from there, to damaged-STEP: nothing
  /// reads or counts it any more. The process that trains alone may do this.
  void set_damaged_aside(int64_t step) const;
  /// After a kill: a checkpoint that was moved aside for one that never came gets its name back.
  void put_back() const;
  /// After a kill: removes what was left half-written and lets `best` point where the manifest says.
  void tidy(const std::optional<BestCheckpoint>& best) const;

 private:
  void remove_old(int64_t written) const;
  std::filesystem::path directory_;
  int64_t keep_;
};

}  // namespace weft::run
