// What batches hold: the samples of a step of an epoch, read, decoded, augmented and normalised, row by row. Rows of
// one batch may be made by several threads at once.
#pragma once

#include <optional>
#include <vector>

#include "weft/data/dataset/permutation.h"
#include "weft/data/load/loader.h"

namespace weft::data {

/// A batch with what must be known of all its rows to end it.
struct UnfinishedBatch {
  Batch batch;
  int64_t first = 0;  // row of the batch of all shares
  int64_t rows = 0;   // to make: those of the batch, and behind them, where a share is mixed, those before its turns
  std::vector<int32_t> labels;  // of rows that are mixed
  Tensor before;                // the samples of the rows before its turns
};

class BatchMaker {
 public:
  /// Keeps a reference to the data set. Error(usage) for options that make no sense.
  BatchMaker(const Dataset& dataset, LoaderOptions options);

  /// What a thread keeps between rows.
  struct Scratch {
    std::vector<uint8_t> pixels;  // of one image as it is stored
    std::vector<float> numbers;
    std::vector<int32_t> labels;  // of pixels that are moved
  };
  Scratch make_scratch() const;
  /// For this batch and those like it.
  UnfinishedBatch allocate(int64_t epoch, int64_t step) const;
  /// For those of any one.
  UnfinishedBatch allocate_largest() const;

  /// Says which batch it will be, and which rows of it: those of any other one are forgotten.
  void begin(UnfinishedBatch& batch, int64_t epoch, int64_t step, const BatchPieces& pieces) const;
  /// Allocates nothing but what data sets do. Errors of the data set come out.
  void fill_row(UnfinishedBatch& batch, int64_t row, const Permutation& order, Scratch& scratch) const;
  /// What needs all rows.
  void finish(UnfinishedBatch& batch) const;

  /// One sample as an epoch sees it.
  Tensor sample(int64_t index, int64_t epoch) const;
  /// Asks the system for the files of such rows.
  void will_need(int64_t epoch, int64_t step, const BatchPieces& pieces, int64_t first_row, int64_t last_row) const;

  /// The samples of an epoch, in the order of its rows.
  Permutation order_of(int64_t epoch) const;
  const BatchCourse& course() const { return course_; }
  /// Of any batch, at least 1.
  int64_t most_rows() const;
  const Dataset& dataset() const { return dataset_; }
  const LoaderOptions& options() const { return options_; }

 private:
  /// Images as an epoch has them.
  struct Stage {
    int64_t batch = 0;  // of all shares
    Shape sample;
    AugmentOptions augment;
  };
  const Stage& stage_of(int64_t epoch, int64_t step) const { return stages_[course_.piece_of(epoch, step).stage]; }
  const Stage& stage_of(const Batch& batch) const { return stage_of(batch.epoch, batch.step); }
  UnfinishedBatch allocate(int64_t rows, const Shape& sample) const;
  /// Of a batch of this stage that is whole; where shares may change, the most.
  int64_t rows_of(const Stage& stage) const;
  /// Those of all shares in this batch.
  int64_t count_of(int64_t epoch, int64_t step) const;
  /// Samples of the epoch before this batch.
  int64_t samples_before(int64_t epoch, int64_t step) const;
  /// Where a row of the share, of which `first` is the first and there are `count`, stands among the rows of its batch
  /// of all shares.
  int64_t row_of_all(int64_t first, int64_t count, int64_t row) const;
  /// Where a row to be made stands among the samples of the epoch.
  int64_t position_of(const UnfinishedBatch& unfinished, int64_t row) const;
  bool mixes_a_share() const { return options_.mix.on() && options_.shares > 1; }
  void fill_target(Scratch& scratch, const SampleKey& key, int64_t epoch, std::span<uint8_t> target) const;
  void fill_image(Scratch& scratch, const Stage& stage, int64_t index, int64_t epoch, std::span<float> target) const;
  uint64_t pass_of(int64_t epoch) const;

  const Dataset& dataset_;
  const LoaderOptions options_;
  const BatchCourse course_;
  std::vector<Stage> stages_;                   // those of the course
  std::optional<Normalization> normalization_;  // of images
};

}  // namespace weft::data
