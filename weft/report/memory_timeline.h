// What a plan's arena holds while each step runs, for `weft explain`: as numbers, as bars, as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/plan/memory_use.h"

namespace weft::report {

/// A tensor in the arena during one step.
struct LiveTensor {
  std::string name;
  std::string type;  // "f32[64,3,32,32]"
  MemoryUse use = MemoryUse::activation;
  int64_t bytes = 0;
  std::string made_by, last_read_by;  // node names
  int first_step = 0, last_step = 0;
};

/// The tensors in the arena while plan.steps[step] runs, largest first. Values that share memory (views, in-place
/// results) count once, under the name of the first; the step's workspace is listed as "(workspace)".
std::vector<LiveTensor> live_tensors(const Graph& graph, const Plan& plan, int step);

/// A bar per group of steps, a letter for each use, the peak marked: at most `rows` lines, then the legend.
std::string draw_timeline(const Graph& graph, const Plan& plan, int rows);

/// The timeline with the map of the arena below it, as SVG.
std::string draw_memory_svg(const Graph& graph, const Plan& plan, const std::string& title);

}  // namespace weft::report
