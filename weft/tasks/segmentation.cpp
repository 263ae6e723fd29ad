// A class per pixel.
#include <fmt/format.h>

#include "weft/base/format.h"
#include "weft/infer/prediction.h"
#include "weft/tasks/entries.h"

namespace weft::tasks {

namespace {

std::string segmentation_in_words(double loss, const MetricValues& values) {
  return fmt::format("{} of the pixels right, mean IoU {}, loss {:.4f}", percent(find_metric(values, "accuracy")),
                     percent(find_metric(values, "mean_iou")), loss);
}

}  // namespace

TaskEntry segmentation_entry() {
  return {.name = "segmentation",
          .summary = "a class per pixel",
          .metrics = {"accuracy", "mean_iou"},
          .decided_by = "accuracy",
          .predict = infer::segment_images,
          .in_words = segmentation_in_words};
}

}  // namespace weft::tasks
