// A sequence of tokens for a sequence of tokens.
#include <fmt/format.h>

#include "weft/base/format.h"
#include "weft/infer/prediction.h"
#include "weft/tasks/entries.h"

namespace weft::tasks {

namespace {

std::string translation_in_words(double loss, const MetricValues& values) {
  return fmt::format("{} of the sequences right, {} of their tokens, loss {:.4f}",
                     percent(find_metric(values, "accuracy")), percent(find_metric(values, "token_accuracy")), loss);
}

}  // namespace

TaskEntry translation_entry() {
  return {.name = "translation",
          .summary = "a sequence of tokens for a sequence of tokens",
          .metrics = {"accuracy", "token_accuracy"},
          .decided_by = "accuracy",
          .predict = infer::translate_lines,
          .in_words = translation_in_words};
}

}  // namespace weft::tasks
