// Vectors of WEFT_LANES floats and the few functions that loops need. Included by multiversion.h once per instruction
// set, inside that set's namespace: hence no include guard and no includes.

typedef float FloatVector __attribute__((vector_size(4 * WEFT_LANES)));
typedef float FloatVector4 __attribute__((vector_size(16)));
constexpr int64_t kLanes = WEFT_LANES;

/// The number of floats in a vector type; 1 for float itself: loops are templates over both.
template <typename V>
constexpr int64_t lanes_of = static_cast<int64_t>(sizeof(V) / sizeof(float));

template <typename V>
WEFT_INLINE V load(const float* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <typename V>
WEFT_INLINE void store(float* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// The bits of a vector's numbers: in f32, as pairs of halves, and in bf16, which is the upper halves.
template <int64_t lanes>
struct Bits {
  typedef uint32_t Wide __attribute__((vector_size(4 * lanes)));
  typedef uint16_t Halves __attribute__((vector_size(4 * lanes)));
  typedef uint16_t Narrow __attribute__((vector_size(2 * lanes)));
};
template <>
struct Bits<1> {
  using Wide = uint32_t;
  using Narrow = uint16_t;
};

/// 0, bits[0], 0, bits[1], ... One shuffle, where a conversion of the integers takes gcc 12 four or more instructions.
template <int64_t lanes, size_t... I>
WEFT_INLINE typename Bits<lanes>::Halves widened(typename Bits<lanes>::Narrow bits, std::index_sequence<I...>) {
  constexpr int kCount = static_cast<int>(lanes);
  return __builtin_shufflevector(typename Bits<lanes>::Narrow{}, bits, (static_cast<int>(I / 2 + I % 2 * kCount))...);
}
/// bits[1], bits[3], ...
template <int64_t lanes, size_t... I>
WEFT_INLINE typename Bits<lanes>::Narrow upper_halves(typename Bits<lanes>::Halves bits, std::index_sequence<I...>) {
  return __builtin_shufflevector(bits, bits, (static_cast<int>(2 * I + 1))...);
}

template <typename V>
WEFT_INLINE V load(const Bf16* from) {
  constexpr int64_t kCount = lanes_of<V>;
  typename Bits<kCount>::Narrow bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  if constexpr (kCount == 1)
    return __builtin_bit_cast(V, static_cast<uint32_t>(bits) << 16);
  else
    return __builtin_bit_cast(V, widened<kCount>(bits, std::make_index_sequence<2 * kCount>{}));
}

/// The numbers as bf16, in the upper halves of their 32 bits; the lower halves are arbitrary. To nearest, ties to even;
/// NaN stays a (quiet) NaN. Not by the processor's own conversion (AVX512_BF16), which makes zeros of subnormal
/// numbers.
template <typename V>
WEFT_INLINE typename Bits<lanes_of<V>>::Wide rounded_above(V value) {
  using Wide = typename Bits<lanes_of<V>>::Wide;
  const Wide bits = __builtin_bit_cast(Wide, value);
  const Wide rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return value != value ? bits | 0x400000u : rounded;
}

template <typename V>
WEFT_INLINE void store_upper_halves(Bf16* to, typename Bits<lanes_of<V>>::Wide chosen) {
  constexpr int64_t kCount = lanes_of<V>;
  using Narrow = typename Bits<kCount>::Narrow;
  Narrow narrow;
  if constexpr (kCount == 1)
    narrow = static_cast<Narrow>(chosen >> 16);
  else if constexpr (kLanes == 4)  // gcc 12 moves 16-bit elements one by one where it has SSE2 alone
    narrow = __builtin_convertvector(chosen >> 16, Narrow);
  else
    narrow = upper_halves<kCount>(__builtin_bit_cast(typename Bits<kCount>::Halves, chosen),
                                  std::make_index_sequence<kCount>{});
  __builtin_memcpy(to, &narrow, sizeof narrow);
}

template <typename V>
WEFT_INLINE void store(Bf16* to, V value) {
  store_upper_halves<V>(to, rounded_above(value));
}

/// The same of what is computed from numbers in bf16 alone, without looking for NaN: one that comes from bf16 or from
/// the processor has zeros in its lower half, so that rounding cannot carry into the upper one.
template <typename V>
WEFT_INLINE void store_from_bf16(Bf16* to, V value) {
  const auto bits = __builtin_bit_cast(typename Bits<lanes_of<V>>::Wide, value);
  store_upper_halves<V>(to, bits + 0x7fffu + ((bits >> 16) & 1u));
}
template <typename V>
WEFT_INLINE void store_from_bf16(float* to, V value) {
  store<V>(to, value);
}

/// Some of a vector's lanes: those from `first` on, as many as there are indices.
template <int64_t first, typename Vector, size_t... I>
WEFT_INLINE auto lanes_from(Vector vector, std::index_sequence<I...>) {
  return __builtin_shufflevector(vector, vector, (static_cast<int>(first + static_cast<int64_t>(I)))...);
}

/// combine(a, b) of all lanes, the first half with the last, down to one number.
template <typename Vector, typename Combine>
WEFT_INLINE float across_lanes(Vector vector, Combine&& combine) {
  constexpr int64_t kHalf = lanes_of<Vector> / 2;
  if constexpr (kHalf == 2) {
    const Vector pairs = combine(vector, __builtin_shufflevector(vector, vector, 2, 3, 0, 1));
    return combine(pairs, __builtin_shufflevector(pairs, pairs, 1, 0, 3, 2))[0];
  } else {
    constexpr auto kIndices = std::make_index_sequence<static_cast<size_t>(kHalf)>{};
    return across_lanes(combine(lanes_from<0>(vector, kIndices), lanes_from<kHalf>(vector, kIndices)), combine);
  }
}
/// The sum of all lanes, in f32.
WEFT_INLINE float sum_across_lanes(FloatVector vector) {
  return across_lanes(vector, [](auto a, auto b) { return a + b; });
}

/// Asks for the line that a loop over rows of `stride` numbers reads a little later: 24 rows or cache lines on. The
/// hardware's own prefetchers stop at each page of 4 KB, which is only 64 rows of 16 channels.
template <typename T>
WEFT_INLINE void prefetch_row(const T* row, int64_t stride) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  __builtin_prefetch(row + 24 * std::max(stride, kLine));
}

/// All lanes zero.
template <typename V>
WEFT_INLINE V zero() {
  return V{};
}

/// max(x, 0), NaN stays NaN.
template <typename V>
WEFT_INLINE V rectify(V x) {
  return zero<V>() > x ? zero<V>() : x;
}

/// Sum of the lanes, in lane order, in double.
template <typename V>
WEFT_INLINE double sum_lanes(V value) {
  float lanes[lanes_of<V>];
  __builtin_memcpy(lanes, &value, sizeof value);
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

/// Sums what for_each_lane_group() gives, in f32.
class LaneSum {
 public:
  WEFT_INLINE void add(FloatVector values) { vectors_ += values; }
  template <typename V>
  WEFT_INLINE void add(V values) {
    if constexpr (lanes_of<V> == 1)
      rest_ += values;
    else
      rest_ += across_lanes(values, [](auto a, auto b) { return a + b; });
  }
  WEFT_INLINE float total() const { return sum_across_lanes(vectors_) + rest_; }

 private:
  FloatVector vectors_{};
  float rest_ = 0;
};

/// Calls body(V{}, first) for pieces of `count` adjacent channels: whole vectors, then quarters, then single floats.
template <typename Body>
WEFT_INLINE void for_each_lane_group(int64_t count, Body&& body) {
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) body(FloatVector{}, at);
  if constexpr (kLanes > 4)
    for (; at + 4 <= count; at += 4) body(FloatVector4{}, at);
  for (; at < count; ++at) body(float{}, at);
}
