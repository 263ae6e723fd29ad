// Loops over one row of logits; compiled per instruction set (multiversion.h).

#include "weft/runtime/native/vector_math.h"

template <typename T>
float largest(const T* x, int64_t count) {
  float best = load<float>(x);
  int64_t i = 0;
  if (count >= kLanes) {
    FloatVector vector = load<FloatVector>(x);
    for (i = kLanes; i + kLanes <= count; i += kLanes) {
      const FloatVector next = load<FloatVector>(x + i);
      vector = next > vector ? next : vector;
    }
    float lanes[kLanes];
    store(lanes, vector);
    for (const float lane : lanes) best = lane > best ? lane : best;
  }
  for (; i < count; ++i) {
    const float next = load<float>(x + i);
    best = next > best ? next : best;
  }
  return best;
}

/// y[i] = exp(x[i] - shift); returns their sum.
template <typename T>
float exponentials(const T* x, float shift, float* y, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const float power = exp_of(load<float>(x + i) - shift);
    y[i] = power;
    sum += power;
  }
  return sum;
}

template <typename T>
float exponential_sum(const T* x, float shift, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += exp_of(load<float>(x + i) - shift);
  return sum;
}

double sum(const float* x, int64_t count) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i) total += static_cast<double>(x[i]);
  return total;
}

/// y[i] = x[i] * factor + offset
template <typename T>
void scale(const float* x, float factor, float offset, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) store<float>(y + i, x[i] * factor + offset);
}

/// y[i] = (x[i] - first) - second
template <typename T>
void shift(const T* x, float first, float second, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) store<float>(y + i, (load<float>(x + i) - first) - second);
}

/// sum(x y)
template <typename T>
float dot(const T* x, const T* y, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += load<float>(x + i) * load<float>(y + i);
  return sum;
}

/// dx[i] = y[i] * (dy[i] - sum)
template <typename T>
void backward(const T* dy, const T* y, float sum, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) store<float>(dx + i, load<float>(y + i) * (load<float>(dy + i) - sum));
}

template <typename T>
constexpr Loops<T> loops{largest<T>, exponentials<T>, exponential_sum<T>, sum, scale<T>, shift<T>, dot<T>, backward<T>};
