// What host operators do with whole tensors.
#pragma once

#include <vector>

#include "weft/onnx/operators/context.h"

namespace weft::onnx {

/// Tensors of one type along a new axis, the last first where reversed. None: the dimensions that `info` states, with 0
/// along the axis.
Tensor stacked(const NodeAttributes& node, const std::vector<Tensor>& parts, int64_t axis, bool reversed,
               const ValueInfo& info);
/// Tensors of one type but for the axis, one behind the other.
Tensor joined(const NodeAttributes& node, const std::vector<Tensor>& parts, int64_t axis);
/// The elements at `position` of the axis, without it.
Tensor layer_of(const Tensor& tensor, int axis, int64_t position);
/// The elements from start to, not with, end of the axis.
Tensor range_of(const Tensor& tensor, int axis, int64_t start, int64_t end);

}  // namespace weft::onnx
