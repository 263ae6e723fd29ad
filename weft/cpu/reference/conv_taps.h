// Which outputs of a convolution one tap of its kernel serves along one axis. So the reference kernels go through rows
// of outputs, tap by tap: each output still adds its products in the order of the definition.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::reference {

/// Outputs [first, end) along one axis; output `at` reads the input at `at * stride + offset`, which lies inside.
struct TapReach {
  int64_t first, end, stride, offset;

  /// Tap `tap` of a kernel, for `outputs` outputs and `inputs` inputs along the axis.
  TapReach(int64_t outputs, int64_t inputs, int64_t output_stride, int64_t padding, int64_t dilation, int64_t tap)
      : stride(output_stride), offset(tap * dilation - padding) {
    first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    end = offset >= inputs ? 0 : std::min(outputs, (inputs - 1 - offset) / stride + 1);
  }
  int64_t source(int64_t output) const { return output * stride + offset; }
  bool serves(int64_t output) const { return output >= first && output < end; }
};

}  // namespace weft::reference
