// The program `weft` over any library: a program with your own ops, models and data can do all that `weft` does.
#pragma once

#include "weft/library/library.h"

namespace weft::cli {

/// Parses the command line and runs it; errors become messages on stderr. Returns the exit code: 0, 1 failure, 2 usage,
/// 130 interrupted.
int run(int argc, char** argv, const Library& library);

}  // namespace weft::cli
