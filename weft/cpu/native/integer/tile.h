// The innermost loops of products of integers: a few rows of unsigned bytes by columns of signed bytes, exact sums in
// i32, which wrap around. Columns stand in blocks of 16, each [inner / 4][16][4]: four neighbours of the inner
// dimension are multiplied and added at a time, by vpdpbusd where the processor has it (AVX512_VNNI), else in 16 bits
// by vpmaddwd, where nothing saturates. AVX2 multiplies bytes by vpmaddubsw where columns are narrow: -64 to 64, of
// which no two products saturate.
#pragma once

#include <cstdint>

#include "weft/base/isa.h"
#include "weft/ops/integer/requantization.h"

namespace weft::native {

constexpr int64_t kColumnBlock = 16;
constexpr int64_t kInnerGroup = 4;
constexpr int64_t kGroupBytes = kColumnBlock * kInnerGroup;
constexpr int64_t kTileRows = 12;
constexpr int64_t kTileBlocks = 4;
constexpr int64_t kTileColumns = kTileBlocks * kColumnBlock;

struct IntegerTile {
  const uint8_t* a;  // row r begins at a + r * a_row
  int64_t a_row;
  const uint8_t* b;  // of the first block
  int64_t b_block;   // bytes from one block to the next
  int64_t groups;    // of the inner dimension: its size / 4
  int64_t rows;      // 1 to kTileRows
  int64_t blocks;    // 1 to kTileBlocks
  bool flips_b;      // b holds unsigned bytes: 128 is taken off each
  int32_t* sums;     // [rows][kTileColumns], written over
  // Of vnni_multiply_tile() and vnni_finish_tile() alone: where rows begin, in place of a and a_row; null: as these
  // say.
  const uint8_t* const* row_starts = nullptr;
  // A row in pieces of `groups` groups each, at these offsets from its start; null: one piece.
  const int64_t* pieces = nullptr;
  int64_t piece_count = 1;
};

using MultiplyTile = void (*)(const IntegerTile&);

/// What becomes of a tile's sums while they are in registers: integers of 8 bits by weft/ops/integer/requantization.h,
/// of the kind `real`. The arrays have numbers for all columns of the tile's blocks.
struct TileEnd {
  const int32_t* added;  // to each column's sum
  const float* factors;  // of each column
  int32_t zero_point;
  ops::IntegerRange range;
  bool is_signed;  // the result is i8, else u8
  uint8_t* to;     // row r begins at to + r * to_row
  int64_t to_row;
  int64_t columns;  // that are written, 1 to kTileColumns
};

using FinishTile = void (*)(const IntegerTile&, const TileEnd&);

/// For narrow columns of signed bytes. Null, both, where the instruction set has nothing faster for them.
struct NarrowColumns {
  MultiplyTile multiply;
  bool (*are_narrow)(const uint8_t* columns, int64_t count);
};
NarrowColumns narrow_columns_for(Isa isa);

/// The fastest that this instruction set has; with `may_use_vnni` vpdpbusd where the processor has that.
MultiplyTile multiply_tile_for(Isa isa, bool may_use_vnni);
/// Null where this processor has no such instruction.
MultiplyTile vnni_multiply_tile();
/// As that, without leaving the sums in memory: `sums` is not read. Null likewise.
FinishTile vnni_finish_tile();

}  // namespace weft::native
