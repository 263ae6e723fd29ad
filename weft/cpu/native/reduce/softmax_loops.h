// Loops over one row of logits; compiled per instruction set (multiversion.h).

#include "weft/cpu/native/support/short_power.h"
#include "weft/cpu/native/support/vector_math.h"

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

typedef int32_t IntVector __attribute__((vector_size(4 * WEFT_LANES)));

/// exp_of() in every lane.
WEFT_INLINE FloatVector exponentials_of(FloatVector x) {
  x = x > 89.0f ? FloatVector{} + 89.0f : x;
  x = x < -104.0f ? FloatVector{} - 104.0f : x;
  const FloatVector shifted = x * 1.44269504088896341f + 12582912.0f;
  const FloatVector k = shifted - 12582912.0f;
  const FloatVector r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  FloatVector p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const IntVector exponent = __builtin_bit_cast(IntVector, shifted) - 0x4B400000;
  const IntVector half = exponent >> 1;
  return p * __builtin_bit_cast(FloatVector, (half + 127) << 23) *
         __builtin_bit_cast(FloatVector, (exponent - half + 127) << 23);
}

/// exp of numbers that are not above 0: for results in bf16 with a relative error below 2^-13.
template <typename T>
WEFT_INLINE FloatVector powers_of(FloatVector x) {
  if constexpr (std::is_same_v<T, Bf16>)
    return short_exp_below_zero(x);
  else
    return exponentials_of(x);
}

/// y[i] = exp(x[i]) / sum(exp(x)) of at least kLanes numbers; `powers` holds as many in between, x and y and, of f32,
/// `powers` may be one. The last vector of a row overlaps the one before it.
template <typename T>
WEFT_INLINE void softmax_vectors(const T* x, float* powers, T* y, int64_t width) {
  const int64_t whole = width / kLanes * kLanes, tail = width - whole, last = width - kLanes;
  const FloatVector last_x = load<FloatVector>(x + last);
  FloatVector best = last_x;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const FloatVector next = load<FloatVector>(x + i);
    best = next > best ? next : best;
  }
  const float top = across_lanes(best, [](auto a, auto b) { return a > b ? a : b; });
  FloatVector sums{};
  for (int64_t i = 0; i < whole; i += kLanes) {
    const FloatVector power = powers_of<T>(load<FloatVector>(x + i) - top);
    store(powers + i, power);
    sums += power;
  }
  if (tail > 0) {
    const FloatVector power = powers_of<T>(last_x - top);
    store(powers + last, power);
    IntVector lane;
    for (int i = 0; i < WEFT_LANES; ++i) lane[i] = i;
    sums += lane >= static_cast<int32_t>(kLanes - tail) ? power : FloatVector{};
  }
  const float factor = 1.0f / sum_across_lanes(sums);
  const FloatVector last_power = load<FloatVector>(powers + last);
  for (int64_t i = 0; i < whole; i += kLanes)
    store_from_bf16<FloatVector>(y + i, load<FloatVector>(powers + i) * factor);
  if (tail > 0) store_from_bf16<FloatVector>(y + last, last_power * factor);
}

/// The same of fewer.
template <typename T>
void softmax_narrow(const T* x, float* powers, T* y, int64_t width) {
  float top = load<float>(x), sum = 0;
  for (int64_t i = 1; i < width; ++i) top = load<float>(x + i) > top ? load<float>(x + i) : top;
  for (int64_t i = 0; i < width; ++i) sum += powers[i] = exp_of(load<float>(x + i) - top);
  for (int64_t i = 0; i < width; ++i) store<float>(y + i, powers[i] * (1.0f / sum));
}

/// The same of rows of any width, with one buffer `powers` for all where they are not f32.
template <typename T>
void softmax(const T* x, float* powers, T* y, int64_t width, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    if constexpr (std::is_same_v<T, float>) powers = y;
    if (width >= kLanes)
      softmax_vectors(x, powers, y, width);
    else
      softmax_narrow(x, powers, y, width);
  }
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

/// dx[i] = y[i] * (dy[i] - sum(dy y)) in each row
template <typename T>
void backward(const T* dy, const T* y, T* dx, int64_t width, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row, dy += width, y += width, dx += width) {
    LaneSum products;
    for_each_lane_group(
        width, [&](auto lane, int64_t i) { products.add(load<decltype(lane)>(dy + i) * load<decltype(lane)>(y + i)); });
    const float sum = products.total();
    for_each_lane_group(width, [&](auto lane, int64_t i) {
      using V = decltype(lane);
      store_from_bf16<V>(dx + i, load<V>(y + i) * (load<V>(dy + i) - sum));
    });
  }
}

template <typename T>
void widen(const T* from, float* to, int64_t count) {
  for_each_lane_group(count, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    store<V>(to + at, load<V>(from + at));
  });
}

template <typename T>
constexpr Loops<T> loops{largest, exponentials, exponential_sum, sum, softmax<T>, scale<T>, shift<T>, widen<T>};

template <typename T>
constexpr TrainingLoops<T> training_loops{backward<T>};
