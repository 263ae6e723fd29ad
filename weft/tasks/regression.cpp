// Real values per sample.
#include <fmt/format.h>

#include "weft/infer/prediction.h"
#include "weft/tasks/entries.h"

namespace weft::tasks {

namespace {

std::string regression_in_words(double loss, const MetricValues& values) {
  const std::optional<double> rmse = find_metric(values, "rmse"), r2 = find_metric(values, "r2");
  return fmt::format("rmse {}, R2 {}, loss {:.4f}", rmse ? fmt::format("{:.5g}", *rmse) : "-",
                     r2 ? fmt::format("{:.4f}", *r2) : "undefined", loss);
}

}  // namespace

TaskEntry regression_entry() {
  return {.name = "regression",
          .summary = "real values per sample",
          .metrics = {"rmse", "r2"},
          .answer_name = "values",
          .predict = infer::predict_samples,
          .predicts_data = true,
          .in_words = regression_in_words};
}

}  // namespace weft::tasks
