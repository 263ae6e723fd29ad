// Loops of kernels that compute through f32; compiled per instruction set (multiversion.h).

#include "weft/cpu/native/support/half_loops.h"

constexpr Loops loops{widen_halves, narrow_to_halves};
