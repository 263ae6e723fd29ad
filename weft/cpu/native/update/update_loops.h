// Loops of the optimiser updates over one range of elements; compiled per instruction set (multiversion.h). Results may
// overwrite their operands element by element.

void sgd(const SgdRange& r) {
  const float momentum = r.momentum, decay = r.weight_decay, rate = r.learning_rate;
  const float from_gradient = r.nesterov ? 1.0f : 0.0f, from_velocity = r.nesterov ? momentum : 1.0f;
#pragma omp simd
  for (int64_t i = 0; i < r.count; ++i) {
    const float gradient = r.gradient[i] + decay * r.parameter[i];
    const float velocity = momentum * r.velocity[i] + gradient;
    r.next_velocity[i] = velocity;
    r.next_parameter[i] = r.parameter[i] - rate * (from_gradient * gradient + from_velocity * velocity);
  }
}

void adamw(const AdamWRange& r) {
#pragma omp simd
  for (int64_t i = 0; i < r.count; ++i) {
    const float gradient = r.gradient[i] + r.l2 * r.parameter[i];
    const float first = r.beta1 * r.first[i] + r.rest1 * gradient;
    const float second = r.beta2 * r.second[i] + r.rest2 * gradient * gradient;
    r.next_first[i] = first;
    r.next_second[i] = second;
    r.next_parameter[i] =
        r.parameter[i] * r.keep - r.step_size * first / (__builtin_sqrtf(second) * r.second_scale + r.epsilon);
  }
}

void average(const float* running, const float* sample, float* next, float keep, float take, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const bool is_finite = sample[i] - sample[i] == 0;
    next[i] = is_finite ? keep * running[i] + take * sample[i] : running[i];
  }
}

void blend(const float* state, const float* value, float* next, float keep, float take, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) next[i] = keep * state[i] + take * value[i];
}

void scale(const float* x, float* next, float factor, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) next[i] = factor * x[i];
}

void add(const float* a, const float* b, float* next, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) next[i] = a[i] + b[i];
}

double squares(const float* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

/// Nonzero where one of the results is infinite or NaN.
uint32_t unscale(const float* x, float* next, float factor, int64_t count) {
  uint32_t overflow = 0;
#pragma omp simd reduction(| : overflow)
  for (int64_t i = 0; i < count; ++i) {
    const float value = factor * x[i];
    next[i] = value;
    const auto bits = __builtin_bit_cast(uint32_t, value);
    overflow |= (bits & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return overflow;
}

constexpr Loops loops{sgd, adamw, average, blend, scale, add, squares, unscale};
