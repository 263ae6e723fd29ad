// The token after each token.
#include <fmt/format.h>

#include "weft/base/format.h"
#include "weft/infer/prediction.h"
#include "weft/tasks/entries.h"

namespace weft::tasks {

namespace {

std::string language_model_in_words(double loss, const MetricValues& values) {
  return fmt::format("{:.4f} nats per token, perplexity {:.3f}, accuracy {}", loss,
                     find_metric(values, "perplexity").value_or(0), percent(find_metric(values, "accuracy")));
}

}  // namespace

TaskEntry language_model_entry() {
  return {.name = "language_model",
          .summary = "the token after each token",
          .metrics = {"perplexity", "accuracy"},
          .loss_unit = "nats per token",
          .predict = infer::continue_texts,
          .predicted_file = "BEGINNING.txt",
          .in_words = language_model_in_words};
}

}  // namespace weft::tasks
