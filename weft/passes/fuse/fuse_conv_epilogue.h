// Lets convolutions of inference finish their results while the sums are in registers:
//
//   relu?(conv2d(x, w, b) + residual?)  ->  fused_conv2d(x, w, b, residual?) {activation}
//
// and the same with relu6 (a clip from 0 to 6). The sweep over memory that the addition or the activation would make is
// gone. Only convolutions by constant weights: a graph that is trained keeps what its gradients read. The sums must
// have no other reader, and the device must have kernels for the fused node. A convolution stays as it is where the
// workspace that it was granted gives it another kernel: Winograd's algorithm saves more. Of two convolutions that are
// added up the later one takes the other's result. The node stands where the last of its parts stood.
#pragma once

#include "weft/device/backend.h"
#include "weft/graph/graph.h"

namespace weft::passes {

Graph fuse_conv_epilogue(const Graph& graph, const Backend& backend);

}  // namespace weft::passes
