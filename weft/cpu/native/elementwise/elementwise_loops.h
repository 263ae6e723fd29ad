// One loop per scalar instruction over at most one chunk of numbers; compiled per instruction set (multiversion.h).
// `out` may be `a` or `b`.

#include "weft/cpu/native/support/gelu.h"

/// max(x, 0) + log(1 + e) with e = exp(-|x|): what the rounding of u = 1 + e loses, the last term gives back.
WEFT_INLINE float softplus_of(float x) {
  const float e = exp_of(-__builtin_fabsf(x)), u = 1.0f + e;
  return (x < 0.0f ? 0.0f : x) + (log_of(u) + (e - (u - 1.0f)) / u);
}
/// exp(x) - 1 for x below 0, without loss near 0: 2 t / (1 - t) with t = tanh(x / 2).
WEFT_INLINE float expm1_below_zero(float x) {
  const float t = tanh_of(0.5f * x);
  return 2.0f * t / (1.0f - t);
}
WEFT_INLINE float clip_of(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
WEFT_INLINE float hardswish_slope_of(float x) {
  const float inside = x * 0.333333333f + 0.5f;
  return x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : inside;
}
WEFT_INLINE float silu_slope_of(float x) {
  const float s = sigmoid_of(x);
  return s * (1.0f + x * (1.0f - s));
}

// NAME<A, B, Out>(out, operands, count): out[i] = EXPRESSION of x = a[i], y = b[i] and the literals. A, B and Out are
// what the operands and the result consist of in memory.
#define WEFT_UNARY(NAME, EXPRESSION)                                                                   \
  template <typename A, typename Out>                                                                  \
  void NAME(void* result, const Operands& operands, int64_t count) {                                   \
    const A* a = static_cast<const A*>(operands.a);                                                    \
    Out* out = static_cast<Out*>(result);                                                              \
    [[maybe_unused]] const float literal = operands.literal, second_literal = operands.second_literal; \
    _Pragma("omp simd") for (int64_t i = 0; i < count; ++i) {                                          \
      const float x = load<float>(a + i);                                                              \
      store<float>(out + i, EXPRESSION);                                                               \
    }                                                                                                  \
  }
#define WEFT_BINARY(NAME, EXPRESSION)                                                                  \
  template <typename A, typename B, typename Out>                                                      \
  void NAME(void* result, const Operands& operands, int64_t count) {                                   \
    const A* a = static_cast<const A*>(operands.a);                                                    \
    const B* b = static_cast<const B*>(operands.b);                                                    \
    Out* out = static_cast<Out*>(result);                                                              \
    [[maybe_unused]] const float literal = operands.literal, second_literal = operands.second_literal; \
    _Pragma("omp simd") for (int64_t i = 0; i < count; ++i) {                                          \
      const float x = load<float>(a + i), y = load<float>(b + i);                                      \
      store<float>(out + i, EXPRESSION);                                                               \
    }                                                                                                  \
  }

// Plain arithmetic, by vectors: in bf16 gcc 12 takes twice the steps for a loop over numbers. Programs with a result in
// bf16 have no operands but those in bf16.
#define WEFT_UNARY_LANES(NAME, EXPRESSION)                           \
  template <typename A, typename Out>                                \
  void NAME(void* result, const Operands& operands, int64_t count) { \
    const A* a = static_cast<const A*>(operands.a);                  \
    Out* out = static_cast<Out*>(result);                            \
    const float literal = operands.literal;                          \
    for_each_lane_group(count, [&](auto lane, int64_t at) {          \
      using V = decltype(lane);                                      \
      const V x = load<V>(a + at);                                   \
      store_from_bf16<V>(out + at, EXPRESSION);                      \
    });                                                              \
  }
#define WEFT_BINARY_LANES(NAME, EXPRESSION)                          \
  template <typename A, typename B, typename Out>                    \
  void NAME(void* result, const Operands& operands, int64_t count) { \
    const A* a = static_cast<const A*>(operands.a);                  \
    const B* b = static_cast<const B*>(operands.b);                  \
    Out* out = static_cast<Out*>(result);                            \
    for_each_lane_group(count, [&](auto lane, int64_t at) {          \
      using V = decltype(lane);                                      \
      const V x = load<V>(a + at), y = load<V>(b + at);              \
      store_from_bf16<V>(out + at, EXPRESSION);                      \
    });                                                              \
  }

WEFT_UNARY(relu, x < 0.0f ? 0.0f : x)
WEFT_UNARY(leaky_relu, x < 0.0f ? literal * x : x)
WEFT_UNARY(elu, x < 0.0f ? literal * expm1_below_zero(x) : x)
WEFT_UNARY(clip, clip_of(x, literal, second_literal))
WEFT_UNARY(hardswish, x* clip_of(x + 3.0f, 0.0f, 6.0f) * 0.166666667f)
WEFT_UNARY(silu, x* sigmoid_of(x))
WEFT_UNARY(softplus, softplus_of(x))
WEFT_UNARY(gelu, gelu_of(x).value)
WEFT_UNARY(gelu_tanh, gelu_tanh_of(x).value)
WEFT_UNARY(gelu_slope, gelu_of(x).slope)
WEFT_UNARY(gelu_tanh_slope, gelu_tanh_of(x).slope)
WEFT_UNARY(tanh, tanh_of(x))
WEFT_UNARY(sigmoid, sigmoid_of(x))
WEFT_UNARY(exp, exp_of(x))
WEFT_UNARY(log, log_of(x))
WEFT_UNARY(sqrt, __builtin_sqrtf(x))
WEFT_UNARY(negate, -x)
WEFT_UNARY(absolute, __builtin_fabsf(x))
WEFT_UNARY(square, x* x)
WEFT_UNARY(reciprocal, 1.0f / x)
WEFT_UNARY(erf, erf_of(x))
WEFT_UNARY(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x)
WEFT_UNARY(floor, __builtin_floorf(x))
WEFT_UNARY(ceil, __builtin_ceilf(x))
WEFT_UNARY(round, __builtin_nearbyintf(x))  // half to even
// The C library's: exact in all its special cases, and quick enough for what is seldom used.
WEFT_UNARY(pow_scalar, __builtin_powf(x, literal))
WEFT_BINARY(pow, __builtin_powf(x, y))
WEFT_UNARY(sin, __builtin_sinf(x))
WEFT_UNARY(cos, __builtin_cosf(x))
WEFT_UNARY(tan, __builtin_tanf(x))
WEFT_UNARY(asin, __builtin_asinf(x))
WEFT_UNARY(acos, __builtin_acosf(x))
WEFT_UNARY(atan, __builtin_atanf(x))
WEFT_UNARY(sinh, __builtin_sinhf(x))
WEFT_UNARY(cosh, __builtin_coshf(x))
WEFT_UNARY(asinh, __builtin_asinhf(x))
WEFT_UNARY(acosh, __builtin_acoshf(x))
WEFT_UNARY(atanh, __builtin_atanhf(x))
WEFT_UNARY_LANES(add_scalar, x + literal)
WEFT_UNARY_LANES(multiply_scalar, x* literal)
WEFT_BINARY_LANES(add, x + y)
WEFT_BINARY_LANES(subtract, x - y)
WEFT_BINARY_LANES(multiply, x* y)
WEFT_BINARY(divide, x / y)
// NaN wins, so that it shows in the loss.
WEFT_BINARY(maximum, ((x > y) | (x != x)) ? x : y)
WEFT_BINARY(minimum, ((x < y) | (x != x)) ? x : y)
WEFT_BINARY(equal, x == y ? 1.0f : 0.0f)
WEFT_BINARY(greater, x > y ? 1.0f : 0.0f)
WEFT_BINARY(greater_equal, x >= y ? 1.0f : 0.0f)
// The gradient of a NaN passes, as it does in PyTorch.
WEFT_BINARY(relu_backward, y <= 0.0f ? 0.0f : x)
WEFT_BINARY(leaky_relu_backward, y > 0.0f ? x : literal * x)
WEFT_BINARY(elu_backward, y > 0.0f ? x : x * (y + literal))
WEFT_BINARY(clip_backward, ((y <= literal) | (y >= second_literal)) ? 0.0f : x)
WEFT_BINARY(hardswish_backward, x* hardswish_slope_of(y))
WEFT_BINARY(silu_backward, x* silu_slope_of(y))
WEFT_BINARY(gelu_backward, x* gelu_of(y).slope)
WEFT_BINARY(gelu_tanh_backward, x* gelu_tanh_of(y).slope)
// i32 operands, as their bits in float slots.
WEFT_BINARY(equal_integers, bits_of(x) == bits_of(y) ? 1.0f : 0.0f)
WEFT_BINARY(greater_integers, static_cast<int32_t>(bits_of(x)) > static_cast<int32_t>(bits_of(y)) ? 1.0f : 0.0f)
WEFT_BINARY(greater_equal_integers, static_cast<int32_t>(bits_of(x)) >= static_cast<int32_t>(bits_of(y)) ? 1.0f : 0.0f)

#undef WEFT_UNARY
#undef WEFT_BINARY
#undef WEFT_UNARY_LANES
#undef WEFT_BINARY_LANES

void where(void* result, const Operands& operands, int64_t count) {
  const float *a = static_cast<const float*>(operands.a), *b = static_cast<const float*>(operands.b),
              *c = static_cast<const float*>(operands.c);
  float* out = static_cast<float*>(result);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float chosen = b[i], other = c[i];  // both are read: a selection, not a branch
    out[i] = a[i] != 0.0f ? chosen : other;
  }
}

