// Loops over one row of logits; compiled per instruction set (multiversion.h).

#include "weft/runtime/native/vector_math.h"

float largest(const float* x, int64_t count) {
  float best = x[0];
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
  for (; i < count; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

/// y[i] = exp(x[i] - shift); returns their sum.
float exponentials(const float* x, float shift, float* y, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const float power = exp_of(x[i] - shift);
    y[i] = power;
    sum += power;
  }
  return sum;
}

float exponential_sum(const float* x, float shift, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += exp_of(x[i] - shift);
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
void shift(const float* x, float first, float second, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) store<float>(y + i, (x[i] - first) - second);
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
void widen(const T* from, float* to, int64_t count) {
  for_each_lane_group(count, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    store<V>(to + at, load<V>(from + at));
  });
}

template <typename T>
constexpr Loops<T> loops{largest,  exponentials, exponential_sum, sum,     scale<T>,
                         shift<T>, dot<T>,       backward<T>,     widen<T>};
