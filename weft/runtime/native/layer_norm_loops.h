// Loops of layer_norm over one row; compiled per instruction set (multiversion.h).

double sum_row(const float* x, int64_t width) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t d = 0; d < width; ++d) sum += static_cast<double>(x[d]);
  return sum;
}

/// sum((x - center)^2)
float squares_row(const float* x, float center, int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t d = 0; d < width; ++d) sum += (x[d] - center) * (x[d] - center);
  return sum;
}

void normalise_row(const float* x, float mean, float inverse, const float* scale, const float* shift, float* y,
                   int64_t width) {
#pragma omp simd
  for (int64_t d = 0; d < width; ++d) y[d] = (x[d] - mean) * inverse * scale[d] + shift[d];
}

/// Adds the row to the column sums, returns the row's own two sums.
RowSums backward_sums(const float* dy, const float* x, float mean, float inverse, const float* scale,
                      float* scale_gradient, float* shift_gradient, int64_t width) {
  float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (int64_t d = 0; d < width; ++d) {
    const float g = dy[d], normalised = (x[d] - mean) * inverse;
    shift_gradient[d] += g;
    scale_gradient[d] += g * normalised;
    sum += g * scale[d];
    product += g * scale[d] * normalised;
  }
  return {sum, product};
}

void backward_row(const float* dy, const float* x, float mean, float inverse, const float* scale, RowSums means,
                  float* dx, int64_t width) {
#pragma omp simd
  for (int64_t d = 0; d < width; ++d)
    dx[d] = inverse * (dy[d] * scale[d] - means.sum - (x[d] - mean) * inverse * means.product);
}

/// totals += part; part = 0
void flush(double* totals, float* part, int64_t width) {
#pragma omp simd
  for (int64_t d = 0; d < width; ++d) {
    totals[d] += static_cast<double>(part[d]);
    part[d] = 0;
  }
}

constexpr Loops loops{sum_row, squares_row, normalise_row, backward_sums, backward_row, flush};
