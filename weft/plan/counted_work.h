// The work of a step in numbers that no clock measures: nodes, arithmetic, memory traffic, layout changes, memory and
// which kernels run what. Equal for equal plans, so that a test can keep them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "weft/plan/plan.h"

namespace weft {

struct CountedWork {
  int64_t nodes = 0;  // that run a kernel
  int64_t flops = 0;
  int64_t bytes = 0;  // read and written, each operand once
  int64_t reorders = 0, reorder_bytes = 0;
  int64_t casts = 0, cast_bytes = 0;
  int64_t state_copies = 0, state_copy_bytes = 0;  // after the step, of states that no update could overwrite
  int64_t arena_bytes = 0;
  int64_t workspace_bytes = 0;  // the largest
  int64_t state_bytes = 0;
  std::map<std::pair<std::string, std::string>, int64_t> kernels;  // nodes per (op, kernel)
  /// The same of nodes that run only after the states were bound (graph/kept.h), and are counted nowhere else.
  std::map<std::pair<std::string, std::string>, int64_t> kernels_when_bound;

  /// As if the plan that `other` was counted from ran as well, `times` in a row, in the same arena and on the same
  /// states, which were bound before.
  void add(const CountedWork& other, int64_t times);
};

/// Of a run that completes sums over several, if there are any.
CountedWork count_work(const Graph& graph, const Plan& plan);
/// Of a run that does not (graph/accumulation.h) and follows such, so that nothing of it runs when states are bound.
CountedWork count_work_of_part(const Graph& graph, const Plan& plan);
/// Of the nodes that run only after the states were bound, as if they ran in each step.
CountedWork count_work_when_bound(const Graph& graph, const Plan& plan);

}  // namespace weft
