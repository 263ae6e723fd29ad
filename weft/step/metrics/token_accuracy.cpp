// Of sequences: each token, given those before it.
#include "weft/ops/ops.h"
#include "weft/step/metrics/entries.h"

namespace weft::step {

MetricEntry token_accuracy_entry() {
  return {.name = "token_accuracy",
          .summary = "share of the tokens that are right, given those before them",
          .label = "by token",
          .is_share = true,
          .outputs = {"tokens_correct"},
          .build = [](const MetricCall& call) {
            if (call.predicts_values()) return;
            call.add_output("tokens_correct", [&] {
              return ops::count_correct(call.graph, call.model.logits, call.model.labels, "tokens_correct");
            });
          }};
}

}  // namespace weft::step
