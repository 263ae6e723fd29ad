// Loops of sums over ranks; included by sum.cpp once per instruction set, inside a namespace of that set: hence no
// include guard. Numbers in bf16 are the upper halves of those in f32; those in f16 have the same fields, but shorter
// ones.

void widen(const uint16_t* from, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = __builtin_bit_cast(float, static_cast<uint32_t>(from[i]) << 16);
}

/// To nearest, ties to even; NaN stays NaN.
void narrow(const float* from, uint16_t* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = __builtin_bit_cast(uint32_t, from[i]);
    const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    to[i] = static_cast<uint16_t>((from[i] != from[i] ? bits | 0x400000u : rounded) >> 16);
  }
}

void scale(float* values, int64_t count, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) values[i] *= factor;
}

void add(const float* from, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

void add_bf16(const uint16_t* from, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] += __builtin_bit_cast(float, static_cast<uint32_t>(from[i]) << 16);
}

void add_pair(const float* a, const float* b, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

void add_pair_bf16(const uint16_t* a, const uint16_t* b, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    to[i] = __builtin_bit_cast(float, static_cast<uint32_t>(a[i]) << 16) +
            __builtin_bit_cast(float, static_cast<uint32_t>(b[i]) << 16);
}

/// Both become their sum.
void exchange_sum(float* a, float* b, int64_t count, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) a[i] = b[i] = (a[i] + b[i]) * factor;
}

void widen_f16(const uint16_t* from, float* to, int64_t count) {
  constexpr uint32_t kExponent = 0x7c00u << 13;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t shifted = (from[i] & 0x7fffu) << 13, exponent = shifted & kExponent;
    const uint32_t normal = shifted + (112u << 23), special = shifted + (224u << 23);  // infinity and NaN
    // What is below the smallest normal one has no leading bit: it gets one, and loses it by subtraction.
    const float small = __builtin_bit_cast(float, normal + (1u << 23)) - __builtin_bit_cast(float, 113u << 23);
    const uint32_t bits = exponent == 0           ? __builtin_bit_cast(uint32_t, small)
                          : exponent == kExponent ? special
                                                  : normal;
    to[i] = __builtin_bit_cast(float, bits | (from[i] & 0x8000u) << 16);
  }
}

/// To nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
void narrow_f16(const float* from, uint16_t* to, int64_t count) {
  constexpr uint32_t kTooLarge = 143u << 23, kSmallestNormal = 113u << 23, kRounding = 126u << 23;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t all = __builtin_bit_cast(uint32_t, from[i]), sign = all & 0x80000000u, bits = all ^ sign;
    const uint32_t special = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    // Beside a half the last bit of f32 is that of the smallest f16: adding rounds.
    const float rounded = __builtin_bit_cast(float, bits) + __builtin_bit_cast(float, kRounding);
    const uint32_t small = __builtin_bit_cast(uint32_t, rounded) - kRounding;
    const uint32_t normal = (bits - (112u << 23) + 0xfffu + (bits >> 13 & 1u)) >> 13;
    const uint32_t half = bits >= kTooLarge ? special : bits < kSmallestNormal ? small : normal;
    to[i] = static_cast<uint16_t>(half | sign >> 16);
  }
}

constexpr Loops loops{widen, narrow,   widen_f16, narrow_f16,    scale,
                      add,   add_bf16, add_pair,  add_pair_bf16, exchange_sum};
