// One function per optimiser, each in the file of its name, where its formula and source stand; all_optimizers.cpp
// lists them.
#pragma once

#include "weft/library/entries.h"

namespace weft::step {

OptimizerEntry sgd_entry();
OptimizerEntry adam_entry();
OptimizerEntry adamw_entry();
OptimizerEntry lamb_entry();
OptimizerEntry lars_entry();
OptimizerEntry muon_entry();
OptimizerEntry rmsprop_entry();

/// In the order in which messages and `weft keys` name them.
std::vector<OptimizerEntry> all_optimizers();

}  // namespace weft::step
