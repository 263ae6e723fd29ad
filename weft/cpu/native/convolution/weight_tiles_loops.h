// Loops over one tile of 16x16 weights; compiled per instruction set (multiversion.h), for the set whose vectors are 16
// floats long.

#if WEFT_LANES == 16

#include "weft/cpu/native/movement/transpose_square.h"

/// f32 [16][16] to bf16 [8][16][2]: neighbouring rows as pairs.
void round_to_pairs(void* to_data, const void* from_data) {
  using Wide = Bits<kLanes>::Wide;
  const float* const from = static_cast<const float*>(from_data);
  for (int64_t row = 0; row < 16; row += 2) {
    const Wide first = rounded_above(load<FloatVector>(from + row * 16)) >> 16;
    const Wide second = rounded_above(load<FloatVector>(from + (row + 1) * 16)) & 0xffff0000u;
    const Wide pairs = first | second;
    __builtin_memcpy(static_cast<std::byte*>(to_data) + row * 32, &pairs, sizeof pairs);
  }
}

/// a[0], a[2], a[1], a[3] of every four.
template <size_t... I>
WEFT_INLINE Bits<kLanes>::Halves swap_middle(Bits<kLanes>::Halves a, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, a, (static_cast<int>(I % 4 == 1 ? I + 1 : I % 4 == 2 ? I - 1 : I))...);
}

/// bf16 [8][16][2] to bf16 [8][16][2] where pairs run along the other axis: blocks of 2x2 change places, and the two
/// numbers off the diagonal in each.
void transpose_pairs(void* to_data, const void* from_data) {
  uint64_t* const to = static_cast<uint64_t*>(to_data);
  transpose_square<uint64_t>(to, 8, static_cast<const uint64_t*>(from_data), 8);
  for (int64_t row = 0; row < 8; ++row) {
    Bits<kLanes>::Halves pairs;
    __builtin_memcpy(&pairs, to + row * 8, sizeof pairs);
    pairs = swap_middle(pairs, std::make_index_sequence<32>{});
    __builtin_memcpy(to + row * 8, &pairs, sizeof pairs);
  }
}

constexpr Loops loops{round_to_pairs, transpose_pairs};

#else

constexpr Loops loops{};

#endif
