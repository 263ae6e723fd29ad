// The table of the optimisers: a line each.
#include "weft/step/optimizers/entries.h"

namespace weft::step {

std::vector<OptimizerEntry> all_optimizers() {
  return {sgd_entry(), adam_entry(), adamw_entry(), lamb_entry(), lars_entry(), muon_entry(), rmsprop_entry()};
}

}  // namespace weft::step
