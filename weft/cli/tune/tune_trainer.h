// weft tune trainer: a process of `weft tune` that trains one trial after the other. Not listed in --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "weft/cli/command.h"

namespace weft::cli {

/// The command `trainer` of `tune`. It reads the words of a run from its input, a socket, and answers there
/// once the run has come to its end or its pause (tune/training/training.h). It ends with the run's exit code where
/// that is not 0, so that nothing of a run that failed is left in the next one, and where its input ends.
void add_tune_trainer(CLI::App& tune, Action& action, const Library& library, const std::string& program);

}  // namespace weft::cli
