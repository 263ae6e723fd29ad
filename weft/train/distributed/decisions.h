// What a run decides by measuring, `precision = auto` and the kernels of --autotune, must be the same on all ranks: the
// first one measures, the others do as it did.
#pragma once

#include <memory>

#include "weft/train/prepared_run.h"

namespace weft::train {

/// A PreparedRun on every rank, with the same decisions. Errors of any rank are those of all (together.h); `tuning` and
/// `note` are the first rank's.
std::unique_ptr<PreparedRun> prepare_run(const Library& library, const RunSpec& spec, const Tuning& tuning,
                                         const std::function<void(const std::string&)>& note,
                                         comm::Communicator* ranks);

}  // namespace weft::train
