// Loops of the data's gradient of convolutions of few channels; compiled per instruction set (multiversion.h).

/// The numbers of the first lanes, 0 in the others whatever they hold.
WEFT_INLINE FloatVector first_lanes(FloatVector value, int64_t count) {
  typename Bits<kLanes>::Wide lane;
  for (int64_t i = 0; i < kLanes; ++i) lane[i] = static_cast<uint32_t>(i);
  const auto keep = lane < static_cast<uint32_t>(count);
  return __builtin_bit_cast(FloatVector, __builtin_bit_cast(typename Bits<kLanes>::Wide, value) &
                                             __builtin_bit_cast(typename Bits<kLanes>::Wide, keep));
}

/// Adds what kPositions of the gradient, one below the other, give to as many rows of the image: per position a row of
/// the kernel, all its columns and channels beside each other in kVectors registers. Below each other, because what
/// neighbours in a row give overlaps, and would wait for the numbers that were just stored.
template <int64_t kVectors, int64_t kPositions>
WEFT_INLINE void spread(const TapSpread& s, const float* gradient, float* image) {
  FloatVector sums[kPositions][kVectors] = {};
#pragma GCC unroll 4
  for (int64_t o = 0; o < kLanes; ++o) {
    FloatVector weights[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) weights[v] = load<FloatVector>(s.weights + (o * kVectors + v) * kLanes);
    for (int64_t p = 0; p < kPositions; ++p)
      for (int64_t v = 0; v < kVectors; ++v) sums[p][v] += gradient[p * s.gradient_row + o] * weights[v];
  }
  for (int64_t p = 0; p < kPositions; ++p) {
    float* to = image + p * s.image_row;
    for (int64_t v = 0; v < kVectors; ++v) {
      const FloatVector sum = v + 1 < kVectors ? sums[p][v] : first_lanes(sums[p][v], s.last_lanes);
      store<FloatVector>(to + v * kLanes, load<FloatVector>(to + v * kLanes) + sum);
    }
  }
}

template <int64_t kVectors, int64_t kPositions>
WEFT_INLINE void spread_rows(const TapSpread& s, int64_t y) {
  for (int64_t x = 0; x < s.columns; ++x)
    spread<kVectors, kPositions>(s, s.gradient + y * s.gradient_row + x * kLanes,
                                 s.image + y * s.image_row + x * s.channels);
}

template <int64_t kVectors>
void spread_tap(const TapSpread& s) {
  constexpr int64_t kMost = kVectors > 2 ? 4 : 6;  // positions whose sums find room in registers
  int64_t y = 0;
  for (; y + kMost <= s.rows; y += kMost) spread_rows<kVectors, kMost>(s, y);
  if (y + 4 <= s.rows) {
    spread_rows<kVectors, 4>(s, y);
    y += 4;
  }
  if (y + 2 <= s.rows) {
    spread_rows<kVectors, 2>(s, y);
    y += 2;
  }
  if (y < s.rows) spread_rows<kVectors, 1>(s, y);
}

/// Pixels whose channels lie close become pixels of a whole block each; the rest of the block is 0.
void to_blocks(const float* pixels, int64_t count, int64_t channels, float* blocks) {
  for (int64_t i = 0; i < count; ++i)
    store<FloatVector>(blocks + i * kLanes, first_lanes(load<FloatVector>(pixels + i * channels), channels));
}

constexpr Loops loops{kLanes, {spread_tap<1>, spread_tap<2>, spread_tap<3>, spread_tap<4>}, to_blocks};
