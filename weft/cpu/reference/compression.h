#pragma once

#include "weft/device/kernel.h"

namespace weft::reference {

/// Of orthogonalise, top_k_select, pack_signs, unpack_signs.
void add_compression(KernelTable&);

}  // namespace weft::reference
