// The directory of one run:
//   spec.toml      the complete recipe, written first      checkpoints/   see checkpoint/store.h
//   data.json      what the model must know of its data    plan.json      kernels, memory, prediction of the step
//   metrics.jsonl  see metrics_log.h                       graph.weft     the step after all passes
//   summary.json   written last                        tensorboard/   event files, where asked for
//   cluster.toml   links, where they were measured     cost_profile.toml   rates, where they are not the default ones
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weft/spec/data_description.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

class RunDirectory {
 public:
  /// A new directory, or an empty one that is there; an empty `path` takes runs/MODEL-DATA-N with the next free N.
  /// Error(usage) where it holds something, Error(io) where it cannot be made.
  static RunDirectory create(const std::filesystem::path& path, const std::string& model, const std::string& data);
  /// Error(usage) where it is no run directory.
  static RunDirectory open(const std::filesystem::path& path);
  /// Fails as create() would, before any work is done. Nothing for an empty path.
  static void require_free(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path spec() const { return path_ / "spec.toml"; }
  std::filesystem::path data() const { return path_ / "data.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path plan() const { return path_ / "plan.json"; }
  /// The links between its hosts, where those were measured.
  std::filesystem::path cluster() const { return path_ / "cluster.toml"; }
  /// The rates by which it is planned, where these are not the default ones.
  std::filesystem::path cost_profile() const { return path_ / "cost_profile.toml"; }
  std::filesystem::path graph() const { return path_ / "graph.weft"; }
  std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }

  spec::RunSpec read_spec(const Entries& entries = standard_entries()) const;
  /// The run's cost_profile as program::agreed_profile() takes it: the file that it keeps, where there is one.
  /// Error(data) where that is damaged, or is gone from a run that was planned by it.
  std::string chosen_cost_profile(const spec::RunSpec& spec) const;
  spec::DataDescription read_data() const;
  /// Only one process may train in a directory; held until the result dies. Error(usage) where another holds it.
  std::shared_ptr<void> lock() const;
  /// What a killed process left of files that it was writing; only for who holds the lock.
  void remove_temporaries() const;
  /// Takes back what create() made, while nothing but the description of the run is in it.
  void remove() const;

 private:
  RunDirectory(std::filesystem::path path, bool made) : path_(std::move(path)), made_(made) {}
  std::filesystem::path path_;
  bool made_ = false;  // the directory itself was made by create()
};

}  // namespace weft::run
