#include "weft/data/load/batch_course.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/error.h"

namespace weft::data {

Shape scaled_shape(const Shape& sample, int64_t height) {
  if (height == 0) return sample;
  check(sample.rank() == 3, "images have channels, height and width");
  const int64_t width = (2 * sample[2] * height + sample[1]) / (2 * sample[1]);  // to the nearest
  return {sample[0], height, std::max<int64_t>(1, width)};
}

namespace {

int64_t batches_in(int64_t samples, int64_t batch, bool whole_only) {
  return whole_only ? samples / batch : (samples + batch - 1) / batch;
}

/// Of a stage from sample `begin` of an epoch to about sample `end`, behind which the epoch goes on.
int64_t batches_within(int64_t begin, double end, int64_t samples, const LoaderStage& stage) {
  const int64_t step = stage.batch * stage.accumulate;
  const int64_t most = (samples - begin) / step;
  const auto nearest =
      static_cast<int64_t>(std::llround((end - static_cast<double>(begin)) / static_cast<double>(step)));
  return std::min(std::max<int64_t>(nearest, 1), most) * stage.accumulate;
}

}  // namespace

BatchCourse::BatchCourse(int64_t samples, bool whole_only, const std::vector<LoaderStage>& stages) {
  check(!stages.empty() && stages.front().first_epoch == 0 && stages.front().first_part == 0,
        "the first stage begins with the first epoch");
  Piece next;  // where the next piece begins
  const auto add = [&](size_t stage, int64_t batches, int64_t epochs, bool ends_within) {
    next.stage = stage;
    next.batches = batches;
    next.ends_within = ends_within;
    pieces_.push_back(next);
    next.first_batch += epochs * batches;
    next.first_epoch += ends_within ? 0 : epochs;
    next.first_in_epoch = ends_within ? next.first_in_epoch + batches : 0;
    next.first_sample = ends_within ? next.first_sample + batches * stages[stage].batch : 0;
  };
  for (size_t index = 0; index < stages.size(); ++index) {
    const LoaderStage& stage = stages[index];
    const bool is_last = index + 1 == stages.size();
    const LoaderStage end =
        is_last ? LoaderStage{.first_epoch = std::numeric_limits<int64_t>::max()} : stages[index + 1];
    check(end.first_epoch > stage.first_epoch ||
              (end.first_epoch == stage.first_epoch && end.first_part > stage.first_part),
          "stages in the order of their epochs");
    const double end_sample = end.first_part * static_cast<double>(samples);
    // The rest of the epoch in which the stage before has ended.
    if (next.first_sample > 0 && end.first_epoch == next.first_epoch) {
      add(index, batches_within(next.first_sample, end_sample, samples, stage), 1, true);
      continue;
    }
    if (next.first_sample > 0) add(index, batches_in(samples - next.first_sample, stage.batch, whole_only), 1, false);
    const int64_t whole = is_last ? 1 : end.first_epoch - next.first_epoch;
    if (whole > 0) add(index, batches_in(samples, stage.batch, whole_only), whole, false);
    if (end.first_part > 0) add(index, batches_within(0, end_sample, samples, stage), 1, true);
  }
}

const BatchCourse::Piece& BatchCourse::piece_of(int64_t epoch, int64_t batch) const {
  size_t piece = pieces_.size() - 1;
  while (piece > 0 && (pieces_[piece].first_epoch > epoch ||
                       (pieces_[piece].first_epoch == epoch && pieces_[piece].first_in_epoch > batch)))
    --piece;
  return pieces_[piece];
}

int64_t BatchCourse::batches_of(int64_t epoch) const {
  const Piece& last = piece_of(epoch, std::numeric_limits<int64_t>::max());
  return last.first_in_epoch + last.batches;
}

int64_t BatchCourse::batches_before(int64_t epoch) const {
  const Piece& piece = piece_of(epoch, 0);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t epochs = epoch - piece.first_epoch;
  if (piece.batches > 0 && epochs > (kMost - piece.first_batch) / piece.batches) return kMost;
  return piece.first_batch + epochs * piece.batches;
}

BatchCourse::Place BatchCourse::place_of(int64_t batch) const {
  size_t at = pieces_.size() - 1;
  while (at > 0 && pieces_[at].first_batch > batch) --at;
  const Piece& piece = pieces_[at];
  const int64_t after = batch - piece.first_batch;
  return {piece.first_epoch + after / piece.batches, piece.first_in_epoch + after % piece.batches};
}

}  // namespace weft::data
