// Loops of sums over ranks; included by sum.cpp once per instruction set, inside a namespace of that set: hence no
// include guard. Numbers in bf16 are the upper halves of those in f32.

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

constexpr Loops loops{widen, narrow, scale, add, add_bf16, add_pair, add_pair_bf16, exchange_sum};
