// Batches for training and evaluation, prepared ahead by worker threads.
// The content of a batch is a pure function of (data set, options, epoch, step): the number of workers, the timing and
// the step at which a run begins change nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "weft/data/augment.h"
#include "weft/data/dataset.h"
#include "weft/tensor/tensor.h"

namespace weft::data {

struct LoaderOptions {
  int64_t batch = 128;
  uint64_t seed = 0;
  int workers = 1;   // threads; 0: batches are made inside next()
  int prefetch = 2;  // batches made ahead of the one in use
  bool shuffle = false;
  bool drop_last = false;        // leave out the incomplete batch at the end of an epoch
  AugmentOptions augment;        // all off for evaluation
  ChannelStatistics statistics;  // to normalise with: those of the training set, for every split
};

struct Batch {
  Tensor images;      // f32 (batch,C,H,W); rows from `count` on are zeros
  Tensor labels;      // i32 (batch)
  int64_t count = 0;  // samples in it; below `batch` only at the end of an epoch without drop_last
  int64_t epoch = 0, step = 0;
};

class Loader {
 public:
  /// Keeps a reference to the data set. Error(usage) for options that make no sense.
  Loader(const Dataset& dataset, LoaderOptions options);
  /// Stops the workers and waits for them.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t steps_per_epoch() const;

  /// Begins (or begins anew) at a step of an epoch; later epochs follow without a gap up to, not including, stop_epoch.
  void start(int64_t epoch = 0, int64_t step = 0, int64_t stop_epoch = std::numeric_limits<int64_t>::max());
  /// The next batch in order; valid until the next call of next() or start(). Allocates nothing.
  /// An error of a worker comes out here. Error(internal) before start() and past stop_epoch.
  const Batch& next();

  /// The batch of (epoch, step), made here and now: what next() hands out there.
  Batch load_batch(int64_t epoch, int64_t step) const;

  /// How long next() has waited for the workers, since construction.
  double wait_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::data
