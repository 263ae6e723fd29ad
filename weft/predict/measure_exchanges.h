// Measures exchanges between ranks of this host, through the kernels that steps run: with what these copy beside it.
#pragma once

#include <cstdint>

#include "weft/device/shared_exchanges.h"
#include "weft/graph/op_def.h"

namespace weft::predict {

struct MeasureExchangesOptions {
  int threads = 1;                   // of each rank
  int64_t cores = 2;                 // that all ranks have
  int64_t largest_bytes = 64 << 20;  // of a whole tensor
  int rounds = 5;                    // of which medians are taken
  double most_seconds = 60;          // after which no larger number of ranks is begun
};

/// Collectives of two ranks, of four, of eight..., as many as have cores of their own and memory, each a thread of this
/// process; nothing where two would take turns. Messages are left out: those of threads go other ways than those of
/// ranks. What they exchange was written before and has left their caches, as most of what a step exchanges
/// has. Takes a few seconds for each number of ranks.
SharedExchanges measure_exchanges(const OpRegistry& ops, const MeasureExchangesOptions& options);

}  // namespace weft::predict