template <Gelu (*of)(float), typename A>
void gelu_and_slope(void* result, const Operands& operands, int64_t count) {
  const A* a = static_cast<const A*>(operands.a);
  float *slopes = static_cast<float*>(result), *values = static_cast<float*>(operands.second_out);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const Gelu gelu = of(load<float>(a + i));
    slopes[i] = gelu.slope;
    values[i] = gelu.value;
  }
}

/// gelu, its slope or both, for results in bf16: the first of two goes to `result`.
template <typename A, bool has_slope, bool has_value>
void gelu_to_bf16(void* result, const Operands& operands, int64_t count) {
  const A* a = static_cast<const A*>(operands.a);
  Bf16* slopes = static_cast<Bf16*>(result);
  Bf16* values = static_cast<Bf16*>(has_slope ? operands.second_out : result);
  for_each_lane_group(count, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    const auto gelu = short_gelu_of(load<V>(a + at));
    if constexpr (has_slope) store_from_bf16<V>(slopes + at, gelu.slope);
    if constexpr (has_value) store_from_bf16<V>(values + at, gelu.value);
  });
}

void fill(float* out, float value, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = value;
}

void widen(const Bf16* from, float* to, int64_t count) {
  for_each_lane_group(count, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    store<V>(to + at, load<V>(from + at));
  });
}

