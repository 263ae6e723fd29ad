// Where the largest element is; compiled per instruction set (multiversion.h). A NaN counts as the largest.

/// b where it is larger or no number, else a; of two NaNs, either.
template <typename V>
WEFT_INLINE V larger(V a, V b) {
  return ((b > a) | (b != b)) ? b : a;
}

/// The largest of x[0 .. count).
WEFT_INLINE float largest_of(const float* x, int64_t count) {
  float result = x[0];
  int64_t i = 0;
  if (count >= 4 * kLanes) {
    FloatVector a = load<FloatVector>(x), b = load<FloatVector>(x + kLanes), c = load<FloatVector>(x + 2 * kLanes),
                d = load<FloatVector>(x + 3 * kLanes);
    for (i = 4 * kLanes; i + 4 * kLanes <= count; i += 4 * kLanes) {
      a = larger(a, load<FloatVector>(x + i));
      b = larger(b, load<FloatVector>(x + i + kLanes));
      c = larger(c, load<FloatVector>(x + i + 2 * kLanes));
      d = larger(d, load<FloatVector>(x + i + 3 * kLanes));
    }
    float lanes[kLanes];
    store(lanes, larger(larger(a, b), larger(c, d)));
    for (const float lane : lanes) result = larger(result, lane);
  }
  for (; i < count; ++i) result = larger(result, x[i]);
  return result;
}

/// The first place of `value`, which is there, among x[0 .. count); of NaN, that of the first NaN.
WEFT_INLINE int64_t first_place(const float* x, int64_t count, float value) {
  const bool is_nan = value != value;
  const auto found = [&](float element) { return is_nan ? element != element : element == value; };
  constexpr int64_t kPiece = 64;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t end = std::min(count, begin + kPiece);
    bool any = false;
    if (is_nan)
      for (int64_t i = begin; i < end; ++i) any |= x[i] != x[i];
    else
      for (int64_t i = begin; i < end; ++i) any |= x[i] == value;
    for (int64_t i = begin; any && i < end; ++i)
      if (found(x[i])) return i;
  }
  return 0;
}

/// Of a row: block by block, each of which is searched again, from the first-level cache, only where it holds more than
/// all before it.
int64_t row(const float* x, int64_t count) {
  constexpr int64_t kBlock = 2048;
  int64_t best = 0;
  float most = x[0];
  for (int64_t begin = 0; begin < count && most == most; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    const float value = largest_of(x + begin, size);
    if (begin != 0 && !(value > most || value != value)) continue;
    most = value;
    best = begin + first_place(x + begin, size, value);
  }
  return best;
}

/// Of `width` columns beside each other: x[k * stride + column] for all k < length.
void columns(const float* x, int64_t length, int64_t stride, int64_t width, int32_t* places) {
  for_each_lane_group(width, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    V most = load<V>(x + at);
    float lanes[lanes_of<V>];
    for (int64_t l = 0; l < lanes_of<V>; ++l) places[at + l] = 0;
    // Floats hold whole numbers up to 2^24 exactly, and are moved by the same masks as the values.
    constexpr int64_t kExact = 1 << 24;
    for (int64_t begin = 0; begin < length; begin += kExact) {
      V place = zero<V>() - 1.0f;  // nothing larger found here
      for (int64_t k = begin; k < std::min(length, begin + kExact); ++k) {
        const V value = load<V>(x + k * stride + at);
        const auto taken = (value > most) | ((value != value) & (most == most));
        most = taken ? value : most;
        place = taken ? zero<V>() + static_cast<float>(k - begin) : place;
      }
      store<V>(lanes, place);
      for (int64_t l = 0; l < lanes_of<V>; ++l)
        if (lanes[l] >= 0) places[at + l] = static_cast<int32_t>(begin) + static_cast<int32_t>(lanes[l]);
    }
  });
}

constexpr Loops loops{row, columns};
