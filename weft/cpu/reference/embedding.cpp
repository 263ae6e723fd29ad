// Rows of a table picked by index, and the sum of gradients per row.
#include <algorithm>
#include <limits>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

Body prepare_embedding(const NodeSignature& node) {
  const int64_t rows = node.inputs[0].shape[0], width = node.inputs[0].shape[1];
  const int64_t count = node.inputs[1].elements();
  const bool is_part = node.inputs.size() > 2;
  return [=](const KernelArguments& call) {
    const int32_t* indices = input<int32_t>(call, 1);
    const int64_t first = is_part ? *input<int64_t>(call, 2) * rows : 0;
    for (int64_t i = 0; i < count; ++i) {
      float* out = output(call, 0) + i * width;
      const int64_t row = indices[i] - first;
      if (row >= 0 && row < rows)
        std::copy_n(input(call, 0) + row * width, width, out);
      else  // no such row: NaN, which shows in the loss
        std::fill_n(out, width, is_part && indices[i] >= 0 ? 0.0f : std::numeric_limits<float>::quiet_NaN());
    }
  };
}

Body prepare_embedding_backward(const NodeSignature& node) {
  const int64_t rows = node.outputs[0].shape[0], width = node.outputs[0].shape[1];
  const int64_t count = node.inputs[1].elements();
  const bool is_part = node.inputs.size() > 2;
  return [=](const KernelArguments& call) {
    const int64_t first = is_part ? *input<int64_t>(call, 2) * rows : 0;
    const float* gradient = input(call, 0);
    const int32_t* indices = input<int32_t>(call, 1);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t d = 0; d < width; ++d) {
        double sum = 0;
        for (int64_t i = 0; i < count; ++i)
          if (indices[i] == first + row) sum += static_cast<double>(gradient[i * width + d]);
        output(call, 0)[row * width + d] = static_cast<float>(sum);
      }
  };
}

}  // namespace

void add_embedding(KernelTable& table) {
  add_plain(table, "embedding", prepare_embedding);
  add_plain(table, "embedding_backward", prepare_embedding_backward);
}

}  // namespace weft::reference
