// How much memory this process may still take.
#pragma once

#include <cstdint>

namespace weft {

/// Without swapping: what the system calls available, or what its control group leaves where that is less.
int64_t available_memory_bytes();

}  // namespace weft
