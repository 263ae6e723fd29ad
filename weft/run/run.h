// Runs one training from its specification to its run directory: data, plans, state, loop, checkpoints, summary.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/library/library.h"
#include "weft/program/autotune.h"
#include "weft/run/summary.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

struct RunOptions {
  std::FILE* progress = nullptr;                      // where the progress line goes; null: nowhere
  std::function<void(const std::string&)> note = {};  // a line for the user, such as a warning; may be empty
  std::function<bool()> stop_requested = {};          // asked after each step and evaluated batch; may be empty
  bool tensorboard = false;                           // write event files; done also where the run directory already
                                                      // has some
  bool copies = false;     // each host that does not see the first rank's run directory keeps a full copy of its own
  bool list_init = false;  // name every tensor of RunSpec::init
  /// Saves and stops once so many epochs are done, or where the run ends before, without measuring the test data where
  /// there is a validation part: a resumed run goes on as if it had not stopped. 0: it trains to its end.
  int64_t pause_epochs = 0;
  program::Autotune autotune = program::Autotune::off;  // of a new run; a resumed run keeps its kernels
  /// With several ranks, all call the same function. They train as one, on equal parts of each batch; only the first
  /// rank writes messages and, unless there are copies, files. Errors before the first step, and a loss that is not
  /// finite, reach all ranks as the same SharedError (comm/on_all_ranks.h). Null: the process is alone.
  comm::Communicator* ranks = nullptr;
};

struct RunOutcome {
  std::filesystem::path directory;  // on the first rank; empty: stopped before the run began, which left nothing
  bool finished = false;            // false: stopped on request; the run can be resumed
  int64_t steps_done = 0;
  bool paused = false;      // by RunOptions::pause_epochs
  int64_t epochs_done = 0;  // whole ones
  Summary summary;          // complete where finished, on the first rank
};

/// Trains in a new directory; an empty `directory` takes runs/MODEL-DATA-N. Resolves what the spec leaves open. Reports
/// errors of the spec, the data or the machine before it writes anything.
RunOutcome start_run(const Library& library, const spec::RunSpec& spec, const std::filesystem::path& directory,
                     const RunOptions& options);

/// Continues from the newest whole checkpoint of a run directory, or from the beginning where there is none. Of a
/// finished run it only reads the summary. Error(data) where the data differ from those that the run began with.
/// `threads` 0: as the run began, or, on another number of ranks, all cores that this rank may use. With the same
/// number of threads the weights are bitwise those of an uninterrupted run.
/// `changes` are assignments such as "epochs=12" to keys that may change (run_changes.h): a finished run goes on with
/// them, too. Error(usage) where a key may not change, or there is nothing left to train.
RunOutcome resume_run(const Library& library, const std::filesystem::path& directory, int64_t threads,
                      const RunOptions& options, const std::vector<std::string>& changes = {});

}  // namespace weft::run
