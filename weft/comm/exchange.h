// Small blocking collectives for what stands outside the graph: what ranks agree on before the first step, metrics,
// checkpoints. Every rank calls the same with the same `what`, which names the exchange in errors ("metrics of epoch
// 3"). They may allocate. Error(communication) names the rank that is silent, late, or does another exchange.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/patience.h"

namespace weft::comm {

/// Elementwise over all ranks, each of which has as many values; all get the same bits. Summed in the order of a
/// balanced binary tree over the ranks: (r0 + r1) + (r2 + r3).
void all_reduce_sum(Communicator& communicator, std::span<double> values, std::string_view what,
                    const WaitLimits& limits = {});
void all_reduce_min(Communicator& communicator, std::span<double> values, std::string_view what,
                    const WaitLimits& limits = {});
void all_reduce_max(Communicator& communicator, std::span<double> values, std::string_view what,
                    const WaitLimits& limits = {});

/// The root's bytes, of which all ranks know the number.
void broadcast(Communicator& communicator, int root, std::span<std::byte> bytes, std::string_view what,
               const WaitLimits& limits = {});
/// The root's text; that of the others counts for nothing.
std::string broadcast(Communicator& communicator, int root, std::string_view text, std::string_view what,
                      const WaitLimits& limits = {});

/// By rank, on rank 0; empty elsewhere.
std::vector<std::string> gather(Communicator& communicator, std::string_view mine, std::string_view what,
                                const WaitLimits& limits = {});
/// By rank, on all ranks.
std::vector<std::string> all_gather(Communicator& communicator, std::string_view mine, std::string_view what,
                                    const WaitLimits& limits = {});

/// Returns when all ranks have come.
void barrier(Communicator& communicator, std::string_view what, const WaitLimits& limits = {});

}  // namespace weft::comm
