#include "weft/cpu/native/integer/tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::native {

namespace {

struct Loops {
  MultiplyTile multiply;
  NarrowColumns narrow;
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/integer/tile_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

MultiplyTile multiply_tile_for(Isa isa, bool may_use_vnni) {
  if (isa == Isa::avx512 && may_use_vnni)
    if (const MultiplyTile tile = vnni_multiply_tile()) return tile;
  return loops_for(isa).multiply;
}

NarrowColumns narrow_columns_for(Isa isa) { return loops_for(isa).narrow; }

}  // namespace weft::native
