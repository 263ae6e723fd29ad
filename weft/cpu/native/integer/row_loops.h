// Loops over rows of integers; compiled per instruction set (multiversion.h). Whole vectors first, then number by
// number, by the same operations in the same order. The files that include this are compiled without contraction: a
// product and a sum are rounded one after the other.

typedef int32_t IntVector __attribute__((vector_size(4 * WEFT_LANES)));
template <typename T>
struct ByteVector {
  typedef T Type __attribute__((vector_size(WEFT_LANES)));
};

/// 1.5 * 2^23: what is added to it is rounded to a whole number, half to even, and stands in its lowest bits.
constexpr float kRounder = 12582912.0f;
constexpr int32_t kRounderBits = 0x4b400000;

struct StepLimits {
  float low, high;
  int32_t zero_point;
};
WEFT_INLINE StepLimits limits_of(int32_t zero_point, const ops::IntegerRange& range) {
  return {static_cast<float>(range.low - zero_point), static_cast<float>(range.high - zero_point), zero_point};
}

/// ops::round_steps
WEFT_INLINE IntVector round_steps(FloatVector steps, const StepLimits& limits) {
  const FloatVector low = limits.low - FloatVector{}, high = limits.high - FloatVector{};
  const FloatVector above = steps > low ? steps : low;
  const FloatVector within = above < high ? above : high;
  const FloatVector rounded = within + kRounder;
  IntVector bits;
  __builtin_memcpy(&bits, &rounded, sizeof bits);
  return bits - kRounderBits + limits.zero_point;
}
WEFT_INLINE int32_t round_steps(float steps, const StepLimits& limits) {
  const float above = steps > limits.low ? steps : limits.low;
  const float within = above < limits.high ? above : limits.high;
  const float rounded = within + kRounder;
  int32_t bits;
  __builtin_memcpy(&bits, &rounded, sizeof bits);
  return bits - kRounderBits + limits.zero_point;
}

WEFT_INLINE IntVector load_integers(const int32_t* from) {
  IntVector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
// gcc 12 takes many shuffles for a conversion from or to bytes, and warns of its own header where no mask is given.
#if WEFT_LANES == 16
constexpr __mmask16 kAllLanes = 0xffff;
#endif
template <typename T>
WEFT_INLINE IntVector load_bytes(const T* from) {
#if WEFT_LANES == 16
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return __builtin_bit_cast(IntVector, std::is_signed_v<T> ? _mm512_maskz_cvtepi8_epi32(kAllLanes, bytes)
                                                           : _mm512_maskz_cvtepu8_epi32(kAllLanes, bytes));
#elif WEFT_LANES == 8
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return __builtin_bit_cast(IntVector, std::is_signed_v<T> ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
#else
  typename ByteVector<T>::Type bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, IntVector);
#endif
}
/// Of numbers that T has.
template <typename T>
WEFT_INLINE void store_bytes(T* to, IntVector value) {
#if WEFT_LANES == 16
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm512_maskz_cvtepi32_epi8(kAllLanes, __builtin_bit_cast(__m512i, value)));
#elif WEFT_LANES == 8
  const __m256i wide = __builtin_bit_cast(__m256i, value);
  const __m256i halves = _mm256_permute4x64_epi64(_mm256_packs_epi32(wide, wide), 0x08);
  const __m128i narrow = _mm256_castsi256_si128(halves);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to),
                   std::is_signed_v<T> ? _mm_packs_epi16(narrow, narrow) : _mm_packus_epi16(narrow, narrow));
#else
  const auto bytes = __builtin_convertvector(value, typename ByteVector<T>::Type);
  __builtin_memcpy(to, &bytes, sizeof bytes);
#endif
}
#if WEFT_LANES == 8
/// Four vectors of such numbers, which cross the halves of the registers once, together.
template <typename T>
WEFT_INLINE void store_bytes(T* to, const IntVector (&values)[4]) {
  const auto packed = [&](int at) {
    return _mm256_packs_epi32(__builtin_bit_cast(__m256i, values[at]), __builtin_bit_cast(__m256i, values[at + 1]));
  };
  const __m256i left = packed(0), right = packed(2);
  const __m256i bytes = std::is_signed_v<T> ? _mm256_packs_epi16(left, right) : _mm256_packus_epi16(left, right);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
}
#endif
WEFT_INLINE FloatVector as_reals(IntVector value) { return __builtin_convertvector(value, FloatVector); }
WEFT_INLINE FloatVector load_reals(const float* from) { return load<FloatVector>(from); }

