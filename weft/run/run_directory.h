// The directory of one run:
//   spec.toml      the complete recipe, written first      checkpoints/   see checkpoint/store.h
//   data.json      what the model must know of its data    plan.json      kernels, memory, prediction of the step
// metrics.jsonl  see metrics_log.h                       graph.weft     the step after all passes
//   summary.json   written last                        tensorboard/   event files, where asked for
//   cluster.toml   links, where they were measured     cost_profile.toml   rates, where they are not the default ones
//   initial_weights.json  of a run from a file        damaged_samples.txt  those that were passed over
//   prediction.json  time, memory and traffic as predicted before the first step, with the strategy
//   policy.json    what was measured for keys that the recipe leaves open as `auto`
//   changes.jsonl  what a resumed run changed in spec.toml, see run_changes.h
//   model.onnx     the model, of a run that trains an imported one
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weft/spec/data_description.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

/// The option of a model that is made of a file.
inline constexpr const char* kModelFileOption = "file";

/// Of plan.json: the number of ranks.
inline constexpr const char* kRanksKey = "ranks";

class RunDirectory {
 public:
  /// Makes a new directory, or takes an empty one; an empty `path` takes runs/MODEL-DATA-N with the next free N.
  /// Error(usage) where the directory is not empty, Error(io) where it cannot be made.
  static RunDirectory create(const std::filesystem::path& path, const std::string& model, const std::string& data);
  /// Error(usage) where `path` is no run directory.
  static RunDirectory open(const std::filesystem::path& path);
  /// Fails as create() would, before any work is done. Does nothing for an empty path.
  static void require_free(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path spec() const { return path_ / "spec.toml"; }
  std::filesystem::path data() const { return path_ / "data.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path plan() const { return path_ / "plan.json"; }
  /// That the run had when it was last begun or gone on with, which plan.json says; 1 where that is not known.
  int ranks() const;
  /// Measured links between the hosts, where they were measured.
  std::filesystem::path cluster() const { return path_ / "cluster.toml"; }
  /// Rates that plan the run, where they are not the default ones.
  std::filesystem::path cost_profile() const { return path_ / "cost_profile.toml"; }
  /// Which tensors of a file the run started from (initial_weights.h).
  std::filesystem::path initial_weights() const { return path_ / "initial_weights.json"; }
  /// A line for each sample that could not be read.
  std::filesystem::path damaged_samples() const { return path_ / "damaged_samples.txt"; }
  /// What was said of the run before it began (predict/prediction.h).
  std::filesystem::path prediction() const { return path_ / "prediction.json"; }
  /// What was measured for keys that the recipe left open (policies/policy_file.h).
  std::filesystem::path policy() const { return path_ / "policy.json"; }
  std::filesystem::path changes() const { return path_ / "changes.jsonl"; }
  std::filesystem::path graph() const { return path_ / "graph.weft"; }
  std::filesystem::path model_file() const { return path_ / "model.onnx"; }
  std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }

  spec::RunSpec read_spec(const Entries& entries = standard_entries()) const;
  /// The run's cost_profile in the form that program::agreed_profile() takes: the file in the directory, where it has
  /// one. Error(data) where that file is damaged, or is gone although the run was planned by it.
  std::string chosen_cost_profile(const spec::RunSpec& spec) const;
  spec::DataDescription read_data() const;
  /// Locks the directory, in which only one process may train, until the result dies. Error(usage) where another
  /// process holds the lock.
  std::shared_ptr<void> lock() const;
  /// The same for a directory that need not hold a run.
  static std::shared_ptr<void> lock_at(const std::filesystem::path& path);
  /// What weft has written there, without the checkpoints: of the files above and event files those that are there.
  std::vector<std::filesystem::path> files() const;
  /// Removes files that a killed process left half-written. Only the holder of the lock may call it.
  void remove_temporaries() const;
  /// Undoes create(), as long as the directory holds only the description of the run.
  void remove() const;

 private:
  RunDirectory(std::filesystem::path path, bool made) : path_(std::move(path)), made_(made) {}
  std::filesystem::path path_;
  bool made_ = false;  // create() made the directory itself
};

}  // namespace weft::run
