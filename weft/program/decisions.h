// What a run decides by measuring, `precision = auto` and the kernels of --autotune, must be the same on all ranks: the
// first one measures, the others do as it did.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weft/program/prepared_run.h"

namespace weft::program {

/// Calls `prepare`, which exchanges nothing, once on every rank. Where the first one measures it prepares first, given
/// an empty text, while the others wait, who then prepare by what it returned, which is not empty; else all prepare at
/// once, given nothing. Errors are those of all (on_all_ranks.h). `measures` is the first rank's. Alone, given nothing.
void prepare_alike(comm::Communicator* ranks, std::string_view what, bool measures,
                   const std::function<std::string(const std::string& decided)>& prepare);

/// Whether kernels are chosen by what was measured, or is to be.
bool measures(const Tuning& tuning);
/// The kernels that were chosen, for prepare_alike(), and the tuning by which others choose the same.
std::string chosen_kernels_of(const Device& device);
Tuning tuning_by(const std::string& chosen_kernels);

/// A PreparedRun on every rank, with the same decisions. Errors of any rank are those of all (on_all_ranks.h);
/// `tuning`, `note`, `cluster`, the file with the costs of collectives, and `cost_profile` (cost_profile.h) are the
/// first rank's.
std::unique_ptr<PreparedRun> prepare_run(const Library& library, const spec::RunSpec& spec, const Tuning& tuning,
                                         const std::function<void(const std::string&)>& note, comm::Communicator* ranks,
                                         const std::string& cluster, const std::string& cost_profile);

}  // namespace weft::program
