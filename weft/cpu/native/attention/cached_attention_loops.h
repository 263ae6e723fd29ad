// Attention of one query over the first rows of a cache; compiled per instruction set (multiversion.h).

#include "weft/cpu/native/support/vector_math.h"

/// The sum of a[i] * b[i].
WEFT_INLINE float dot(const float* a, const float* b, int64_t count) {
  LaneSum sum;
  for_each_lane_group(count, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    sum.add(load<V>(a + at) * load<V>(b + at));
  });
  return sum.total();
}

/// y = softmax(scale * q keys^T) values over the first `seen` rows of `width` numbers; `weights` holds as many numbers.
void attend(const float* q, const float* keys, const float* values, int64_t seen, int64_t width, float scale,
            float* weights, float* y) {
  float top = -std::numeric_limits<float>::infinity();
  for (int64_t row = 0; row < seen; ++row) {
    const float score = dot(q, keys + row * width, width) * scale;
    weights[row] = score;
    top = score > top ? score : top;
  }
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t row = 0; row < seen; ++row) {
    const float weight = exp_of(weights[row] - top);
    weights[row] = weight;
    total += weight;
  }
  const float factor = 1.0f / total;
  for_each_lane_group(width, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    V even = zero<V>(), odd = zero<V>();  // two sums, so that one addition need not wait for the one before
    int64_t row = 0;
    for (; row + 2 <= seen; row += 2) {
      even += load<V>(values + row * width + at) * weights[row];
      odd += load<V>(values + (row + 1) * width + at) * weights[row + 1];
    }
    if (row < seen) even += load<V>(values + row * width + at) * weights[row];
    store<V>(y + at, (even + odd) * factor);
  });
}

constexpr Loops loops{attend};
