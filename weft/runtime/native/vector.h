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

/// Asks for the line that a loop over rows of `stride` floats reads a little later: 24 cache lines on. The hardware's
/// own prefetchers stop at each page of 4 KB, which is only 64 rows of 16 channels.
WEFT_INLINE void prefetch_row(const float* row, int64_t stride) { __builtin_prefetch(row + 24 * stride); }
constexpr int64_t kLine = 16;  // floats in a cache line: the "stride" of loops along contiguous memory

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

/// Calls body(V{}, first) for pieces of `count` adjacent channels: whole vectors, then quarters, then single floats.
template <typename Body>
WEFT_INLINE void for_each_lane_group(int64_t count, Body&& body) {
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) body(FloatVector{}, at);
  if constexpr (kLanes > 4)
    for (; at + 4 <= count; at += 4) body(FloatVector4{}, at);
  for (; at < count; ++at) body(float{}, at);
}
