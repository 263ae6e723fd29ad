// Ranks that are not about to do the same would train nonsense, or wait for each other in vain: before the first step
// they compare what decides the run, and the one that differs is named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/plan/plan.h"
#include "weft/program/prepared_run.h"

namespace weft::program {

struct Trait {
  std::string name;         // "version of weft"
  std::string value;        // of this rank
  std::string advice;       // what to do where ranks differ
  std::string detail = {};  // shown beside the value, not compared
};

/// Every rank calls it with the same traits in the same order. SharedError(communication) names the first trait that is
/// not the same on all ranks, and the first rank whose is not rank 0's.
void require_same(comm::Communicator* ranks, const std::vector<Trait>& traits);

/// Of all that decides what the run computes: version, spec, data, plans, state. Paths may differ: their content
/// counts.
std::vector<Trait> traits_of(PreparedRun& run, const State& state);

/// Of the order of its nodes, their kernels and the place of every value; hexadecimal. The same in every process of the
/// same build on the same kind of processor.
std::string fingerprint_of(const Graph& graph, const Plan& plan);

}  // namespace weft::program
