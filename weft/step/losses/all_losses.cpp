// The table of the losses: a line each.
#include "weft/step/losses/entries.h"

namespace weft::step {

std::vector<LossEntry> all_losses() { return {cross_entropy_entry(), mse_entry(), soft_cross_entropy_entry()}; }

}  // namespace weft::step
