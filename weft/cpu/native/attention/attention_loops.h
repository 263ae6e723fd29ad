// Attention of one tile of queries over all keys, tile by tile, with the softmax of what has been seen so far
// (FlashAttention: Dao et al. 2022, algorithm 1); compiled per instruction set (multiversion.h).

#include "weft/cpu/native/support/vector_math.h"

/// Rows of a product that are computed at a time: with two vectors of columns as many sums as registers hold.
constexpr int64_t kRowsAtATime = kLanes == 16 ? 8 : 4;

/// c[kRowsAtATime][vectors] = (or +=) a[kRowsAtATime][depth] * b[depth][vectors].
template <bool adds, int64_t vectors>
WEFT_INLINE void multiply_block(const float* a, int64_t a_stride, const float* b, int64_t b_stride, float* c,
                                int64_t c_stride, int64_t depth) {
  FloatVector sums[kRowsAtATime][vectors];
  for (int64_t row = 0; row < kRowsAtATime; ++row)
    for (int64_t part = 0; part < vectors; ++part)
      sums[row][part] = adds ? load<FloatVector>(c + row * c_stride + part * kLanes) : FloatVector{};
  for (int64_t at = 0; at < depth; ++at) {
    FloatVector columns[vectors];
    for (int64_t part = 0; part < vectors; ++part) columns[part] = load<FloatVector>(b + at * b_stride + part * kLanes);
#pragma GCC unroll 8
    for (int64_t row = 0; row < kRowsAtATime; ++row) {
      const float factor = a[row * a_stride + at];
      for (int64_t part = 0; part < vectors; ++part) sums[row][part] += factor * columns[part];
    }
  }
  for (int64_t row = 0; row < kRowsAtATime; ++row)
    for (int64_t part = 0; part < vectors; ++part) store(c + row * c_stride + part * kLanes, sums[row][part]);
}

/// The same of any whole number of such rows, and of vectors of columns. One copy for all stored types.
template <bool adds>
[[gnu::noinline]] void multiply(const float* a, int64_t a_stride, const float* b, int64_t b_stride, float* c,
                                int64_t c_stride, int64_t rows, int64_t columns, int64_t depth) {
  int64_t column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes)
    for (int64_t row = 0; row < rows; row += kRowsAtATime)
      multiply_block<adds, 2>(a + row * a_stride, a_stride, b + column, b_stride, c + row * c_stride + column, c_stride,
                              depth);
  for (int64_t row = 0; column < columns && row < rows; row += kRowsAtATime)
    multiply_block<adds, 1>(a + row * a_stride, a_stride, b + column, b_stride, c + row * c_stride + column, c_stride,
                            depth);
}

/// to[column][row] = from[row][column] of four rows and `columns` columns.
template <typename T>
WEFT_INLINE void transpose_four(const T* from, int64_t from_stride, float* to, int64_t to_stride, int64_t columns) {
  int64_t column = 0;
  for (; column + 4 <= columns; column += 4) {
    const FloatVector4 a = load<FloatVector4>(from + column), b = load<FloatVector4>(from + from_stride + column);
    const FloatVector4 c = load<FloatVector4>(from + 2 * from_stride + column);
    const FloatVector4 d = load<FloatVector4>(from + 3 * from_stride + column);
    const FloatVector4 low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                       high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const FloatVector4 low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                       high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store(to + column * to_stride, FloatVector4(__builtin_shufflevector(low, low2, 0, 1, 4, 5)));
    store(to + (column + 1) * to_stride, FloatVector4(__builtin_shufflevector(low, low2, 2, 3, 6, 7)));
    store(to + (column + 2) * to_stride, FloatVector4(__builtin_shufflevector(high, high2, 0, 1, 4, 5)));
    store(to + (column + 3) * to_stride, FloatVector4(__builtin_shufflevector(high, high2, 2, 3, 6, 7)));
  }
  for (; column < columns; ++column)
    for (int64_t row = 0; row < 4; ++row) to[column * to_stride + row] = load<float>(from + row * from_stride + column);
}

/// `count` numbers in f32, the rest of the row zero.
template <typename T>
WEFT_INLINE void widen_row(const T* from, int64_t count, float* to, int64_t padded) {
  for_each_lane_group(count, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    store<V>(to + at, load<V>(from + at));
  });
  for (int64_t at = count; at < padded; ++at) to[at] = 0;
}

