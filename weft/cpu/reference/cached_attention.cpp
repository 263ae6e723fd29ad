// Attention over cached keys and values.
#include <algorithm>
#include <limits>
#include <vector>

#include "weft/cpu/reference/reference.h"
#include "weft/cpu/reference/softmax_weights.h"

namespace weft::reference {
namespace {

/// The rows of `added` take their places in the cache from `position` on, as far as it goes.
void write_rows(const float* added, const float* before, float* cache, const Shape& rows, int64_t capacity,
                int64_t position) {
  const int64_t heads = rows[0] * rows[1], count = rows[2], width = rows[3];
  if (before != cache) std::copy(before, before + heads * capacity * width, cache);
  const int64_t kept = std::clamp<int64_t>(capacity - position, 0, count);
  for (int64_t head = 0; head < heads; ++head)
    std::copy_n(added + head * count * width, kept * width, cache + (head * capacity + position) * width);
}

/// softmax(scale * q keys^T) values over the first `seen` rows.
void attend(const float* q, const float* keys, const float* values, int64_t seen, int64_t width, double scale,
            float* y) {
  std::vector<double> weights(static_cast<size_t>(seen)), sums(static_cast<size_t>(width), 0.0);
  for (int64_t row = 0; row < seen; ++row)
    for (int64_t i = 0; i < width; ++i)
      weights[static_cast<size_t>(row)] +=
          static_cast<double>(q[i]) * static_cast<double>(keys[row * width + i]) * scale;
  const double total = make_softmax_weights(weights);
  for (int64_t row = 0; row < seen; ++row)
    for (int64_t i = 0; i < width; ++i)
      sums[static_cast<size_t>(i)] += weights[static_cast<size_t>(row)] * static_cast<double>(values[row * width + i]);
  for (int64_t i = 0; i < width; ++i) y[i] = static_cast<float>(sums[static_cast<size_t>(i)] / total);
}

Body prepare_cached_attention(const NodeSignature& node) {
  const Shape queries = node.inputs[0].shape;
  const int64_t capacity = node.inputs[3].shape[2];
  const double scale = node.attributes.real("scale");
  return [=](const KernelArguments& call) {
    // Before the cache there are no rows: nothing is written, and no query sees any. Behind it, however far, likewise.
    const int64_t given = *static_cast<const int64_t*>(call.inputs[5]);
    const int64_t position = given < 0 ? capacity : std::min(given, capacity);
    write_rows(input(call, 1), input(call, 3), output(call, 1), queries, capacity, position);
    write_rows(input(call, 2), input(call, 4), output(call, 2), queries, capacity, position);
    const int64_t count = queries[2], width = queries[3];
    for (int64_t row = 0; row < queries[0] * queries[1] * count; ++row) {
      const int64_t head = row / count, seen = position + row % count + 1;
      float* const y = output(call, 0) + row * width;
      if (seen > capacity)
        std::fill_n(y, width, std::numeric_limits<float>::quiet_NaN());
      else
        attend(input(call, 0) + row * width, output(call, 1) + head * capacity * width,
               output(call, 2) + head * capacity * width, seen, width, scale, y);
    }
  };
}

}  // namespace

void add_cached_attention(KernelTable& table) { add_plain(table, "cached_attention", prepare_cached_attention); }

}  // namespace weft::reference
