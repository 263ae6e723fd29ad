// Loops of batch_norm and batch_norm_inference over one chunk of rows; compiled per instruction set (multiversion.h).

/// Joins `count` samples with mean `m` and sum of squared deviations `q` to those seen before
/// (Chan, Golub and LeVeque 1983), so that a large mean costs no digits of the variance.
WEFT_INLINE void join_moments(double count, double m, double q, double before, double& mean, double& squares) {
  const double delta = m - mean, total = before + count;
  mean += delta * count / total;
  squares += q + delta * delta * before * count / total;
}

/// The samples' deviations from a center near their mean, summed once and squared. The center is the mean so far: where
/// the new samples' mean is far from it, so that their own variance loses digits, the distance itself makes up nearly
/// all of the joined variance.
template <typename V, typename T>
WEFT_INLINE V column_mean(const T* x, int64_t rows, int64_t stride) {
  V sum{};
  for (int64_t r = 0; r < rows; ++r) sum += load<V>(x + r * stride);
  return sum / static_cast<float>(rows);
}

template <typename V, typename T>
WEFT_INLINE void column_moments(const T* x, int64_t rows, int64_t stride, double before, double* mean,
                                double* squares) {
  float centers[lanes_of<V>], drift[lanes_of<V>], square[lanes_of<V>];
  if (before == 0) {
    store<V>(centers, column_mean<V>(x, std::min<int64_t>(rows, 16), stride));
  } else {
    for (int64_t l = 0; l < lanes_of<V>; ++l) centers[l] = static_cast<float>(mean[l]);
  }
  const V center = load<V>(centers);
  V d0{}, d1{}, d2{}, d3{}, q0{}, q1{}, q2{}, q3{};
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    for (int64_t k = 0; k < 4; ++k) prefetch_row(x + (r + k) * stride, stride);
    const V a = load<V>(x + r * stride) - center, b = load<V>(x + (r + 1) * stride) - center,
            c = load<V>(x + (r + 2) * stride) - center, d = load<V>(x + (r + 3) * stride) - center;
    d0 += a;
    d1 += b;
    d2 += c;
    d3 += d;
    q0 += a * a;
    q1 += b * b;
    q2 += c * c;
    q3 += d * d;
  }
  for (; r < rows; ++r) {
    const V a = load<V>(x + r * stride) - center;
    d0 += a;
    q0 += a * a;
  }
  store<V>(drift, (d0 + d1) + (d2 + d3));
  store<V>(square, (q0 + q1) + (q2 + q3));
  const auto count = static_cast<double>(rows);
  for (int64_t l = 0; l < lanes_of<V>; ++l) {
    const double d = static_cast<double>(drift[l]) / count;
    join_moments(count, static_cast<double>(centers[l]) + d, static_cast<double>(square[l]) - d * d * count, before,
                 mean[l], squares[l]);
  }
}

/// A row of one channel: the vectors run along the rows.
template <typename T>
WEFT_INLINE void contiguous_moments(const T* x, int64_t rows, double before, double& mean, double& squares) {
  float center = static_cast<float>(mean);
  if (before == 0) center = column_mean<float>(x, std::min<int64_t>(rows, 16), 1);
  FloatVector d0{}, d1{}, q0{}, q1{};
  int64_t r = 0;
  for (; r + 2 * kLanes <= rows; r += 2 * kLanes) {
    prefetch_row(x + r, 1);
    prefetch_row(x + r + kLanes, 1);
    const FloatVector a = load<FloatVector>(x + r) - center, b = load<FloatVector>(x + r + kLanes) - center;
    d0 += a;
    d1 += b;
    q0 += a * a;
    q1 += b * b;
  }
  double drift = 0, square = 0;
  for (; r < rows; ++r) {
    const auto a = static_cast<double>(load<float>(x + r) - center);
    drift += a;
    square += a * a;
  }
  const auto count = static_cast<double>(rows);
  drift = (drift + sum_lanes<FloatVector>(d0 + d1)) / count;
  square += sum_lanes<FloatVector>(q0 + q1);
  join_moments(count, static_cast<double>(center) + drift, square - drift * drift * count, before, mean, squares);
}

template <typename T>
void moments(const T* x, int64_t rows, int64_t stride, int64_t width, double before, double* mean, double* squares) {
  if (width == 1 && stride == 1) {
    contiguous_moments(x, rows, before, *mean, *squares);
    return;
  }
  for_each_lane_group(width, [&](auto lane, int64_t at) {
    column_moments<decltype(lane)>(x + at, rows, stride, before, mean + at, squares + at);
  });
}

template <bool has_residual, Activation activation, typename V, typename T>
WEFT_INLINE V normalised(V x, V mean, V factor, V shift, const T* residual) {
  V y = (x - mean) * factor + shift;
  if constexpr (has_residual) y += load<V>(residual);
  if constexpr (activation != Activation::none) y = rectify<V>(y);
  if constexpr (activation == Activation::relu6) y = y > kSix ? zero<V>() + kSix : y;
  return y;
}

template <typename T, bool has_residual, Activation activation>
void normalise_chunk(const NormaliseChunk<T>& chunk) {
  const NormaliseChunk<T> c = chunk;  // which no store can change
  if (c.width == 1 && c.stride == 1) {
    const float mean = *c.mean, factor = *c.factor, shift = *c.shift;
    const FloatVector means = FloatVector{} + mean, factors = FloatVector{} + factor, shifts = FloatVector{} + shift;
    int64_t r = 0;
    for (; r + kLanes <= c.rows; r += kLanes)
      store<FloatVector>(c.y + r, normalised<has_residual, activation, FloatVector>(load<FloatVector>(c.x + r), means,
                                                                                    factors, shifts, c.residual + r));
    for (; r < c.rows; ++r)
      store<float>(c.y + r, normalised<has_residual, activation, float>(load<float>(c.x + r), mean, factor, shift,
                                                                        c.residual + r));
    return;
  }
  for_each_lane_group(c.width, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    const V mean = load<V>(c.mean + at), factor = load<V>(c.factor + at), shift = load<V>(c.shift + at);
    for (int64_t r = 0; r < c.rows; ++r) {
      const int64_t i = r * c.stride + at;
      prefetch_row(c.x + i, c.stride);
      if constexpr (has_residual) prefetch_row(c.residual + i, c.stride);
      store<V>(c.y + i, normalised<has_residual, activation, V>(load<V>(c.x + i), mean, factor, shift, c.residual + i));
    }
  });
}

template <typename T>
constexpr TrainingLoops<T> training_loops{moments<T>};

template <typename T>
constexpr Loops<T> loops{{{normalise_chunk<T, false, Activation::none>, normalise_chunk<T, false, Activation::relu>,
                           normalise_chunk<T, false, Activation::relu6>},
                          {normalise_chunk<T, true, Activation::none>, normalise_chunk<T, true, Activation::relu>,
                           normalise_chunk<T, true, Activation::relu6>}}};
