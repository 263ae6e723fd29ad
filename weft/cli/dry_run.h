// weft train --dry-run: what a run will do and take, on one page.
#pragma once

#include <string>

#include "weft/library/library.h"
#include "weft/spec/run_spec.h"

namespace weft::cli {

/// Opens the data, plans, and runs some steps on random batches; writes nothing. `directory` is the run's, empty for
/// the next free one; `list_init`: names every tensor of initial weights. The exit code.
int dry_run(const Library& library, const spec::RunSpec& spec, const std::string& directory, bool list_init);

}  // namespace weft::cli
