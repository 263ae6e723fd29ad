// The loops of Winograd's minimal filtering F(2x2, 3x3) on AVX512_BF16 (Lavin & Gray 2016): a tile of 4 x 4 pixels and
// a filter become 16 numbers each, whose products become 2 x 2 results: 16 multiplications in place of 36. In all three
// directions of a convolution the sums over channels or tiles are 16 matrix products, one for each of those numbers.
//
// Images lie in blocks of 16 channels, [blocks][rows][columns][16] each. Transforms compute in f32 and round to bf16
// once; products are summed in f32.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define WEFT_WINOGRAD  // the loops are compiled
#endif

namespace weft::native::winograd {

constexpr int64_t kLanes = 16;     // channels of a block
constexpr int64_t kMatrices = 16;  // numbers of a transformed tile
constexpr int64_t kRows = 12;      // tiles that a block of products has
constexpr int64_t kWide = 4;       // blocks of channels that a panel of outputs has at most

/// Neighbouring tiles of one row of tiles, in one block of channels of one image.
struct Strip {
  int64_t rows, columns;  // of the image
  int64_t row, column;    // of the first tile's corner; outside of the image are zeros
  int64_t tiles;
};

/// Where transformed tiles go: tile t, matrix m at data + m * matrix + t * tile.
struct Tiles {
  uint16_t* data;
  int64_t matrix, tile;
};

/// Where pairs of transformed tiles go, of each channel the first tile's number before the second's: tile t, matrix m
/// at data + m * matrix + (t / 2) * pair + t % 2.
struct TilePairs {
  uint16_t* data;
  int64_t matrix, pair;
  int64_t first;  // t of the first tile
};

/// B^T d B of tiles of 4 x 4 pixels, two apart.
void transform_input(const uint16_t* image, const Strip& strip, const Tiles& tiles);
void transform_input_pairs(const uint16_t* image, const Strip& strip, const TilePairs& tiles);
/// A y A^T of tiles of 2 x 2 pixels; adds to sums[channel] all pixels.
void transform_gradient_pairs(const uint16_t* image, const Strip& strip, const TilePairs& tiles, float* sums);
/// G g G^T of the taps [9][16 outputs][2 inputs] of filters: matrix m at result + m * matrix, [16 outputs][2 inputs].
void transform_filters(const uint16_t* taps, uint16_t* result, int64_t matrix);

/// The products of kRows tiles with a panel of `blocks` blocks of outputs: result[kRows][blocks * 16].
/// tiles: [kRows][channels]; panel: [channels / 2][blocks * 16][2].
void multiply(int64_t blocks, int64_t channels, const uint16_t* tiles, const uint16_t* panel, float* result);
/// A^T m A: from the products of one tile and a block of outputs, `matrix` apart, up to 2 x 2 pixels at `row`, `column`
/// of an image of the strip's size.
void transform_output(const float* products, int64_t matrix, const float* bias, uint16_t* image, const Strip& strip);

/// Adds to sums [16 inputs][blocks * 16] the products of pairs of tiles, inputs [pairs][16][2] with outputs' gradients
/// [pairs][blocks * 16][2].
void add_products(int64_t blocks, int64_t pairs, const uint16_t* inputs, const uint16_t* gradients, float* sums);
/// G^T s G of the sums of one input and a block of outputs, `matrix` apart: taps [9][16 outputs].
void inverse_filters(const float* sums, int64_t matrix, float* taps);

}  // namespace weft::native::winograd
