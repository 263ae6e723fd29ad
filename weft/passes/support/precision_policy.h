// In which types the nodes of a graph compute, as a user asks for it.
#pragma once

#include <string>
#include <vector>

#include "weft/tensor/dtype.h"

namespace weft::passes {

/// For the nodes whose own name or whose op's name the pattern (a glob) matches, instead of the op's rule: DType::f32
/// keeps them in f32, another type lets them compute in it whatever their operands are.
struct PrecisionOverride {
  std::string pattern;
  DType dtype = DType::f32;
};

struct PrecisionPolicy {
  DType dtype = DType::f32;                  // T; f32: nothing is lowered
  std::vector<PrecisionOverride> overrides;  // the last that matches counts
};

}  // namespace weft::passes
