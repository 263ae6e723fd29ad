// How batches lie in the epochs of a run: their size, and that of their images, may change from one epoch to the next,
// or within one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/tensor/shape.h"

namespace weft::data {

/// What holds from an epoch, or a part of one, on.
struct LoaderStage {
  int64_t first_epoch = 0;
  int64_t batch = 1;         // samples
  int64_t image_height = 0;  // pixels, the width in proportion; 0: as the data set has them
  double first_part = 0;     // of its first epoch: the share of the samples that comes before, from 0 to below 1
  int64_t accumulate = 1;    // batches of a step: within an epoch stages change between steps
};

/// Images (C,H,W) of this height, of the same proportions; for 0 the shape itself.
Shape scaled_shape(const Shape& sample, int64_t height);

class BatchCourse {
 public:
  /// Epochs that are alike, or a part of one epoch.
  struct Piece {
    size_t stage = 0;
    int64_t first_epoch = 0;
    int64_t first_sample = 0;    // in the epoch; above 0 only in a part of one
    int64_t batches = 0;         // per epoch
    int64_t first_in_epoch = 0;  // batches of the epoch before it
    int64_t first_batch = 0;     // counted over all epochs
    bool ends_within = false;    // whether the epoch goes on behind it
  };

  /// Stages in their order, the first from epoch 0 on. With `whole_only` the samples that do not fill a batch at the
  /// end of an epoch are left out. Where a stage ends within an epoch it takes the number of whole steps that comes
  /// nearest to its end, at least one where there are samples for it.
  BatchCourse(int64_t samples, bool whole_only, const std::vector<LoaderStage>& stages);

  /// In their order; the last one has no end.
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// The piece of a batch of an epoch; of a batch behind the epoch's last one, the last piece.
  const Piece& piece_of(int64_t epoch, int64_t batch) const;
  /// Batches of an epoch.
  int64_t batches_of(int64_t epoch) const;
  /// Batches of all epochs before; the greatest number there is where they are more.
  int64_t batches_before(int64_t epoch) const;

  struct Place {
    int64_t epoch = 0, batch = 0;
  };
  /// Of a batch, counted over all epochs.
  Place place_of(int64_t batch) const;

 private:
  std::vector<Piece> pieces_;
};

}  // namespace weft::data
