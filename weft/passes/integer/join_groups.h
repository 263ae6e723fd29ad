// Joins the groups of convolutions of integers whose constant weights make few output channels each:
//
//   quantized_conv2d(x, w [O,C/groups,..]) {groups}  ->  quantized_conv2d(x, w' [O,m C/groups,..]) {groups / m}
//
// with zeros in w' where a channel of the image was of another group. Kernels multiply blocks of 16 output channels: a
// group of 4 would leave three quarters of each block empty, and its weights could not be laid out beforehand. Sums are
// the same, to the bit. Only where the weights' zero point is 0, and never depthwise convolutions, which have kernels
// of their own.
#pragma once

#include "weft/device/backend.h"
#include "weft/graph/graph.h"

namespace weft::passes {

Graph join_groups(const Graph& graph, const Backend& backend);

}  // namespace weft::passes
