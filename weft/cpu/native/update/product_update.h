// product_sgd_update: tiles of the product in registers, from which the states are updated at once.
#pragma once

#include "weft/base/isa.h"
#include "weft/device/kernel.h"

namespace weft::native {

void add_product_update(KernelTable&, Isa);

}  // namespace weft::native