void convert(const float* integers, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(static_cast<int32_t>(bits_of(integers[i])));
}

void narrow(const float* from, Bf16* to, int64_t count) {
  for_each_lane_group(count, [&](auto lane, int64_t at) {
    using V = decltype(lane);
    store_from_bf16<V>(to + at, load<V>(from + at));
  });
}

InstructionLoop forward_loop_of(ops::ScalarOp op) {
  using ops::ScalarOp;
  switch (op) {
    case ScalarOp::relu:
      return relu<float, float>;
    case ScalarOp::leaky_relu:
      return leaky_relu<float, float>;
    case ScalarOp::elu:
      return elu<float, float>;
    case ScalarOp::clip:
      return clip<float, float>;
    case ScalarOp::hardswish:
      return hardswish<float, float>;
    case ScalarOp::gelu:
      return gelu<float, float>;
    case ScalarOp::gelu_tanh:
      return gelu_tanh<float, float>;
    case ScalarOp::silu:
      return silu<float, float>;
    case ScalarOp::tanh:
      return tanh<float, float>;
    case ScalarOp::sigmoid:
      return sigmoid<float, float>;
    case ScalarOp::softplus:
      return softplus<float, float>;
    case ScalarOp::exp:
      return exp<float, float>;
    case ScalarOp::log:
      return log<float, float>;
    case ScalarOp::sqrt:
      return sqrt<float, float>;
    case ScalarOp::negate:
      return negate<float, float>;
    case ScalarOp::absolute:
      return absolute<float, float>;
    case ScalarOp::square:
      return square<float, float>;
    case ScalarOp::reciprocal:
      return reciprocal<float, float>;
    case ScalarOp::erf:
      return erf<float, float>;
    case ScalarOp::sign:
      return sign<float, float>;
    case ScalarOp::floor:
      return floor<float, float>;
    case ScalarOp::ceil:
      return ceil<float, float>;
    case ScalarOp::round:
      return round<float, float>;
    case ScalarOp::sin:
      return sin<float, float>;
    case ScalarOp::cos:
      return cos<float, float>;
    case ScalarOp::tan:
      return tan<float, float>;
    case ScalarOp::asin:
      return asin<float, float>;
    case ScalarOp::acos:
      return acos<float, float>;
    case ScalarOp::atan:
      return atan<float, float>;
    case ScalarOp::sinh:
      return sinh<float, float>;
    case ScalarOp::cosh:
      return cosh<float, float>;
    case ScalarOp::asinh:
      return asinh<float, float>;
    case ScalarOp::acosh:
      return acosh<float, float>;
    case ScalarOp::atanh:
      return atanh<float, float>;
    case ScalarOp::add:
      return add<float, float, float>;
    case ScalarOp::subtract:
      return subtract<float, float, float>;
    case ScalarOp::multiply:
      return multiply<float, float, float>;
    case ScalarOp::divide:
      return divide<float, float, float>;
    case ScalarOp::pow:
      return pow<float, float, float>;
    case ScalarOp::maximum:
      return maximum<float, float, float>;
    case ScalarOp::minimum:
      return minimum<float, float, float>;
    case ScalarOp::equal:
      return equal<float, float, float>;
    case ScalarOp::greater:
      return greater<float, float, float>;
    case ScalarOp::greater_equal:
      return greater_equal<float, float, float>;
    case ScalarOp::where:
      return where;
    case ScalarOp::add_scalar:
      return add_scalar<float, float>;
    case ScalarOp::multiply_scalar:
      return multiply_scalar<float, float>;
    case ScalarOp::pow_scalar:
      return pow_scalar<float, float>;
    default:
      return nullptr;
  }
}

