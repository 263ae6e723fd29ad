// The loop of one run with what it needs around it: loaders, records, the state that it starts from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "weft/data/load/loader.h"
#include "weft/program/prepared_run.h"
#include "weft/program/process_memory.h"
#include "weft/run/resume_point.h"
#include "weft/run/run.h"
#include "weft/run/run_directory.h"
#include "weft/run/run_records.h"
#include "weft/train/fit.h"

namespace weft::run {

/// Of several ranks each has its loaders; those that keep the run's directory have it too.
class RunLoop {
 public:
  /// Keeps references to its arguments. Without a checkpoint the run starts from its first step; `has_changes`: the
  /// recipe was changed since that checkpoint. What does not fit in memory fails here.
  RunLoop(program::PreparedRun& run, const RunDirectory* directory, const RunOptions& options,
          const std::filesystem::path& checkpoint, bool has_changes = false);

  RunOutcome train();

 private:
  void continue_changed();
  bool measure_test_data(const train::FitInputs& inputs, const train::Hooks& hooks, int64_t last_step);
  void share_initial_weights();
  void open();

  program::PreparedRun& run_;
  const RunDirectory* directory_;
  const RunOptions& options_;
  const program::MemoryGrowth memory_;
  ResumePoint resume_point_;
  std::unique_ptr<data::Loader> training_data_, validation_data_, test_data_;
  std::unique_ptr<RunRecords> records_;
};

}  // namespace weft::run
