// Decisions by measurement, `precision = auto` and the kernels of --autotune, must be the same on all ranks: the
// first rank measures, and the others follow it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weft/program/prepared_run.h"

namespace weft::program {

/// Calls `prepare`, which must exchange nothing, once on every rank. Where the first rank's `measures` is true, the
/// first rank prepares first, with an empty text. The others wait, then prepare with the text that it returned, which
/// must not be empty. Otherwise all prepare at once with an empty text, as does a process that is alone. Errors reach
/// all ranks (on_all_ranks.h).
void prepare_alike(comm::Communicator* ranks, std::string_view what, bool measures,
                   const std::function<std::string(const std::string& decided)>& prepare);

/// Whether kernels are chosen by measurements, done or still to do.
bool measures(const Tuning& tuning);
/// The chosen kernels as a text for prepare_alike(), and the tuning by which other ranks choose the same.
std::string chosen_kernels_of(const Device& device);
Tuning tuning_by(const std::string& chosen_kernels);

/// Makes a PreparedRun on every rank, with the same decisions. An error of any rank reaches all (on_all_ranks.h). The
/// first rank's `tuning`, `note`, `cluster` (the file with the costs of collectives) and `cost_profile`
/// (cost_profile.h) count.
std::unique_ptr<PreparedRun> prepare_run(const Library& library, const spec::RunSpec& spec, const Tuning& tuning,
                                         const std::function<void(const std::string&)>& note, comm::Communicator* ranks,
                                         const std::string& cluster, const std::string& cost_profile);

}  // namespace weft::program
