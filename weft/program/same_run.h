// Before the first step, ranks compare what decides the run, since ranks that do different things would train
// nonsense or wait in vain. The error names the rank that differs.
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
  int among = 0;            // ranks that give the same number have the same value
};

/// Every rank must call it with the same traits in the same order. SharedError(communication) names the first trait
/// that is not equal on all ranks, and the first rank that differs from rank 0.
void require_same(comm::Communicator* ranks, const std::vector<Trait>& traits);

/// The traits that decide what the run computes: version, spec, data, plans, state. Paths may differ: only their
/// content counts.
std::vector<Trait> traits_of(PreparedRun& run, const State& state);

/// Fingerprint, in hexadecimal, of the order of the nodes, their kernels and the place of every value. It is the same
/// in every process of the same build on the same kind of processor.
std::string fingerprint_of(const Graph& graph, const Plan& plan);

}  // namespace weft::program