/// Those of gradients, too.
InstructionLoop loop_of(ops::ScalarOp op) {
  using ops::ScalarOp;
  switch (op) {
    case ScalarOp::gelu_slope:
      return gelu_slope<float, float>;
    case ScalarOp::gelu_tanh_slope:
      return gelu_tanh_slope<float, float>;
    case ScalarOp::relu_backward:
      return relu_backward<float, float, float>;
    case ScalarOp::leaky_relu_backward:
      return leaky_relu_backward<float, float, float>;
    case ScalarOp::elu_backward:
      return elu_backward<float, float, float>;
    case ScalarOp::clip_backward:
      return clip_backward<float, float, float>;
    case ScalarOp::hardswish_backward:
      return hardswish_backward<float, float, float>;
    case ScalarOp::gelu_backward:
      return gelu_backward<float, float, float>;
    case ScalarOp::gelu_tanh_backward:
      return gelu_tanh_backward<float, float, float>;
    case ScalarOp::silu_backward:
      return silu_backward<float, float, float>;
    default:
      return forward_loop_of(op);
  }
}

/// Loops that widen and round at those ends that are bf16: for instructions so cheap that a sweep of its own to do so
/// would show, and those that take less exact arithmetic for bf16. Null for the others.
#define WEFT_UNARY(NAME)                                                                  \
  case ops::ScalarOp::NAME: {                                                             \
    static constexpr InstructionLoop of[2][2] = {{NAME<float, float>, NAME<float, Bf16>}, \
                                                 {NAME<Bf16, float>, NAME<Bf16, Bf16>}};  \
    return of[ends.a][ends.out];                                                          \
  }
