// Cross-entropy with shares of the classes, f32 [N,classes], as targets: of batches that are mixed.
#include "weft/ops/ops.h"
#include "weft/spec/run_spec.h"
#include "weft/step/losses/entries.h"

namespace weft::step {

LossEntry soft_cross_entropy_entry() {
  return {.name = "soft_cross_entropy",
          .summary = "of shares of the classes, as mixup and cutmix give them",
          .keys = {label_smoothing_key()},
          .build = [](const LossCall& call) {
            Graph& graph = call.graph;
            ValueId targets = call.labels;
            const double smoothing = call.training ? call.options.label_smoothing : 0;
            if (smoothing > 0) {
              const auto classes = static_cast<double>(graph.shape(targets)[1]);
              targets = ops::multiply_scalar(graph, targets, 1 - smoothing, "labels.scaled");
              targets = ops::add_scalar(graph, targets, smoothing / classes, "labels.smoothed");
            }
            return ops::soft_cross_entropy(graph, call.logits, targets, "losses");
          }};
}

}  // namespace weft::step
