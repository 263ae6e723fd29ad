// Loops over the states of one target; compiled per instruction set (multiversion.h). Logarithms of probabilities are
// floats, kImpossible stands for that of zero: sums of a few of them stay finite, and their powers vanish.

#include "weft/cpu/native/support/vector_math.h"

/// log(exp(a) + exp(b) + exp(c))
WEFT_INLINE float log_add(float a, float b, float c) {
  float m = a > b ? a : b;
  m = m > c ? m : c;
  return m + log_of(exp_of(a - m) + exp_of(b - m) + exp_of(c - m));
}

/// row[s] from before[s], before[s - 1] and, where skip[s] is 0, before[s - 2]; both of -1 and -2 are readable.
void step_forward(const float* before, const float* skip, const float* emission, float* row, int64_t count) {
#pragma omp simd
  for (int64_t s = 0; s < count; ++s) row[s] = log_add(before[s], before[s - 1], before[s - 2] + skip[s]) + emission[s];
}

/// row[s] from after[s], after[s + 1] and, where skip[s + 2] is 0, after[s + 2]; those behind the last are readable.
void step_backward(const float* after, const float* skip, float* row, int64_t count) {
#pragma omp simd
  for (int64_t s = 0; s < count; ++s) row[s] = log_add(after[s], after[s + 1], after[s + 2] + skip[s + 2]);
}

float largest(const float* row, int64_t count) {
  float best = row[0];
  for (int64_t s = 1; s < count; ++s) best = row[s] > best ? row[s] : best;
  return best;
}

/// to[s] = a[s] + b[s] * factor + offset
void combine(const float* a, const float* b, float factor, float offset, float* to, int64_t count) {
#pragma omp simd
  for (int64_t s = 0; s < count; ++s) to[s] = a[s] + b[s] * factor + offset;
}

void exponentials(float* row, int64_t count) {
#pragma omp simd
  for (int64_t s = 0; s < count; ++s) row[s] = exp_of(row[s]);
}

constexpr Loops loops{step_forward, step_backward, largest, combine, exponentials};
