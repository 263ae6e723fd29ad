// Products of a tile, exact in 16 bits; compiled per instruction set (multiversion.h).

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

#elif WEFT_LANES == 8

constexpr int64_t kChunkGroups = 128;  // of the inner dimension at a time: rows of it, widened, stay in the first cache
constexpr int64_t kChunkBytes = kChunkGroups * kInnerGroup;
constexpr int64_t kHalfBytes = kGroupBytes / 2;  // of 8 columns

/// Rows as 16 bits, which loops spread over a vector for nothing when they read them.
WEFT_INLINE void widen_row(const uint8_t* from, int64_t count, int16_t* to) {
  int64_t at = 0;
  for (; at + 16 <= count; at += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at),
                        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at))));
  for (; at < count; ++at) to[at] = from[at];
}

/// The sums of 8 columns in each of the rows, or what is added to them. The 12 sums of six rows, two vectors of
/// columns, a row's numbers and a product are the 16 registers that there are.
template <int kRows>
WEFT_INLINE void multiply_half(const int16_t* a, const uint8_t* b, int64_t groups, bool adds, int32_t* to) {
  __m256i first[kRows], second[kRows];  // two parts of the sums of 4 columns each
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) first[r] = second[r] = _mm256_setzero_si256();
  for (int64_t group = 0; group < groups; ++group, a += kInnerGroup, b += kGroupBytes) {
    const __m256i left = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
    const __m256i right = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + kHalfBytes / 2)));
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      int64_t four = 0;
      __builtin_memcpy(&four, a + r * kChunkBytes, sizeof four);
      const __m256i row_numbers = _mm256_set1_epi64x(four);
      first[r] = _mm256_add_epi32(first[r], _mm256_madd_epi16(row_numbers, left));
      second[r] = _mm256_add_epi32(second[r], _mm256_madd_epi16(row_numbers, right));
      // Row by row: gcc would multiply for all rows first, and keep sums in memory for want of registers.
      __asm__("" : "+x"(first[r]), "+x"(second[r]));
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const __m256i sums = _mm256_permute4x64_epi64(_mm256_hadd_epi32(first[r], second[r]), 0xd8);
    auto* const place = reinterpret_cast<__m256i*>(to + r * kTileColumns);
    _mm256_storeu_si256(place, adds ? _mm256_add_epi32(_mm256_loadu_si256(place), sums) : sums);
  }
}

WEFT_INLINE void multiply_rows(int64_t rows, const int16_t* a, const uint8_t* b, int64_t groups, bool adds,
                               int32_t* to) {
  while (rows > 0) {
    const int64_t done = rows >= 6 ? 6 : rows >= 3 ? 3 : 1;
    if (done == 6)
      multiply_half<6>(a, b, groups, adds, to);
    else if (done == 3)
      multiply_half<3>(a, b, groups, adds, to);
    else
      multiply_half<1>(a, b, groups, adds, to);
    rows -= done;
    a += done * kChunkBytes;
    to += done * kTileColumns;
  }
}

void multiply_tile(const IntegerTile& t) {
  alignas(64) int16_t rows[kTileRows * kChunkBytes];
  alignas(64) uint8_t flipped[kChunkGroups * kGroupBytes];
  int64_t begin = 0;
  do {  // once where there is nothing to add, too: sums are written over
    const int64_t groups = t.groups - begin < kChunkGroups ? t.groups - begin : kChunkGroups;
    for (int64_t r = 0; r < t.rows; ++r)
      widen_row(t.a + r * t.a_row + begin * kInnerGroup, groups * kInnerGroup, rows + r * kChunkBytes);
    for (int64_t block = 0; block < t.blocks; ++block) {
      const uint8_t* b = t.b + block * t.b_block + begin * kGroupBytes;
      if (t.flips_b) {
        for (int64_t at = 0; at < groups * kGroupBytes; ++at) flipped[at] = b[at] ^ 0x80;
        b = flipped;
      }
      for (int64_t half = 0; half < 2; ++half)
        multiply_rows(t.rows, rows, b + half * kHalfBytes, groups, begin > 0, t.sums + block * kColumnBlock + half * 8);
    }
    begin += groups;
  } while (begin < t.groups);
}

/// The sums of 16 columns in each of the rows. Products of bytes are added in pairs in 16 bits, which is exact for
/// narrow columns: 2 * 255 * 64 fits.
template <int kRows>
WEFT_INLINE void multiply_bytes(const uint8_t* a, int64_t a_row, const uint8_t* b, int64_t groups, int32_t* to) {
  __m256i first[kRows], second[kRows];  // 8 columns each
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) first[r] = second[r] = _mm256_setzero_si256();
  for (int64_t group = 0; group < groups; ++group, a += kInnerGroup, b += kGroupBytes) {
    const __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
    const __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + kHalfBytes));
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      int32_t four = 0;
      __builtin_memcpy(&four, a + r * a_row, sizeof four);
      const __m256i row_numbers = _mm256_set1_epi32(four);
      first[r] = _mm256_add_epi32(first[r], _mm256_madd_epi16(_mm256_maddubs_epi16(row_numbers, left), ones));
      second[r] = _mm256_add_epi32(second[r], _mm256_madd_epi16(_mm256_maddubs_epi16(row_numbers, right), ones));
      __asm__("" : "+x"(first[r]), "+x"(second[r]));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + r * kTileColumns), first[r]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + r * kTileColumns + 8), second[r]);
  }
}

void multiply_narrow_tile(const IntegerTile& t) {
  constexpr int kMostRows = 4;  // with the columns and what is multiplied in turn they fill the registers
  for (int64_t block = 0; block < t.blocks; ++block) {
    const uint8_t* const b = t.b + block * t.b_block;
    int32_t* const to = t.sums + block * kColumnBlock;
    int64_t row = 0;
    for (; row + kMostRows <= t.rows; row += kMostRows)
      multiply_bytes<kMostRows>(t.a + row * t.a_row, t.a_row, b, t.groups, to + row * kTileColumns);
    for (; row < t.rows; ++row) multiply_bytes<1>(t.a + row * t.a_row, t.a_row, b, t.groups, to + row * kTileColumns);
  }
}

bool are_narrow(const uint8_t* columns, int64_t count) {
  uint8_t most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t at = 0; at < count; ++at) {
    const auto above = static_cast<uint8_t>(columns[at] + 64);
    most = above > most ? above : most;
  }
  return most <= 128;
}

constexpr Loops loops{multiply_tile, {multiply_narrow_tile, are_narrow}};

#else

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
  constexpr int kMostRows = 6;  // as many as registers hold the sums of
  for (int64_t block = 0; block < t.blocks; ++block) {
    int64_t row = 0;
    for (; row + kMostRows <= t.rows; row += kMostRows) multiply_block<kMostRows>(t, row, block);
    for (; row < t.rows; ++row) multiply_block<1>(t, row, block);
  }
}

#endif

#if WEFT_LANES != 8
constexpr Loops loops{multiply_tile, {nullptr, nullptr}};
#endif
