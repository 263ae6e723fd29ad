// weft's own kernels beside oneDNN's, on the operands that occur when resnet50, resnet9 and transformer_lm are
// trained and used, and in the average pooling of densenet121.
#pragma once

namespace weft::benchmarks {

/// Prints a table with one row per op; with `each_shape`, before it, one line per node.
void compare_kernels(int threads, bool each_shape);

}  // namespace weft::benchmarks
