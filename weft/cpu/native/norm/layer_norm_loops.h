// Loops of layer_norm over rows; compiled per instruction set (multiversion.h).

constexpr int64_t kMostRowsAtOnce = 8;

/// In vectors over short runs, then in double.
template <typename T>
WEFT_INLINE double sum_row(const T* x, int64_t width) {
  constexpr int64_t kRun = 64 * kLanes;
  double total = 0;
  for (int64_t d = 0; d < width; d += kRun) {
    LaneSum sum;
    for_each_lane_group(std::min(width - d, kRun),
                        [&](auto lane, int64_t i) { sum.add(load<decltype(lane)>(x + d + i)); });
    total += static_cast<double>(sum.total());
  }
  return total;
}

/// sum((x - center)^2)
template <typename T>
WEFT_INLINE float squares_row(const T* x, float center, int64_t width) {
  LaneSum sum;
  for_each_lane_group(width, [&](auto lane, int64_t d) {
    const auto deviation = load<decltype(lane)>(x + d) - center;
    sum.add(deviation * deviation);
  });
  return sum.total();
}

template <typename T>
WEFT_INLINE void normalise_row(const T* x, float mean, float inverse, const float* scale, const float* shift, T* y,
                               int64_t width) {
  for_each_lane_group(width, [&](auto lane, int64_t d) {
    using V = decltype(lane);
    const V normalised = (load<V>(x + d) - mean) * inverse;
    store<V>(y + d, normalised * load<V>(scale + d) + load<V>(shift + d));
  });
}

/// Rows that go through each step together: they need not wait for each other, and stay in the first-level cache.
int64_t rows_at_once(int64_t width) {
  constexpr int64_t kNumbers = 8192;
  return std::clamp<int64_t>(kNumbers / width, 1, kMostRowsAtOnce);
}

template <typename T>
void normalise(const T* x, const float* scale, const float* shift, T* y, float* mean, float* inverse, int64_t width,
               int64_t rows, double epsilon) {
  const int64_t block = rows_at_once(width);
  const auto count = static_cast<double>(width);
  for (int64_t first = 0; first < rows; first += block) {
    const int64_t end = std::min(first + block, rows);
    for (int64_t row = first; row < end; ++row) mean[row] = static_cast<float>(sum_row(x + row * width, width) / count);
    for (int64_t row = first; row < end; ++row) inverse[row] = squares_row(x + row * width, mean[row], width);
    for (int64_t row = first; row < end; ++row)
      inverse[row] = static_cast<float>(1 / __builtin_sqrt(static_cast<double>(inverse[row]) / count + epsilon));
    for (int64_t row = first; row < end; ++row)
      normalise_row(x + row * width, mean[row], inverse[row], scale, shift, y + row * width, width);
  }
}

/// Adds the row to the column sums, returns the row's own two sums.
template <typename T>
WEFT_INLINE RowSums backward_sums(const T* dy, const T* x, float mean, float inverse, const float* scale,
                                  float* scale_gradient, float* shift_gradient, int64_t width) {
  LaneSum sum, product;
  for_each_lane_group(width, [&](auto lane, int64_t d) {
    using V = decltype(lane);
    const V g = load<V>(dy + d), normalised = (load<V>(x + d) - mean) * inverse;
    store<V>(shift_gradient + d, load<V>(shift_gradient + d) + g);
    store<V>(scale_gradient + d, load<V>(scale_gradient + d) + g * normalised);
    const V scaled = g * load<V>(scale + d);
    sum.add(scaled);
    product.add(scaled * normalised);
  });
  return {sum.total(), product.total()};
}

template <typename T>
WEFT_INLINE void backward_row(const T* dy, const T* x, float mean, float inverse, const float* scale, RowSums means,
                              T* dx, int64_t width) {
  for_each_lane_group(width, [&](auto lane, int64_t d) {
    using V = decltype(lane);
    const V normalised = (load<V>(x + d) - mean) * inverse;
    store<V>(dx + d, inverse * (load<V>(dy + d) * load<V>(scale + d) - means.sum - normalised * means.product));
  });
}

/// The gradients of some rows; adds them to those of scale and shift.
template <typename T>
void backward(const T* dy, const T* x, const float* mean, const float* inverse, const float* scale,
              float* scale_gradient, float* shift_gradient, T* dx, int64_t width, int64_t rows) {
  const int64_t block = rows_at_once(width);
  const auto count = static_cast<float>(width);
  for (int64_t first = 0; first < rows; first += block) {
    const int64_t end = std::min(first + block, rows);
    RowSums means[kMostRowsAtOnce];
    for (int64_t row = first; row < end; ++row) {
      const RowSums sums = backward_sums(dy + row * width, x + row * width, mean[row], inverse[row], scale,
                                         scale_gradient, shift_gradient, width);
      means[row - first] = {sums.sum / count, sums.product / count};
    }
    for (int64_t row = first; row < end; ++row)
      backward_row(dy + row * width, x + row * width, mean[row], inverse[row], scale, means[row - first],
                   dx + row * width, width);
  }
}

/// totals += part; part = 0
void flush(double* totals, float* part, int64_t width) {
#pragma omp simd
  for (int64_t d = 0; d < width; ++d) {
    totals[d] += static_cast<double>(part[d]);
    part[d] = 0;
  }
}

template <typename T>
constexpr Loops<T> loops{normalise<T>};

template <typename T>
constexpr TrainingLoops<T> training_loops{backward<T>, flush};
