// Kernels of `renew` (graph/kept.h): those of the cast or reorder that made the copy, into the copy's memory.
#pragma once

#include "weft/device/kernel.h"

namespace weft {

/// A candidate for `renew` that asks the candidates which `cast` and `reorder` have in the table now.
void add_renewals(KernelTable& table, OpRegistry registry);

}  // namespace weft
