// Loops of the weights' gradient of convolutions of few channels; compiled per instruction set (multiversion.h).

/// Adds to sums[tap][channel of the block] the products of every position of one image: one register for each tap of a
/// kernel of kSize x kSize, one load of the gradient for all of them.
template <int64_t kSize>
void tap_sums(const TapSums& t) {
  FloatVector sums[kSize * kSize];
  for (int64_t tap = 0; tap < kSize * kSize; ++tap) sums[tap] = load<FloatVector>(t.sums + tap * kLanes);
  for (int64_t y = 0; y < t.rows; ++y) {
    const float* gradient = t.gradient + y * t.columns * kLanes;
    const float* image = t.image + y * t.stride * t.row;
    for (int64_t x = 0; x < t.columns; ++x, gradient += kLanes, image += t.column_stride) {
      const FloatVector g = load<FloatVector>(gradient);
#pragma GCC unroll 5
      for (int64_t dy = 0; dy < kSize; ++dy)
#pragma GCC unroll 5
        for (int64_t dx = 0; dx < kSize; ++dx) sums[dy * kSize + dx] += g * image[dy * t.row + dx];
    }
  }
  for (int64_t tap = 0; tap < kSize * kSize; ++tap) store<FloatVector>(t.sums + tap * kLanes, sums[tap]);
}

void position_sums(const float* gradient, int64_t positions, float* sums) {
  FloatVector a = load<FloatVector>(sums), b{};
  int64_t at = 0;
  for (; at + 2 <= positions; at += 2) {
    a += load<FloatVector>(gradient + at * kLanes);
    b += load<FloatVector>(gradient + (at + 1) * kLanes);
  }
  for (; at < positions; ++at) a += load<FloatVector>(gradient + at * kLanes);
  store<FloatVector>(sums, a + b);
}

constexpr Loops loops{kLanes, tap_sums<3>, tap_sums<5>, position_sums};
