// Loops of cast over elements [begin, end); compiled per instruction set (multiversion.h).

template <typename To, typename From>
WEFT_INLINE To converted(From value) {
  return static_cast<To>(value);
}

/// Bits of a bf16 number.
struct Bf16 {
  uint16_t bits;
};

template <>
WEFT_INLINE float converted<float, Bf16>(Bf16 value) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(value.bits) << 16);
}

/// To nearest, ties to even; NaN stays quiet NaN.
template <>
WEFT_INLINE Bf16 converted<Bf16, float>(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<uint16_t>((value != value ? bits | 0x400000u : rounded) >> 16)};
}

template <typename To, typename From>
void cast_range(void* to_data, const void* from_data, int64_t begin, int64_t end) {
  To* const to = static_cast<To*>(to_data);
  const From* const from = static_cast<const From*>(from_data);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) to[i] = converted<To>(from[i]);
}

CastRange range_of(DType from, DType to) {
  if (from == to) {
    const int64_t size = size_of(from);
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
    if (from == DType::bf16) return cast_range<float, Bf16>;
  }
  if (from == DType::f32) {
    if (to == DType::f64) return cast_range<double, float>;
    if (to == DType::bf16) return cast_range<Bf16, float>;
  }
  return nullptr;
}

constexpr Loops loops{range_of};
