// Loops over blocks of elements and their signs; included by compression.cpp once per instruction set, inside a
// namespace of that set: hence no include guard.

/// Signs of up to 32 elements.
uint32_t signs_of(const float* x, int64_t count) {
  uint32_t word = 0;
  for (int64_t i = 0; i < count; ++i) word |= (__builtin_bit_cast(uint32_t, x[i]) >> 31) << i;
  return word;
}

void pack_block(const float* x, int64_t count, uint32_t* signs, float* means, float* rest) {
  for (int64_t i = 0; i < count; i += 32) signs[i / 32] = signs_of(x + i, std::min<int64_t>(32, count - i));
  float all = 0, negative = 0;
  int32_t negatives = 0;
#pragma omp simd reduction(+ : all, negative, negatives)
  for (int64_t i = 0; i < count; ++i) {
    const bool is_negative = (__builtin_bit_cast(uint32_t, x[i]) >> 31) != 0;
    all += is_negative ? 0.0f : x[i];
    negative += is_negative ? x[i] : 0.0f;
    negatives += is_negative ? 1 : 0;
  }
  const auto others = static_cast<int32_t>(count) - negatives;
  means[0] = others > 0 ? all / static_cast<float>(others) : 0.0f;
  means[1] = negatives > 0 ? negative / static_cast<float>(negatives) : 0.0f;
  const float positive_mean = means[0], negative_mean = means[1];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    rest[i] = x[i] - ((__builtin_bit_cast(uint32_t, x[i]) >> 31) != 0 ? negative_mean : positive_mean);
}

/// y = (y + the means by their signs), times the factor.
void unpack_block(const uint32_t* signs, const float* means, int64_t count, bool is_first, float factor, float* y) {
  const float positive_mean = means[0], negative_mean = means[1];
  for (int64_t begin = 0; begin < count; begin += 32) {
    const uint32_t word = signs[begin / 32];
    const int64_t length = std::min<int64_t>(32, count - begin);
    float* const to = y + begin;
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      to[i] = ((is_first ? 0.0f : to[i]) + ((word >> i & 1u) != 0 ? negative_mean : positive_mean)) * factor;
  }
}

constexpr Loops loops{pack_block, unpack_block};
