#pragma once

#include "weft/base/isa.h"
#include "weft/device/kernel.h"

namespace weft::native {

/// Of top_k_select, pack_signs, unpack_signs.
void add_compression(KernelTable&, Isa);

}  // namespace weft::native
