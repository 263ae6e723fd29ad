#include "weft/data/load/batch_course.h"

#include <algorithm>
#include <limits>

#include "weft/base/error.h"

namespace weft::data {

Shape scaled_shape(const Shape& sample, int64_t height) {
  if (height == 0) return sample;
  check(sample.rank() == 3, "images have channels, height and width");
  const int64_t width = (2 * sample[2] * height + sample[1]) / (2 * sample[1]);  // to the nearest
  return {sample[0], height, std::max<int64_t>(1, width)};
}

BatchCourse::BatchCourse(int64_t samples, bool whole_only, const std::vector<LoaderStage>& stages) {
  check(!stages.empty() && stages.front().first_epoch == 0, "the first stage begins with the first epoch");
  for (const LoaderStage& stage : stages) {
    Part part{.first_epoch = stage.first_epoch};
    part.batches = whole_only ? samples / stage.batch : (samples + stage.batch - 1) / stage.batch;
    if (!parts_.empty()) {
      const Part& before = parts_.back();
      check(part.first_epoch > before.first_epoch, "stages in the order of their epochs");
      part.first_batch = before.first_batch + (part.first_epoch - before.first_epoch) * before.batches;
    }
    parts_.push_back(part);
  }
}

size_t BatchCourse::stage_of(int64_t epoch) const {
  size_t stage = parts_.size() - 1;
  while (stage > 0 && parts_[stage].first_epoch > epoch) --stage;
  return stage;
}

int64_t BatchCourse::batches_before(int64_t epoch) const {
  const Part& part = parts_[stage_of(epoch)];
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t epochs = epoch - part.first_epoch;
  if (part.batches > 0 && epochs > (kMost - part.first_batch) / part.batches) return kMost;
  return part.first_batch + epochs * part.batches;
}

BatchCourse::Place BatchCourse::place_of(int64_t batch) const {
  size_t stage = parts_.size() - 1;
  while (stage > 0 && parts_[stage].first_batch > batch) --stage;
  const Part& part = parts_[stage];
  const int64_t after = batch - part.first_batch;
  return {part.first_epoch + after / part.batches, after % part.batches};
}

}  // namespace weft::data
