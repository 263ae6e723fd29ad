// One class per sample: of images, of rows of a table, of lines of text.
#include <fmt/format.h>

#include "weft/base/format.h"
#include "weft/infer/prediction.h"
#include "weft/tasks/entries.h"

namespace weft::tasks {

TaskEntry classification_entry() {
  return {.name = "classification",
          .summary = "one class per sample",
          .metrics = {"accuracy"},
          .decided_by = "accuracy",
          .predict = infer::predict_samples,
          .predicts_data = true,
          .in_words = [](double loss, const MetricValues& values) {
            const std::optional<double> accuracy = find_metric(values, "accuracy");  // not of a model of values
            return (accuracy ? fmt::format("accuracy {}, ", percent(accuracy)) : "") + fmt::format("loss {:.4f}", loss);
          }};
}

}  // namespace weft::tasks
