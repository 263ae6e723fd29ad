// The innermost loops of products of integers: a few rows of unsigned bytes by columns of signed bytes, exact sums in
// i32, which wrap around. Columns stand in blocks of 16, each [inner / 4][16][4]: four neighbours of the inner
// dimension are multiplied and added at a time, by vpdpbusd where the processor has it (AVX512_VNNI), else in 16 bits
// by vpmaddwd, where nothing saturates.
#pragma once

#include <cstdint>

#include "weft/base/isa.h"

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
};

using MultiplyTile = void (*)(const IntegerTile&);

/// The fastest that this instruction set has; with `may_use_vnni` vpdpbusd where the processor has that.
MultiplyTile multiply_tile_for(Isa isa, bool may_use_vnni);
/// Null where this processor has no such instruction.
MultiplyTile vnni_multiply_tile();

}  // namespace weft::native
