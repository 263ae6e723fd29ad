// The loops of the weights' gradient of convolutions in bf16, for processors with AVX512_BF16; elsewhere they must not
// be called. One instruction, vdpbf16ps, multiplies 32 pairs of numbers and adds two products to each of 16 sums in
// f32, so the sum over positions is taken over pairs of positions.
#pragma once

#include <cstdint>

#include "weft/cpu/native/support/stored_type.h"

namespace weft::native {

constexpr int64_t kChannelBlock = 16;  // of images in aBcd16b
constexpr int64_t kTileChannels = 8;   // of the image; times up to two blocks of the gradient's: 16 registers of sums

/// Two numbers of each channel of a block, for all that lie in a row of a plane.
struct PackedRow {
  const Bf16* plane_row;  // columns one after the other, a block of channels each; null: all zeros
  int64_t columns;
  int64_t first;         // column of the first number of the first pair; what lies outside the row is 0
  int64_t step;          // columns from one pair to the next
  int64_t distance;      // columns from the first number of a pair to the second
  int64_t second_count;  // pairs that have a second number; those of the others are 0
  int64_t pairs;
  uint32_t* packed;  // [pairs][kChannelBlock]
};

/// kTileChannels channels of the image by one or two blocks of the gradient's, for one tap of the kernel.
struct WeightTile {
  const uint32_t* image;        // pairs; those of a position stand beside those of the next one
  const uint32_t* gradient;     // of the first block
  int64_t gradient_block;       // from one block to the next; all distances in numbers of their array
  int64_t blocks;               // 1 or 2
  int64_t images, rows, pairs;  // sums run over all of them
  int64_t image_image, image_row, image_pair;
  int64_t gradient_image;  // rows follow each other
  float* sums;
  const int64_t* channel_offsets;  // of the tile's channels from `sums`
  int64_t block_offset;            // of the second block
  bool is_first;                   // the sums start from 0
};

struct Bf16Loops {
  void (*pack)(const PackedRow&);
  void (*multiply)(const WeightTile&);
};

/// Null where this processor has no such instruction.
const Bf16Loops* bf16_loops();

}  // namespace weft::native
