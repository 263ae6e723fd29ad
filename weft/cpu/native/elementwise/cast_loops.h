// Loops of cast over elements [begin, end); compiled per instruction set (multiversion.h).

#include "weft/cpu/native/support/half_loops.h"

template <typename To, typename From>
void cast_range(void* to_data, const void* from_data, int64_t begin, int64_t end) {
  To* const to = static_cast<To*>(to_data);
  const From* const from = static_cast<const From*>(from_data);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(from[i]);
}

/// Between f32 and bf16.
template <typename To, typename From>
void cast_stored(void* to_data, const void* from_data, int64_t begin, int64_t end) {
  To* const to = static_cast<To*>(to_data) + begin;
  const From* const from = static_cast<const From*>(from_data) + begin;
  for_each_lane_group(end - begin, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    store<V>(to + at, load<V>(from + at));
  });
}

void cast_from_half(void* to, const void* from, int64_t begin, int64_t end) {
  widen_halves(static_cast<const uint16_t*>(from) + begin, static_cast<float*>(to) + begin, end - begin);
}

void cast_to_half(void* to, const void* from, int64_t begin, int64_t end) {
  narrow_to_halves(static_cast<const float*>(from) + begin, static_cast<uint16_t*>(to) + begin, end - begin);
}

CastRange range_of(DType from, DType to) {
  if (from == to) {
    const int64_t size = unpacked_size(from);
    return size == 8   ? cast_range<uint64_t, uint64_t>
           : size == 4 ? cast_range<uint32_t, uint32_t>
           : size == 2 ? cast_range<uint16_t, uint16_t>
                       : cast_range<uint8_t, uint8_t>;
  }
  if (to == DType::f32) {
    if (from == DType::u8) return cast_range<float, uint8_t>;
    if (from == DType::i32) return cast_range<float, int32_t>;
    if (from == DType::i64) return cast_range<float, int64_t>;
    if (from == DType::f64) return cast_range<float, double>;
    if (from == DType::bf16) return cast_stored<float, Bf16>;
    if (from == DType::f16) return cast_from_half;
  }
  if (from == DType::f32) {
    if (to == DType::f64) return cast_range<double, float>;
    if (to == DType::bf16) return cast_stored<Bf16, float>;
    if (to == DType::f16) return cast_to_half;
  }
  return nullptr;
}

constexpr Loops loops{range_of};
