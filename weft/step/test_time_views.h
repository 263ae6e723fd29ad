// Test-time augmentation: the network sees several views of an image, and the mean of its outputs counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/data/augment/views.h"
#include "weft/data/load/loader.h"
#include "weft/models/model.h"

namespace weft::step {

/// Changes a model built for `samples` times the number of views, view after view, into one with a row of logits and a
/// label per sample. Error(usage) where it has no such logits.
void average_views(models::Model& model, const std::vector<data::View>& views, int64_t samples);

/// The batches that such a model reads.
class ViewedBatch {
 public:
  ViewedBatch(std::vector<data::View> views, const data::DatasetInfo& info, int64_t largest_batch);
  /// Of the first `count` samples of the batch; valid until the next call.
  const data::Batch& show(const data::Batch& batch);
  /// What one takes in memory; 0 where there is but one view, which needs none.
  static int64_t bytes(const std::string& tta, const data::DatasetInfo& info, int64_t largest_batch);

 private:
  std::vector<data::View> views_;
  Shape image_;
  data::Batch shown_;
};

}  // namespace weft::step
