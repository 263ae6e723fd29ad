// How images are cut into tiles for Winograd's filtering, and which convolutions it is offered for.
#pragma once

#include <algorithm>
#include <string>

#include "weft/base/isa.h"
#include "weft/cpu/native/convolution/winograd_loops.h"
#include "weft/graph/graph.h"

namespace weft::native::winograd {

constexpr int64_t kApart = 64;  // numbers between matrices: powers of two would all fall into the same cache sets

/// Images of [N, channels, rows, columns] in blocks of 16 channels.
struct Planes {
  int64_t rows, columns, blocks;
  explicit Planes(const Shape& shape) : rows(shape[2]), columns(shape[3]), blocks((shape[1] + kLanes - 1) / kLanes) {}
  int64_t offset(int64_t image, int64_t block) const { return (image * blocks + block) * rows * columns * kLanes; }
};

inline int64_t padded_channels(const Shape& shape) { return (shape[1] + kLanes - 1) / kLanes * kLanes; }

/// Neighbouring tiles in a row of tiles of one image.
struct TileStrip {
  int64_t image, row, column, tiles;
  int64_t first;  // of all tiles of all images
};

/// Tiles of 2 x 2 pixels over images, one image after the other, row by row.
class Tiling {
 public:
  explicit Tiling(const Shape& images)
      : images_(images[0]), rows_((images[2] + 1) / 2), columns_((images[3] + 1) / 2) {}
  int64_t tiles() const { return images_ * rows_ * columns_; }

  /// Calls visit(TileStrip) for the tiles from `first` to `last`, in order.
  template <typename Visit>
  void for_strips(int64_t first, int64_t last, Visit&& visit) const {
    for (int64_t at = first; at < last;) {
      const int64_t line = at / columns_, column = at % columns_, tiles = std::min(columns_ - column, last - at);
      visit(TileStrip{line / rows_, line % rows_, column, tiles, at});
      at += tiles;
    }
  }

 private:
  int64_t images_, rows_, columns_;
};

/// Rows (0) or columns (1) by which the first tile of the inputs begins outside of them.
int64_t tile_padding(const NodeSignature& node, size_t axis);

/// Empty for a convolution of `inputs` to `outputs`, both images, that these kernels can do and were measured to do
/// faster than oneDNN.
std::string why_no_winograd(const NodeSignature& node, Isa isa, const Shape& weights, const TensorType& inputs,
                            const TensorType& outputs);

}  // namespace weft::native::winograd
