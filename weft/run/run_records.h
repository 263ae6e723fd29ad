// What a run writes while it trains: metrics, checkpoints, events, the progress line. With several ranks, only the
// first rank has it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "weft/base/progress.h"
#include "weft/predict/watch.h"
#include "weft/program/process_memory.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/metrics_log.h"
#include "weft/run/resume_point.h"
#include "weft/run/run.h"
#include "weft/run/run_directory.h"
#include "weft/run/tensorboard_log.h"
#include "weft/train/fit.h"

namespace weft::run {

class RunRecords {
 public:
  /// Keeps references to its arguments. Removes files that a killed process left half-written.
  /// `memory`: of this process, since just before all that is planned was allocated.
  RunRecords(const program::PreparedRun& run, const RunDirectory& directory, const RunOptions& options,
             ResumePoint& resume_point, const program::MemoryGrowth& memory);

  /// All hooks but stop_requested.
  train::Hooks hooks();
  /// Ends the progress line: later output starts on a line of its own.
  void end_line();
  void on_test(const TestMetrics& metrics);
  /// Tells the user what came from a file of weights, and keeps all of it.
  void on_initial_weights() const;
  /// Keeps a line for each sample that was passed over: those that were `found`, as their messages say, and those
  /// that are listed since before the run was resumed. Gives the number of all.
  int64_t list_damaged_samples(const std::vector<std::string>& found) const;
  /// When the run was first as good as it ever was, and as the recipe wanted it, from the records.
  void add_times(Summary& summary) const;
  /// "; the last good checkpoint is '...'"
  std::string last_good() const;

 private:
  void save(const step::Position& position);
  void on_step(const step::StepMetrics& metrics);
  void warn_of_damage();
  /// Says what leaves the range of the prediction.
  void watch(const step::StepMetrics& metrics);
  void say_once(const std::string& line);
  void on_validation(const step::ValidationMetrics& metrics);
  /// Remembers what a checkpoint of this step would be worth.
  void note_validation(int64_t step, double loss, const MetricValues& metrics);
  BestCheckpoint best_so_far() const;
  void on_epoch(const step::EpochMetrics& metrics);
  void on_rank_pace(int64_t step, const train::RankPace& pace);
  void on_shares(int64_t step, const train::ShareChange& change);
  void tell_epoch(const step::EpochMetrics& metrics);
  const data::DatasetInfo& info() const { return run_.run_data.description.info; }

  const program::PreparedRun& run_;
  const RunDirectory& directory_;
  const RunOptions& options_;
  ResumePoint& resume_point_;
  const std::vector<MetricEntry> metrics_;  // of evaluations
  CheckpointStore store_;
  MetricsLog log_;
  const program::MemoryGrowth& memory_;
  const double seconds_before_;                   // of training, by earlier processes
  std::optional<predict::Watch> watch_;           // where there is a prediction
  bool warned_ = false;                           // of damaged samples
  std::optional<BestCheckpoint> validated_ = {};  // the last state that was evaluated on the validation part
  std::unique_ptr<TensorboardLog> tensorboard_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace weft::run
