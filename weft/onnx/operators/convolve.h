// A convolution with a node's attributes, of values that need not be its operands.
#pragma once

#include "weft/onnx/operators/context.h"

namespace weft::onnx {

/// x [N,C,..] and weight [O,C/groups,..] of one to three spatial axes, by the node's strides, pads, dilations and
/// groups.
ValueId convolve(NodeContext& node, ValueId x, ValueId weight);

}  // namespace weft::onnx
