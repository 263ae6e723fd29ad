// How batches lie in the epochs of a run: their size, and that of their images, may change from one epoch to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/tensor/shape.h"

namespace weft::data {

/// What holds from an epoch on.
struct LoaderStage {
  int64_t first_epoch = 0;
  int64_t batch = 1;         // samples
  int64_t image_height = 0;  // pixels, the width in proportion; 0: as the data set has them
};

/// Images (C,H,W) of this height, of the same proportions; for 0 the shape itself.
Shape scaled_shape(const Shape& sample, int64_t height);

class BatchCourse {
 public:
  /// Stages in the order of their epochs, the first from epoch 0 on. With `whole_only` the samples that do not fill a
  /// batch at the end of an epoch are left out.
  BatchCourse(int64_t samples, bool whole_only, const std::vector<LoaderStage>& stages);

  /// The index of the stage that an epoch belongs to.
  size_t stage_of(int64_t epoch) const;
  /// Batches of an epoch.
  int64_t batches_of(int64_t epoch) const { return parts_[stage_of(epoch)].batches; }
  /// Batches of all epochs before; the greatest number there is where they are more.
  int64_t batches_before(int64_t epoch) const;

  struct Place {
    int64_t epoch = 0, batch = 0;
  };
  /// Of a batch, counted over all epochs.
  Place place_of(int64_t batch) const;

 private:
  struct Part {
    int64_t first_epoch = 0, first_batch = 0, batches = 0;  // the last: of an epoch
  };
  std::vector<Part> parts_;
};

}  // namespace weft::data
