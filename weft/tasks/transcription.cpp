// The text in an image.
#include <fmt/format.h>

#include "weft/base/format.h"
#include "weft/infer/prediction.h"
#include "weft/tasks/entries.h"

namespace weft::tasks {

TaskEntry transcription_entry() {
  return {.name = "transcription",
          .summary = "the text in an image",
          .metrics = {"accuracy"},
          .decided_by = "accuracy",
          .predict = infer::transcribe_images,
          .in_words = [](double loss, const MetricValues& values) {
            return fmt::format("{} of the texts right, loss {:.4f}", percent(find_metric(values, "accuracy")), loss);
          }};
}

}  // namespace weft::tasks
