// Loops between f16 and f32; compiled per instruction set (multiversion.h). As f16_to_f32() and f32_to_f16() in
// tensor.cpp, without branches.

void widen_halves(const uint16_t* from, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = from[i], sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    // The exponents of f32 lie 112 higher, that of infinity and NaN 224; subnormals count 2^-24.
    const uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u);
    const auto subnormal = __builtin_bit_cast(uint32_t, static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
    to[i] = __builtin_bit_cast(float, sign | (magnitude < 0x400u ? subnormal : normal));
  }
}

void narrow_to_halves(const float* from, uint16_t* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = __builtin_bit_cast(uint32_t, from[i]);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    // The last bit of 0.5 counts 2^-24, as that of a subnormal f16: the sum is rounded as that has to be.
    const uint32_t subnormal = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x47800000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? 0x7e00u : half;
    to[i] = static_cast<uint16_t>(sign | half);
  }
}