/// Whole vectors that hold so many numbers.
WEFT_INLINE int64_t padded_columns(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

/// Keys `first` to `first + count` as columns [width][kKeyTile], zeros behind them up to the next whole vector.
template <typename T>
WEFT_INLINE void pack_keys(const AttentionTask<T>& task, int64_t first, int64_t count, float* packed) {
  if (!task.transpose_k) {
    for (int64_t at = 0; at < task.width; ++at)
      widen_row(task.k + at * task.keys + first, count, packed + at * kKeyTile, padded_columns(count));
    return;
  }
  const T* rows = task.k + first * task.width;
  int64_t key = 0;
  for (; key + 4 <= count; key += 4)
    transpose_four(rows + key * task.width, task.width, packed + key, kKeyTile, task.width);
  for (; key < padded_columns(count); ++key)
    for (int64_t at = 0; at < task.width; ++at)
      packed[at * kKeyTile + key] = key < count ? load<float>(rows + key * task.width + at) : 0.0f;
}

/// Values `first` to `first + count` in f32 as rows of whole vectors: where they lie, or copied.
template <typename T>
WEFT_INLINE const float* values_of(const AttentionTask<T>& task, int64_t first, int64_t count, float* copied) {
  const int64_t padded = padded_value_width(task.value_width);
  if constexpr (std::is_same_v<T, float>)
    if (padded == task.value_width) return task.v + first * task.value_width;
  for (int64_t key = 0; key < count; ++key)
    widen_row(task.v + (first + key) * task.value_width, task.value_width, copied + key * padded, padded);
  return copied;
}

/// The largest of some scores and `best`.
WEFT_INLINE float largest_score(const float* x, int64_t count, float best) {
  FloatVector vector = FloatVector{} + best;
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    const FloatVector next = load<FloatVector>(x + at);
    vector = next > vector ? next : vector;
  }
  best = across_lanes(vector, [](auto a, auto b) { return a > b ? a : b; });
  for (; at < count; ++at) best = x[at] > best ? x[at] : best;
  return best;
}

/// What a query has seen: its largest score, and the sum of the powers of all, relative to that.
struct Seen {
  float *top, *sum;
};

/// Scores of a query become powers relative to the largest one so far, by which its `padded` sums are corrected. One
/// copy for all stored types.
[[gnu::noinline]] void take_row(float* x, int64_t visible, float* sums, int64_t padded, float* seen_top,
                                float* seen_sum) {
  const float top = largest_score(x, visible, *seen_top);
  // Where all are masked by minus infinity, their powers are 0 and not those of infinity minus infinity.
  const float shift = top < -3.4e38f ? 0.0f : top;
#pragma omp simd
  for (int64_t at = 0; at < visible; ++at) x[at] = exp_of(x[at] - shift);
  LaneSum sum;
  for_each_lane_group(visible, [&](auto lane, int64_t at) { sum.add(load<decltype(lane)>(x + at)); });
  const float correction = exp_of(*seen_top - shift);
  *seen_sum = *seen_sum * correction + sum.total();
  if (top > *seen_top)
    for (int64_t at = 0; at < padded; ++at) sums[at] *= correction;
  *seen_top = top;
}

template <typename T>
WEFT_INLINE void take_scores(const AttentionTask<T>& task, int64_t first, int64_t count, float* scores, float* sums,
                             int64_t padded, Seen seen) {
  for (int64_t row = 0; row < task.rows; ++row) {
    float* x = scores + row * kKeyTile;
    const int64_t visible = std::min(count, task.visible + row - first);
    for (int64_t at = std::max<int64_t>(visible, 0); at < count; ++at) x[at] = 0;
    if (visible <= 0) continue;
    if (task.mask != nullptr) {
      const T* mask = task.mask + row * task.mask_row_stride + first;
      for (int64_t at = 0; at < visible; ++at) x[at] += load<float>(mask + at);
    }
    take_row(x, visible, sums + row * padded, padded, seen.top + row, seen.sum + row);
  }
}

/// `scratch` holds attention_scratch() floats.
template <typename T>
void attend(const AttentionTask<T>& task, float* scratch) {
  const int64_t padded = padded_value_width(task.value_width);
  const int64_t rows = (task.rows + kRowsAtATime - 1) / kRowsAtATime * kRowsAtATime;
  float* queries = scratch;
  float* keys = queries + kQueryTile * task.width;
  float* scores = keys + task.width * kKeyTile;
  float* values = scores + kQueryTile * kKeyTile;
  float* sums = values + kKeyTile * padded;
  const Seen seen{sums + kQueryTile * padded, sums + kQueryTile * padded + kQueryTile};
  const int64_t own = task.rows * task.width;
  for_each_lane_group(own, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    store<V>(queries + at, load<V>(task.q + at) * task.scale);
  });
  for (int64_t at = own; at < rows * task.width; ++at) queries[at] = 0;
  for (int64_t at = 0; at < rows * padded; ++at) sums[at] = 0;
  for (int64_t row = 0; row < rows; ++row) seen.top[row] = -std::numeric_limits<float>::infinity(), seen.sum[row] = 0;

  const int64_t last = std::min(task.keys, task.visible + task.rows - 1);  // behind the keys that any query sees
  for (int64_t first = 0; first < last; first += kKeyTile) {
    const int64_t count = std::min(kKeyTile, last - first);
    pack_keys(task, first, count, keys);
    multiply<false>(queries, task.width, keys, kKeyTile, scores, kKeyTile, rows, padded_columns(count), task.width);
    take_scores(task, first, count, scores, sums, padded, seen);
    for (int64_t row = task.rows; row < rows; ++row)
      for (int64_t at = 0; at < count; ++at) scores[row * kKeyTile + at] = 0;
    multiply<true>(scores, kKeyTile, values_of(task, first, count, values), padded, sums, padded, rows, padded, count);
  }
  for (int64_t row = 0; row < task.rows; ++row) {
    const float factor = 1.0f / seen.sum[row];
    T* to = task.output + row * task.value_width;
    for_each_lane_group(task.value_width, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      store<V>(to + at, load<V>(sums + row * padded + at) * factor);
    });
  }
}

template <typename T>
constexpr Loops<T> loops{attend<T>};
