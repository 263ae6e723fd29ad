// Products of a tile in 16 bits; compiled per instruction set (multiversion.h).

#if WEFT_LANES == 4

/// Plain loops, for processors without AVX2 and those that are no x86-64.
void multiply_tile(const IntegerTile& t) {
  const int flip = t.flips_b ? 0x80 : 0;
  for (int64_t r = 0; r < t.rows; ++r)
    for (int64_t n = 0; n < t.blocks; ++n) {
      const uint8_t *a = t.a + r * t.a_row, *b = t.b + n * t.b_block;
      uint32_t sums[kColumnBlock] = {};
      for (int64_t group = 0; group < t.groups; ++group)
        for (int64_t c = 0; c < kColumnBlock; ++c) {
          int32_t sum = 0;
          for (int64_t i = 0; i < kInnerGroup; ++i) {
            const auto column = static_cast<int8_t>(b[group * kGroupBytes + c * kInnerGroup + i] ^ flip);
            sum += int32_t{a[group * kInnerGroup + i]} * column;
          }
          sums[c] += static_cast<uint32_t>(sum);
        }
      std::memcpy(t.sums + r * kTileColumns + n * kColumnBlock, sums, sizeof sums);
    }
}

#else

#if WEFT_LANES == 16
typedef __m512i Integers;
constexpr int kVectors = 2;  // of a block of columns: each holds two parts of the sums of 8
WEFT_INLINE Integers zeros() { return _mm512_setzero_si512(); }
WEFT_INLINE Integers row_numbers(int32_t four) { return _mm512_cvtepu8_epi16(_mm256_set1_epi32(four)); }
WEFT_INLINE Integers column_numbers(const uint8_t* b, char flip) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  return _mm512_cvtepi8_epi16(_mm256_xor_si256(bytes, _mm256_set1_epi8(flip)));
}
WEFT_INLINE Integers add_products(Integers sums, Integers a, Integers b) {
  return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b));
}
WEFT_INLINE void store_parts(int32_t* to, Integers sums) { _mm512_storeu_si512(to, sums); }
#else
typedef __m256i Integers;
constexpr int kVectors = 4;  // two parts of the sums of 4 columns
WEFT_INLINE Integers zeros() { return _mm256_setzero_si256(); }
WEFT_INLINE Integers row_numbers(int32_t four) { return _mm256_cvtepu8_epi16(_mm_set1_epi32(four)); }
WEFT_INLINE Integers column_numbers(const uint8_t* b, char flip) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
  return _mm256_cvtepi8_epi16(_mm_xor_si128(bytes, _mm_set1_epi8(flip)));
}
WEFT_INLINE Integers add_products(Integers sums, Integers a, Integers b) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
}
WEFT_INLINE void store_parts(int32_t* to, Integers sums) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums); }
#endif

template <int kRows>
WEFT_INLINE void multiply_block(const IntegerTile& t, int64_t row, int64_t block) {
  constexpr int64_t kVectorBytes = kGroupBytes / kVectors;
  const char flip = t.flips_b ? static_cast<char>(0x80) : 0;
  const uint8_t* b = t.b + block * t.b_block;
  Integers sums[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zeros();
  for (int64_t group = 0; group < t.groups; ++group, b += kGroupBytes) {
    Integers a[kRows];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      int32_t four = 0;
      __builtin_memcpy(&four, t.a + (row + r) * t.a_row + group * kInnerGroup, sizeof four);
      a[r] = row_numbers(four);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Integers columns = column_numbers(b + v * kVectorBytes, flip);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) sums[r][v] = add_products(sums[r][v], a[r], columns);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    int32_t parts[2 * kColumnBlock];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store_parts(parts + v * (2 * kColumnBlock / kVectors), sums[r][v]);
    int32_t* to = t.sums + (row + r) * kTileColumns + block * kColumnBlock;
    for (int64_t c = 0; c < kColumnBlock; ++c)
      to[c] = static_cast<int32_t>(static_cast<uint32_t>(parts[2 * c]) + static_cast<uint32_t>(parts[2 * c + 1]));
  }
}

void multiply_tile(const IntegerTile& t) {
  constexpr int kMostRows = WEFT_LANES == 16 ? 6 : 2;  // as many as registers hold the sums of
  for (int64_t block = 0; block < t.blocks; ++block) {
    int64_t row = 0;
    for (; row + kMostRows <= t.rows; row += kMostRows) multiply_block<kMostRows>(t, row, block);
    for (; row < t.rows; ++row) multiply_block<1>(t, row, block);
  }
}

#endif

constexpr Loops loops{multiply_tile};