#define WEFT_BINARY(NAME)                                                                                             \
  case ops::ScalarOp::NAME: {                                                                                         \
    static constexpr InstructionLoop of[2][2][2] = {                                                                  \
        {{NAME<float, float, float>, NAME<float, float, Bf16>}, {NAME<float, Bf16, float>, NAME<float, Bf16, Bf16>}}, \
        {{NAME<Bf16, float, float>, NAME<Bf16, float, Bf16>}, {NAME<Bf16, Bf16, float>, NAME<Bf16, Bf16, Bf16>}}};    \
    return of[ends.a][ends.b][ends.out];                                                                              \
  }
InstructionLoop forward_narrow_loop_of(ops::ScalarOp op, Ends ends) {
  switch (op) {
    WEFT_UNARY(relu)
    WEFT_UNARY(leaky_relu)
    WEFT_UNARY(clip)
    WEFT_UNARY(hardswish)
    WEFT_UNARY(add_scalar)
    WEFT_UNARY(multiply_scalar)
    WEFT_BINARY(add)
    WEFT_BINARY(subtract)
    WEFT_BINARY(multiply)
    case ops::ScalarOp::gelu: {
      static constexpr InstructionLoop of[2][2] = {{gelu<float, float>, gelu_to_bf16<float, false, true>},
                                                   {gelu<Bf16, float>, gelu_to_bf16<Bf16, false, true>}};
      return of[ends.a][ends.out];
    }
    default:
      return nullptr;
  }
}

/// Those of gradients, too.
InstructionLoop narrow_loop_of(ops::ScalarOp op, Ends ends) {
  switch (op) {
    WEFT_BINARY(relu_backward)
    WEFT_BINARY(clip_backward)
    WEFT_BINARY(hardswish_backward)
    case ops::ScalarOp::gelu_slope: {
      static constexpr InstructionLoop of[2][2] = {{gelu_slope<float, float>, gelu_to_bf16<float, true, false>},
                                                   {gelu_slope<Bf16, float>, gelu_to_bf16<Bf16, true, false>}};
      return of[ends.a][ends.out];
    }
    default:
      return forward_narrow_loop_of(op, ends);
  }
}
#undef WEFT_UNARY
#undef WEFT_BINARY

/// For both at once. The tanh form is for f32 alone.
InstructionLoop gelu_and_slope_loop_of(ops::ScalarOp slope, Ends ends) {
  static constexpr InstructionLoop of[2][2] = {{gelu_and_slope<gelu_of, float>, gelu_to_bf16<float, true, true>},
                                               {gelu_and_slope<gelu_of, Bf16>, gelu_to_bf16<Bf16, true, true>}};
  return slope == ops::ScalarOp::gelu_slope ? of[ends.a][ends.out] : gelu_and_slope<gelu_tanh_of, float>;
}

/// Programs without gradients have none.
InstructionLoop no_loop_of(ops::ScalarOp, Ends) { return nullptr; }

constexpr Loops forward_loops{forward_loop_of,
                              forward_narrow_loop_of,
                              no_loop_of,
                              equal_integers<float, float, float>,
                              greater_integers<float, float, float>,
                              greater_equal_integers<float, float, float>,
                              fill,
                              widen,
                              convert,
                              narrow};
constexpr Loops loops{loop_of,
                      narrow_loop_of,
                      gelu_and_slope_loop_of,
                      equal_integers<float, float, float>,
                      greater_integers<float, float, float>,
                      greater_equal_integers<float, float, float>,
                      fill,
                      widen,
                      convert,
                      narrow};
