#include "weft/cpu/native/integer/row_ends.h"

#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::native {

namespace {

using Loops = RowLoops;

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/integer/row_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

const RowLoops& row_loops_for(Isa isa) { return loops_for(isa); }

}  // namespace weft::native
