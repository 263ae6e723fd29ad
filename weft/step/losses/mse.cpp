// The mean of the squared errors of a sample's values, as torch.nn.MSELoss.
#include "weft/ops/ops.h"
#include "weft/step/losses/entries.h"

namespace weft::step {

LossEntry mse_entry() {
  return {.name = "mse",
          .summary = "of real values: the mean squared error, as torch.nn.MSELoss",
          .build = [](const LossCall& call) { return ops::mse(call.graph, call.logits, call.labels, "losses"); }};
}

}  // namespace weft::step
