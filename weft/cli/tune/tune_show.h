// weft tune show: a study as a table, as JSON, in pictures, or all of it as one page.
#pragma once

#include <CLI/CLI.hpp>

#include "weft/cli/command.h"

namespace weft::cli {

/// The command `show` of `tune`.
void add_tune_show(CLI::App& tune, Action& action, const Library& library);

}  // namespace weft::cli
