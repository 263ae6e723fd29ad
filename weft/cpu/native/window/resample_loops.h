// Loops of resampling; compiled per instruction set (multiversion.h).

template <typename T>
void join_rows(const T* x, int64_t stride, const float* weights, int64_t taps, float* row, int64_t count) {
  if (taps == 0) std::memset(row, 0, static_cast<size_t>(count) * sizeof(float));
  for (int64_t t = 0; t < taps; ++t) {
    const float weight = weights[t];
    const T* from = x + t * stride;
    if (t == 0) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) row[i] = weight * load<float>(from + i);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) row[i] += weight * load<float>(from + i);
    }
  }
}

/// Pixels of one number.
template <typename From, typename T>
WEFT_INLINE void join_single_columns(const From* row, const Taps& taps, T* y) {
  const int64_t *first = taps.first.data(), *begin = taps.begin.data(), outputs = taps.size();
  const float* weights = taps.weights.data();
  int64_t at = 0;
  for (int64_t out = 0; out < outputs; ++out) {
    const From* from = row + first[out] - at;
    float sum = 0;
    for (const int64_t end = begin[out + 1]; at < end; ++at) sum += weights[at] * load<float>(from + at);
    store<float>(y + out, sum);
  }
}

template <typename From, typename T>
void join_columns(const From* row, const Taps& taps, int64_t channels, T* y) {
  if (channels == 1) return join_single_columns(row, taps, y);
  for (int64_t out = 0; out < taps.size(); ++out) {
    const From* from = row + taps.first[static_cast<size_t>(out)] * channels;
    const float* weights = taps.of(out);
    const int64_t count = taps.count(out);
    for_each_lane_group(channels, [&](auto lane, int64_t at) {
      using V = decltype(lane);
      V sum{};
      for (int64_t t = 0; t < count; ++t) sum += weights[t] * load<V>(from + t * channels + at);
      store<V>(y + out * channels + at, sum);
    });
  }
}

template <typename T>
constexpr Loops<T> loops{join_rows<T>, join_columns<float, T>, join_columns<T, T>};
