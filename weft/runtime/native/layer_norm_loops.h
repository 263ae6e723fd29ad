// Loops of layer_norm over one row; compiled per instruction set (multiversion.h).

/// In vectors over short runs, then in double.
template <typename T>
double sum_row(const T* x, int64_t width) {
  constexpr int64_t kRun = 64 * kLanes;
  double total = 0;
  int64_t d = 0;
  while (d + 2 * kLanes <= width) {
    FloatVector a{}, b{};
    for (const int64_t end = std::min(width, d + kRun); d + 2 * kLanes <= end; d += 2 * kLanes) {
      a += load<FloatVector>(x + d);
      b += load<FloatVector>(x + d + kLanes);
    }
    total += sum_lanes<FloatVector>(a + b);
  }
  for (; d < width; ++d) total += static_cast<double>(load<float>(x + d));
  return total;
}

/// sum((x - center)^2)
template <typename T>
float squares_row(const T* x, float center, int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t d = 0; d < width; ++d) {
    const float deviation = load<float>(x + d) - center;
    sum += deviation * deviation;
  }
  return sum;
}

template <typename T>
void normalise_row(const T* x, float mean, float inverse, const float* scale, const float* shift, T* y, int64_t width) {
#pragma omp simd
  for (int64_t d = 0; d < width; ++d) store<float>(y + d, (load<float>(x + d) - mean) * inverse * scale[d] + shift[d]);
}

/// Adds the row to the column sums, returns the row's own two sums.
template <typename T>
RowSums backward_sums(const T* dy, const T* x, float mean, float inverse, const float* scale, float* scale_gradient,
                      float* shift_gradient, int64_t width) {
  float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (int64_t d = 0; d < width; ++d) {
    const float g = load<float>(dy + d), normalised = (load<float>(x + d) - mean) * inverse;
    shift_gradient[d] += g;
    scale_gradient[d] += g * normalised;
    sum += g * scale[d];
    product += g * scale[d] * normalised;
  }
  return {sum, product};
}

template <typename T>
void backward_row(const T* dy, const T* x, float mean, float inverse, const float* scale, RowSums means, T* dx,
                  int64_t width) {
#pragma omp simd
  for (int64_t d = 0; d < width; ++d)
    store<float>(dx + d, inverse * (load<float>(dy + d) * scale[d] - means.sum -
                                    (load<float>(x + d) - mean) * inverse * means.product));
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
constexpr Loops<T> loops{sum_row<T>, squares_row<T>, normalise_row<T>, backward_sums<T>, backward_row<T>, flush};
