// What the pieces of a plan's memory are for.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/plan/plan.h"

namespace weft {

enum class MemoryUse { state, activation, recomputed, gradient, workspace };
constexpr size_t kMemoryUses = 5;
/// "activations"; of the state: "states and batch", which live outside the arena.
std::string_view name_of(MemoryUse use);

/// The use of each block of the plan. Results of the forward part (all that graph outputs depend on) are activations;
/// later results are gradients, temporaries of updates included.
std::vector<MemoryUse> uses_of_blocks(const Graph& graph, const Plan& plan);

/// Bytes by use while each step runs.
using MemoryBytes = std::array<int64_t, kMemoryUses>;
std::vector<MemoryBytes> memory_by_use(const Graph& graph, const Plan& plan);

}  // namespace weft
