// Loops of dropout; compiled per instruction set (multiversion.h).

constexpr int64_t kDraws = 16;  // made together: whole vectors on every instruction set

/// philox (base/rng.h) for the counters first, first + 1, ...: the words of counter c at words[4 * (c - first)]. A draw
/// is a lane of 64 bits, which holds one word and is as wide as the products.
WEFT_INLINE void draw_block(uint64_t key, uint64_t counter_high, uint64_t first, uint32_t* words) {
  constexpr uint64_t kWord = 0xFFFFFFFFu;
#pragma omp simd
  for (int64_t i = 0; i < kDraws; ++i) {
    const uint64_t counter = first + static_cast<uint64_t>(i);
    uint64_t x0 = counter & kWord, x1 = counter >> 32, x2 = counter_high & kWord, x3 = counter_high >> 32;
    uint64_t k0 = key & kWord, k1 = key >> 32;
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = 0xD2511F53u * x0, p1 = 0xCD9E8D57u * x2;
      x0 = (p1 >> 32) ^ x1 ^ k0;
      x2 = (p0 >> 32) ^ x3 ^ k1;
      x1 = p1 & kWord;
      x3 = p0 & kWord;
      k0 = (k0 + 0x9E3779B9u) & kWord;
      k1 = (k1 + 0xBB67AE85u) & kWord;
    }
    words[4 * i] = static_cast<uint32_t>(x0);
    words[4 * i + 1] = static_cast<uint32_t>(x1);
    words[4 * i + 2] = static_cast<uint32_t>(x2);
    words[4 * i + 3] = static_cast<uint32_t>(x3);
  }
}

/// Elements [begin, end), begin a multiple of 4: dropped where the top 24 bits of the word lie below `threshold`.
template <typename T>
void dropout(const T* x, T* y, int64_t begin, int64_t end, uint64_t key, uint64_t step, uint32_t threshold,
             float factor) {
  uint32_t words[4 * kDraws];
  for (int64_t at = begin; at < end; at += 4 * kDraws) {
    draw_block(key, step, static_cast<uint64_t>(at / 4), words);
    const int64_t count = std::min(4 * kDraws, end - at);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const float scaled = load<float>(x + at + i) * factor;
      const uint32_t kept = (words[i] >> 8) < threshold ? 0u : ~0u;  // bits, lest the compiler branch on chance
      store<float>(y + at + i, __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) & kept));
    }
  }
}

template <typename T>
constexpr Loops<T> loops{dropout<T>};
