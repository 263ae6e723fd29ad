// One training run from its specification to its run directory: data, plans, state, loop, checkpoints, summary.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

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
  bool tensorboard = false;                           // event files; also where the run directory has some already
  program::Autotune autotune =
      program::Autotune::off;  // of a new run; a resumed one keeps the kernels that it began with
  /// Of several ranks, all of which call the same: they train as one, on equal parts of each batch, and the first one
  /// alone writes, and says what there is to say. What fails before the first step, and a loss that is not finite,
  /// comes out of all of them as the same SharedError (comm/on_all_ranks.h). Null: the process is alone.
  comm::Communicator* ranks = nullptr;
};

struct RunOutcome {
  std::filesystem::path directory;  // on the first rank
  bool finished = false;            // false: stopped on request, to be resumed
  int64_t steps_done = 0;
  Summary summary;  // complete where finished, on the first rank
};

/// Trains in a new directory, runs/MODEL-DATA-N where it is empty. What the spec leaves open is resolved. What is wrong
/// with the spec, the data or the machine is said before anything is written.
RunOutcome start_run(const Library& library, const spec::RunSpec& spec, const std::filesystem::path& directory,
                     const RunOptions& options);

/// Goes on from the newest whole checkpoint of a run directory, from the beginning where there is none yet; of a run
/// that is finished it only reads the summary. Error(data) where the data are not those that the run began with.
/// `threads` 0: as the run began, or, on another number of ranks, all cores that this one may use. With the same number
/// of threads the weights become bitwise those of a run that was never cut off.
RunOutcome resume_run(const Library& library, const std::filesystem::path& directory, int64_t threads,
                      const RunOptions& options);

}  // namespace weft::run
