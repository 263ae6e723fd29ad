// What the shape rules of several updates share.
#pragma once

#include <fmt/format.h>

#include <string>

#include "weft/graph/op_def.h"

namespace weft::ops {

/// The last operand of every update, which may be absent: where it is 0 the step leaves the state as it is.
inline constexpr const char* kApply = "apply?";

inline void require_scalar(const InferContext& context, int operand, DType dtype) {
  context.require_rank(operand, 0);
  context.require_dtype(operand, dtype);
}

inline void require_apply(const InferContext& context, int operand) {
  if (context.input_count() > operand) require_scalar(context, operand, DType::f32);
}

inline void require_range(const InferContext& context, const std::string& name, bool below_one) {
  const double value = context.attributes.real(name);
  if (value >= 0 && (!below_one || value < 1)) return;
  context.fail(fmt::format("{} must be at least 0{}, got {}", name, below_one ? " and below 1" : "", value));
}

}  // namespace weft::ops
