// What one call of the attention loops computes, and the scratch memory that it takes.
#pragma once

#include <cstdint>

namespace weft::native {

/// Rows of queries and keys that are worked on at a time: their scores stay in a near cache.
inline constexpr int64_t kQueryTile = 64;
inline constexpr int64_t kKeyTile = 128;

/// Some queries of one head. T: what lies in memory.
template <typename T>
struct AttentionTask {
  const T *q, *k, *v;  // q: the first of these queries; k and v: all of the head
  const T* mask;       // of the first of these queries; null: none
  T* output;           // of the first of these queries
  int64_t rows;        // queries of this task, at most kQueryTile
  int64_t keys, width, value_width;
  int64_t visible;          // keys that the first of these queries sees; the next one sees one more
  int64_t mask_row_stride;  // 0: one row for all queries
  bool transpose_k;         // k is [keys,width]; else [width,keys]
  float scale;
};

/// Columns of the values with what fills them up to whole vectors.
inline int64_t padded_value_width(int64_t value_width) { return (value_width + 31) / 32 * 32; }

/// In floats: queries, keys, scores, values, sums, and two numbers of each query.
inline int64_t attention_scratch(int64_t width, int64_t value_width) {
  const int64_t padded = padded_value_width(value_width);
  return kQueryTile * width + width * kKeyTile + kQueryTile * kKeyTile + kKeyTile * padded + kQueryTile * padded +
         2 * kQueryTile;
}

}  // namespace weft::native
