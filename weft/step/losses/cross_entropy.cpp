// -log of the probability of the label's class, with label smoothing (Szegedy et al. 2016) in training; as
// torch.nn.CrossEntropyLoss.
#include "weft/ops/ops.h"
#include "weft/spec/run_spec.h"
#include "weft/step/losses/entries.h"

namespace weft::step {

LossEntry cross_entropy_entry() {
  return {.name = "cross_entropy",
          .summary = "of classes and tokens, as torch.nn.CrossEntropyLoss",
          .keys = {label_smoothing_key()},
          .build = [](const LossCall& call) {
            const double smoothing = call.training ? call.options.label_smoothing : 0;
            return ops::cross_entropy(call.graph, call.logits, call.labels, smoothing, "losses");
          }};
}

}  // namespace weft::step
