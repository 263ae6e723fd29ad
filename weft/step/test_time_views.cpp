#include "weft/step/test_time_views.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "weft/base/error.h"
#include "weft/ops/ops.h"

namespace weft::step {

namespace {

/// The pixel that stands at `position` of an axis whose ends are mirrors: c b | a b c.
int64_t reflected(int64_t position, int64_t size) {
  if (size == 1) return 0;
  if (position < 0) return -position;
  return position < size ? position : 2 * (size - 1) - position;
}

/// image and shown (C,H,W)
void show_image(const float* image, const Shape& shape, const data::View& view, float* shown) {
  const int64_t height = shape[1], width = shape[2];
  for (int64_t plane = 0; plane < shape[0]; ++plane)
    for (int64_t row = 0; row < height; ++row) {
      const float* source = image + (plane * height + reflected(row - view.down, height)) * width;
      float* target = shown + (plane * height + row) * width;
      for (int64_t column = 0; column < width; ++column) target[column] = source[reflected(column - view.right, width)];
      if (view.mirrored) std::reverse(target, target + width);
    }
}

}  // namespace

void average_views(models::Model& model, const std::vector<data::View>& views, int64_t samples) {
  if (views.size() == 1) return;
  Graph& graph = model.graph;
  const auto rows = static_cast<int64_t>(views.size()) * samples;
  const bool of_images = model.input.valid() && graph.shape(model.input).rank() == 4;
  const bool of_classes = graph.type(model.labels).dtype == DType::i32 && graph.shape(model.labels) == Shape{rows} &&
                          !model.losses.valid() && graph.shape(model.logits).rank() == 2;
  if (!of_images || !of_classes)
    fail(ErrorKind::usage,
         "[{}] test-time augmentation is for networks that say of images which class each shows; set "
         "evaluation.tta=none",
         graph.name());
  const int64_t classes = graph.shape(model.logits)[1];
  ValueId mean;
  for (size_t index = 0; index < views.size(); ++index) {
    const auto first = static_cast<int64_t>(index) * samples;
    const ValueId logits = ops::slice(graph, model.logits, {first, 0}, {first + samples, classes});
    const ValueId part = ops::multiply_scalar(graph, logits, views[index].weight);
    mean = mean.valid() ? ops::add(graph, mean, part) : part;
  }
  model.logits = mean;
  model.labels = ops::slice(graph, model.labels, {0}, {samples}, "labels.of_samples");
}

ViewedBatch::ViewedBatch(std::vector<data::View> views, const data::DatasetInfo& info, int64_t largest_batch)
    : views_(std::move(views)), image_(info.sample_shape) {
  check(image_.rank() == 3 && data::batch_dtype(info) == DType::f32, "views are of images");
  const int64_t images = static_cast<int64_t>(views_.size()) * largest_batch;
  shown_.samples = Tensor(DType::f32, Shape{images, image_[0], image_[1], image_[2]});
  shown_.targets = Tensor(DType::i32, Shape{images});
}

const data::Batch& ViewedBatch::show(const data::Batch& batch) {
  const int64_t pixels = image_.elements();
  check(static_cast<int64_t>(views_.size()) * batch.count <= shown_.targets.elements(), "room for all views");
  float* target = shown_.samples.data_as<float>();
  for (const data::View& view : views_)
    for (int64_t sample = 0; sample < batch.count; ++sample, target += pixels)
      show_image(batch.samples.data_as<float>() + sample * pixels, image_, view, target);
  std::memcpy(shown_.targets.data(), batch.targets.data(), static_cast<size_t>(batch.count) * sizeof(int32_t));
  shown_.count = batch.count;
  return shown_;
}

int64_t ViewedBatch::bytes(const std::string& tta, const data::DatasetInfo& info, int64_t largest_batch) {
  const auto views = static_cast<int64_t>(data::views_of(tta).size());
  if (views == 1) return 0;
  const int64_t images = views * largest_batch;
  return align_up(byte_size(DType::f32, images * info.sample_shape.elements())) +
         align_up(byte_size(DType::i32, images));
}

}  // namespace weft::step
