// Batches for training and evaluation, prepared ahead by worker threads: files of the batch after are asked for,
// samples decoded, augmented and laid into the batch, part by part, so that all workers make the batch that is needed
// next. Images become normalised f32; other samples are copied as they are. The content of a batch is a pure function
// of (data set, options, epoch, step): the number of workers, the timing and the step at which a run begins change
// nothing. Several loaders may share the batches: each makes other rows of what one alone would make.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "weft/data/augment/augment.h"
#include "weft/data/augment/mix_batch.h"
#include "weft/data/dataset/dataset.h"
#include "weft/data/load/batch_course.h"
#include "weft/tensor/tensor.h"

namespace weft::data {

struct LoaderOptions {
  int64_t batch = 128;        // of all shares together, as are those of the stages
  int share = 0, shares = 1;  // of the n rows of a batch those from share * n / shares on, as far as the next share's
  // Equal parts of a batch that are shared one after the other, as micro-batches are: a share has its rows of each.
  int64_t turns = 1;
  int64_t grains = 0;  // where shares may change: equal pieces of which a batch consists; a share has at least one
  uint64_t seed = 0;
  int workers = 1;         // threads; 0: batches are made inside next()
  bool automatic = false;  // no more of them work at a time than the steps need, by what both are measured to take
  int prefetch = 2;        // batches made ahead of the one in use
  bool shuffle = false;
  bool drop_last = false;             // leave out the incomplete batch at the end of an epoch
  AugmentOptions augment = {};        // of images; all off for evaluation
  MixOptions mix = {};                // of batches of images: targets become f32 (batch, classes)
  ChannelStatistics statistics = {};  // to normalise images with: those of the training set, for every split
  // Where batches or images change between epochs: `batch` is then not read. Images are resized before they are
  // augmented, whose pixels (crop_padding, cutout) shrink with them.
  std::vector<LoaderStage> stages = {};
};

/// Those of the options, or the one of all epochs.
std::vector<LoaderStage> stages_of(const LoaderOptions& options);

/// Consecutive ones of `of` equal pieces of a batch.
struct BatchPieces {
  int64_t begin = 0, end = 1, of = 1;
  /// Of a batch of `count` samples: the first row, and the one behind the last.
  std::pair<int64_t, int64_t> rows(int64_t count) const { return {count * begin / of, count * end / of}; }
};
/// Those of the share that the options name: of grains as many as its neighbours have, as far as they can be divided.
BatchPieces pieces_of(const LoaderOptions& options);

/// Rows of a batch of `count` samples that one of several shares has.
std::pair<int64_t, int64_t> rows_of_share(int64_t count, int share, int shares);

/// Where stages differ, next() hands out tensors that hold the largest batch of all: of another one the rows, without
/// gaps, stand at the beginning, and what follows them has no meaning. The same holds where shares may change.
struct Batch {
  Tensor samples;     // (rows, sample shape): f32, or i32 where samples are tokens; zeros from row `count` on
  Tensor targets;     // (rows, target shape) in the targets' type
  int64_t count = 0;  // samples in it; below the share of a whole batch only at the end of an epoch without drop_last,
                      // where it may be 0
  int64_t epoch = 0, step = 0;
};

/// The type in which samples come out: f32 for images, else their own.
inline DType batch_dtype(const DatasetInfo& info) {
  return info.sample_dtype == DType::u8 ? DType::f32 : info.sample_dtype;
}

class Loader {
 public:
  /// Keeps a reference to the data set. Error(usage) for options that make no sense.
  Loader(const Dataset& dataset, LoaderOptions options);
  /// Stops the workers and waits for them.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Of the first epoch, and of those like it.
  int64_t steps_per_epoch() const;
  const Dataset& dataset() const;

  /// Begins (or begins anew) at a step of an epoch; later epochs follow without a gap up to, not including, stop_epoch.
  void start(int64_t epoch = 0, int64_t step = 0, int64_t stop_epoch = std::numeric_limits<int64_t>::max());
  /// The next batch in order; valid until the next call of next() or start(). Allocates nothing.
  /// An error of a worker comes out here. Error(internal) before start() and past stop_epoch.
  const Batch& next();

  /// From the next start() on, the rows are those of so many grains from `first` on.
  void set_share(int64_t first, int64_t grains);
  /// The same from the batch on that next() hands out after `later` others. Every batch before has the rows that were
  /// ordered before. Call it after next(). Error(internal) for fewer `later` than batches_ahead(), or while another
  /// change is still to come.
  void change_share(int64_t first, int64_t grains, int64_t later);
  /// So many batches may be under way after the one that next() handed out last.
  int64_t batches_ahead() const;

  /// The batch of (epoch, step), made here and now: what next() hands out there.
  Batch load_batch(int64_t epoch, int64_t step) const;

  /// One sample as an epoch sees it, made here and now: f32, or as the data set has it.
  Tensor load_sample(int64_t index, int64_t epoch) const;

  /// How long next() has waited for the workers, since construction.
  double wait_seconds() const;
  /// How many workers work at a time now.
  int active_workers() const;
  /// Those that are needed so that steps of `step_seconds` do not wait for batches that take a worker `batch_seconds`.
  static int needed_workers(double batch_seconds, double step_seconds, int most);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::data
