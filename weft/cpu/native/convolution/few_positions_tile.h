// The innermost loop of convolutions with few positions: rows of an image by columns of the weights, in f32 on AVX-512.
#pragma once

#include <cstdint>

namespace weft::native {

constexpr int64_t kPositionColumns = 64;  // of a tile: four vectors
constexpr int64_t kPositionRows = 6;

struct PositionTile {
  const float* const* rows;  // where each row begins
  int64_t row_count;         // 1 to kPositionRows
  const int64_t* pieces;     // of 16 numbers each: where they begin in a row
  int64_t piece_count;
  const float* columns;  // [4] blocks of [piece_count][16][16 columns]
  int64_t column_block;  // floats from one block of 16 columns to the next
  float* sums;           // [row_count][64]
  bool adds;             // to what stands there; else it is written over
};

/// What becomes of the sums of 64 columns at one position: plus bias, plus residual, activation.
struct PositionEnd {
  const float* sums;      // [64]
  const float* bias;      // [64]
  const float* residual;  // null: none; the same block distance as `to`
  float* to;              // 16 of each block side by side
  int64_t block;          // floats from one block to the next
  float most;             // of the activation: infinity, or 6
  bool rectifies;
};

struct PositionLoops {
  void (*multiply)(const PositionTile&);
  void (*finish)(const PositionEnd&);
};

/// Null where this is not compiled.
const PositionLoops* position_loops();

}  // namespace weft::native
