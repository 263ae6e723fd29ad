// A convolution with a node's attributes, of values that need not be its operands.
#pragma once

#include <optional>

#include "weft/onnx/operators/context.h"
#include "weft/ops/ops.h"

namespace weft::onnx {

/// x [N,C,..] and weight [O,C/groups,..] of one to three spatial axes, by the node's strides, pads, dilations and
/// groups. `is_exact`: of whole numbers whose sums f32 holds; they stay as they are whatever the precision.
ValueId convolve(NodeContext& node, ValueId x, ValueId weight, bool is_exact = false);

/// The node's window over images, or over rows (x [N,C,L]) as images of one row; nullopt where it has more axes, or
/// cuts off what it should pad.
std::optional<ops::IntegerConv2dOptions> integer_window(NodeContext& node, const Shape& x, const Shape& weight);

}  // namespace weft::onnx
