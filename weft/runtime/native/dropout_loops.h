// Dropout's loop; compiled per instruction set (multiversion.h).

/// The four Philox words of kLanes counters at once, word by word.
WEFT_INLINE void philox_lanes(uint64_t key, uint64_t high, uint64_t low, uint32_t words[4][kLanes]) {
  uint32_t keys[10][2];
  for (uint32_t round = 0; round < 10; ++round) {
    keys[round][0] = static_cast<uint32_t>(key) + round * 0x9E3779B9u;
    keys[round][1] = static_cast<uint32_t>(key >> 32) + round * 0xBB67AE85u;
  }
#pragma omp simd
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t counter = low + static_cast<uint64_t>(lane);
    uint32_t x0 = static_cast<uint32_t>(counter), x1 = static_cast<uint32_t>(counter >> 32);
    uint32_t x2 = static_cast<uint32_t>(high), x3 = static_cast<uint32_t>(high >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = 0xD2511F53ull * x0, p1 = 0xCD9E8D57ull * x2;
      const uint32_t y0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ keys[round][0];
      const uint32_t y2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ keys[round][1];
      x1 = static_cast<uint32_t>(p1);
      x3 = static_cast<uint32_t>(p0);
      x0 = y0;
      x2 = y2;
    }
    words[0][lane] = x0;
    words[1][lane] = x1;
    words[2][lane] = x2;
    words[3][lane] = x3;
  }
}

/// Elements [begin, end), begin a multiple of 4: dropped where the top 24 bits of the word lie below `threshold`.
void dropout(const float* x, float* y, int64_t begin, int64_t end, uint64_t key, uint64_t step, uint32_t threshold,
             float factor) {
  uint32_t words[4][kLanes];
  for (int64_t at = begin; at < end; at += 4 * kLanes) {
    philox_lanes(key, step, static_cast<uint64_t>(at / 4), words);
    const int64_t count = std::min(4 * kLanes, end - at);
    for (int64_t i = 0; i < count; ++i) y[at + i] = (words[i % 4][i / 4] >> 8) < threshold ? 0.0f : x[at + i] * factor;
  }
}

constexpr Loops loops{dropout};
