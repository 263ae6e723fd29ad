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
void scale(const float* x, float factor, float offset, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * factor + offset;
}

constexpr Loops loops{largest, exponentials, exponential_sum, sum, scale};