typedef uint32_t UnsignedVector __attribute__((vector_size(4 * WEFT_LANES)));

WEFT_INLINE UnsignedVector load_unsigned(const int32_t* from) {
  UnsignedVector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

WEFT_INLINE IntVector sums_at(const RowSums& row, int64_t c) {
  UnsignedVector sum = load_unsigned(row.sums + c);
  if (row.added != nullptr) sum += load_unsigned(row.added + c);
  if (row.zeros != nullptr) sum -= load_unsigned(row.zeros + c) * static_cast<uint32_t>(row.row_sum);
  return __builtin_bit_cast(IntVector, sum);
}
WEFT_INLINE int32_t sum_at(const RowSums& row, int64_t c) {
  auto sum = static_cast<uint32_t>(row.sums[c]);
  if (row.added != nullptr) sum += static_cast<uint32_t>(row.added[c]);
  if (row.zeros != nullptr) sum -= static_cast<uint32_t>(row.zeros[c]) * static_cast<uint32_t>(row.row_sum);
  return static_cast<int32_t>(sum);
}

void store_sums(const RowSums& row, int32_t* to) {
  int64_t c = 0;
  for (; c + kLanes <= row.count; c += kLanes) {
    const IntVector sums = sums_at(row, c);
    __builtin_memcpy(to + c, &sums, sizeof sums);
  }
  for (; c < row.count; ++c) to[c] = sum_at(row, c);
}

void store_reals(const RowSums& row, const float* factors, const float* bias, float* to) {
  int64_t c = 0;
  for (; c + kLanes <= row.count; c += kLanes) {
    FloatVector reals = as_reals(sums_at(row, c)) * load_reals(factors + c);
    if (bias != nullptr) reals += load_reals(bias + c);
    store(to + c, reals);
  }
  for (; c < row.count; ++c) {
    const float real = static_cast<float>(sum_at(row, c)) * factors[c];
    to[c] = bias != nullptr ? real + bias[c] : real;
  }
}

/// kVectors vectors of channels, in all rows, whose numbers are loaded once.
template <int kVectors, typename T>
WEFT_INLINE void requantize_channels(const RowSums& rows, const ChannelFactors& of, const StepLimits& limits, int64_t c,
                                     T* y) {
  FloatVector factors[kVectors];
  UnsignedVector added[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = c + v * kLanes;
    factors[v] = load_reals(of.factors + at);
    added[v] = rows.added != nullptr ? load_unsigned(rows.added + at) : UnsignedVector{};
    if (rows.zeros != nullptr) added[v] -= load_unsigned(rows.zeros + at) * static_cast<uint32_t>(rows.row_sum);
  }
  const int32_t* sums = rows.sums + c;
  for (int64_t r = 0; r < rows.rows; ++r, sums += rows.sums_row, y += rows.result_row) {
    IntVector steps[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const IntVector sum = __builtin_bit_cast(IntVector, load_unsigned(sums + v * kLanes) + added[v]);
      steps[v] = round_steps(as_reals(sum) * factors[v], limits);
    }
    if constexpr (kVectors == 1)
      store_bytes(y + c, steps[0]);
    else
      store_bytes(y + c, steps);
  }
}

template <typename T>
void requantize_real(const RowSums& rows, const ChannelFactors& of, void* to) {
  T* const y = static_cast<T*>(to);
  const StepLimits limits = limits_of(of.zero_point, of.range);
  int64_t c = 0;
#if WEFT_LANES == 8
  for (; c + 4 * kLanes <= rows.count; c += 4 * kLanes) requantize_channels<4>(rows, of, limits, c, y);
#endif
  for (; c + kLanes <= rows.count; c += kLanes) requantize_channels<1>(rows, of, limits, c, y);
  for (; c < rows.count; ++c) {
    RowSums row = rows;
    for (int64_t r = 0; r < rows.rows; ++r, row.sums += rows.sums_row)
      y[r * rows.result_row + c] =
          static_cast<T>(round_steps(static_cast<float>(sum_at(row, c)) * of.factors[c], limits));
  }
}

template <typename T>
void requantize_fixed(const RowSums& rows, const ChannelFactors& of, void* to) {
  T* y = static_cast<T*>(to);
  RowSums row = rows;
  for (int64_t r = 0; r < rows.rows; ++r, row.sums += rows.sums_row, y += rows.result_row)
    for (int64_t c = 0; c < row.count; ++c) {
      const int64_t product = int64_t{sum_at(row, c)} * of.multipliers[c];
      const int64_t half = of.shifts[c] == 0 ? 0 : int64_t{1} << (of.shifts[c] - 1);
      const int64_t value = ((product + half) >> of.shifts[c]) + of.zero_point;
      y[c] = static_cast<T>(value < of.range.low ? of.range.low : value > of.range.high ? of.range.high : value);
    }
}

template <typename T>
void quantize_run(const QuantizeRun& run, void* to) {
  T* const y = static_cast<T*>(to);
  int64_t i = 0;
  if (run.per_channel) {
    for (; i < run.count; ++i)
      y[i] = static_cast<T>(round_steps(run.x[i] / run.scales[i], limits_of(run.zero_points[i], run.range)));
    return;
  }
  const StepLimits limits = limits_of(*run.zero_points, run.range);
  const float scale = *run.scales;
  for (; i + kLanes <= run.count; i += kLanes) store_bytes(y + i, round_steps(load_reals(run.x + i) / scale, limits));
  for (; i < run.count; ++i) y[i] = static_cast<T>(round_steps(run.x[i] / scale, limits));
}

template <typename T>
void dequantize_run(const DequantizeRun& run, const void* from, float* to) {
  const T* const q = static_cast<const T*>(from);
  int64_t i = 0;
  if (run.per_channel) {
    for (; i + kLanes <= run.count; i += kLanes)
      store(to + i, as_reals(load_bytes(q + i) - load_integers(run.zero_points + i)) * load_reals(run.scales + i));
    for (; i < run.count; ++i) to[i] = static_cast<float>(q[i] - run.zero_points[i]) * run.scales[i];
    return;
  }
  const int32_t zero = *run.zero_points;
  const float scale = *run.scales;
  for (; i + kLanes <= run.count; i += kLanes) store(to + i, as_reals(load_bytes(q + i) - zero) * scale);
  for (; i < run.count; ++i) to[i] = static_cast<float>(q[i] - zero) * scale;
}

template <typename A, typename B, typename T>
void add_run(const AddRun& run, const void* a_data, const void* b_data, void* to) {
  const A* const a = static_cast<const A*>(a_data);
  const B* const b = static_cast<const B*>(b_data);
  T* const y = static_cast<T*>(to);
  const StepLimits limits = limits_of(run.zero_point, run.range);
  int64_t i = 0;
  for (; i + kLanes <= run.count; i += kLanes) {
    const FloatVector left = as_reals(load_bytes(a + i) - run.a_zero) * run.a_scale;
    const FloatVector right = as_reals(load_bytes(b + i) - run.b_zero) * run.b_scale;
    store_bytes(y + i, round_steps((left + right) / run.scale, limits));
  }
  for (; i < run.count; ++i) {
    const float left = static_cast<float>(a[i] - run.a_zero) * run.a_scale;
    const float right = static_cast<float>(b[i] - run.b_zero) * run.b_scale;
    y[i] = static_cast<T>(round_steps((left + right) / run.scale, limits));
  }
}

template <typename Q, typename T>
void affine_run(const AffineRun& run, const void* from, void* to) {
  const Q* const q = static_cast<const Q*>(from);
  T* const y = static_cast<T*>(to);
  const StepLimits limits = limits_of(run.zero_point, run.range);
  int64_t i = 0;
  if (run.per_channel) {
    for (; i + kLanes <= run.count; i += kLanes) {
      const FloatVector scaled = as_reals(load_bytes(q + i)) * load_reals(run.factors + i);
      store_bytes(y + i, round_steps(scaled + load_reals(run.shifts + i), limits));
    }
    for (; i < run.count; ++i) {
      const float scaled = static_cast<float>(q[i]) * run.factors[i];
      y[i] = static_cast<T>(round_steps(scaled + run.shifts[i], limits));
    }
    return;
  }
  const float factor = *run.factors, shift = *run.shifts;
  for (; i + kLanes <= run.count; i += kLanes) {
    const FloatVector scaled = as_reals(load_bytes(q + i)) * factor;
    store_bytes(y + i, round_steps(scaled + shift, limits));
  }
  for (; i < run.count; ++i) {
    const float scaled = static_cast<float>(q[i]) * factor;
    y[i] = static_cast<T>(round_steps(scaled + shift, limits));
  }
}

#if WEFT_LANES >= 8
/// Eight channels by two taps, as pairs of 16 bits.
template <typename T>
WEFT_INLINE __m256i widened_pairs(__m128i pairs) {
  return std::is_same_v<T, uint8_t> ? _mm256_cvtepu8_epi16(pairs) : _mm256_cvtepi8_epi16(pairs);
}

/// 16 channels from c on.
template <typename T>
WEFT_INLINE void depthwise_block(const DepthwisePosition& p, int64_t c) {
  __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
  const int16_t* weights = p.weights + 2 * c;
  for (int64_t pair = 0; pair < p.pairs; ++pair, weights += 2 * p.channels) {
    const auto load_tap = [&](int64_t tap) {
      __m128i bytes;
      __builtin_memcpy(&bytes, static_cast<const T*>(p.taps[tap]) + c, sizeof bytes);
      return bytes;
    };
    const auto load_weights = [&](int64_t at) {
      __m256i pairs;
      __builtin_memcpy(&pairs, weights + at, sizeof pairs);
      return pairs;
    };
    const __m128i first = load_tap(2 * pair), second = load_tap(2 * pair + 1);
    low = _mm256_add_epi32(low, _mm256_madd_epi16(widened_pairs<T>(_mm_unpacklo_epi8(first, second)), load_weights(0)));
    high =
        _mm256_add_epi32(high, _mm256_madd_epi16(widened_pairs<T>(_mm_unpackhi_epi8(first, second)), load_weights(16)));
  }
  __builtin_memcpy(p.sums + c, &low, sizeof low);
  __builtin_memcpy(p.sums + c + 8, &high, sizeof high);
}
#endif

template <typename T>
void depthwise(const DepthwisePosition& p) {
  int64_t c = 0;
#if WEFT_LANES >= 8
  for (; c + 16 <= p.channels; c += 16) depthwise_block<T>(p, c);
#endif
  for (; c < p.channels; ++c) {
    int32_t sum = 0;
    for (int64_t tap = 0; tap < 2 * p.pairs; ++tap)
      sum += static_cast<const T*>(p.taps[tap])[c] * p.weights[(tap / 2 * p.channels + c) * 2 + tap % 2];
    p.sums[c] = sum;
  }
}

template <typename T>
void maximum(void* to_data, const void* from_data, int64_t count) {
  T* const to = static_cast<T*>(to_data);
  const T* const from = static_cast<const T*>(from_data);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] > to[i] ? from[i] : to[i];
}

void flip_bytes(const uint8_t* from, uint8_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(from[i] ^ 0x80);
}

int32_t sum_of_bytes(const uint8_t* from, int64_t count) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += from[i];
  return static_cast<int32_t>(sum);
}

template <typename T>
constexpr ByteLoops byte_loops{requantize_real<T>, requantize_fixed<T>, quantize_run<T>,
                               dequantize_run<T>,  depthwise<T>,        maximum<T>};

constexpr Loops loops{store_sums,
                      store_reals,
                      flip_bytes,
                      sum_of_bytes,
                      byte_loops<int8_t>,
                      byte_loops<uint8_t>,
                      {{{add_run<int8_t, int8_t, int8_t>, add_run<int8_t, int8_t, uint8_t>},
                        {add_run<int8_t, uint8_t, int8_t>, add_run<int8_t, uint8_t, uint8_t>}},
                       {{add_run<uint8_t, int8_t, int8_t>, add_run<uint8_t, int8_t, uint8_t>},
                        {add_run<uint8_t, uint8_t, int8_t>, add_run<uint8_t, uint8_t, uint8_t>}}},
                      {affine_run<int8_t, int8_t>, affine_run<uint8_t, uint8_t>}};
