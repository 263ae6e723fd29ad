// One loop per scalar instruction over at most one chunk of elements; compiled per instruction set (multiversion.h).
// `out` may be `a` or `b`.

#include "weft/runtime/native/vector_math.h"

WEFT_INLINE float gelu_of(float x) { return 0.5f * x * (1.0f + erf_of(x * 0.707106781186547524f)); }
WEFT_INLINE float gelu_slope_of(float x) {
  const float cumulative = 0.5f * (1.0f + erf_of(x * 0.707106781186547524f));
  return cumulative + x * 0.398942280401432678f * exp_of(-0.5f * x * x);
}
WEFT_INLINE float gelu_tanh_of(float x) {
  return 0.5f * x * (1.0f + tanh_of(0.797884560802865356f * (x + 0.044715f * x * x * x)));
}
WEFT_INLINE float gelu_tanh_slope_of(float x) {
  const float bend = tanh_of(0.797884560802865356f * (x + 0.044715f * x * x * x));
  const float inner_slope = 0.797884560802865356f * (1.0f + 3 * 0.044715f * x * x);
  return 0.5f * (1.0f + bend) + 0.5f * x * (1.0f - bend * bend) * inner_slope;
}

// NAME(out, a, b, literal, count): out[i] = EXPRESSION of x = a[i], y = b[i] and literal.
#define WEFT_UNARY(NAME, EXPRESSION)                                                                   \
  void NAME(float* out, const float* a, const float*, [[maybe_unused]] float literal, int64_t count) { \
    _Pragma("omp simd") for (int64_t i = 0; i < count; ++i) {                                          \
      const float x = a[i];                                                                            \
      out[i] = EXPRESSION;                                                                             \
    }                                                                                                  \
  }
#define WEFT_BINARY(NAME, EXPRESSION)                                           \
  void NAME(float* out, const float* a, const float* b, float, int64_t count) { \
    _Pragma("omp simd") for (int64_t i = 0; i < count; ++i) {                   \
      const float x = a[i], y = b[i];                                           \
      out[i] = EXPRESSION;                                                      \
    }                                                                           \
  }

WEFT_UNARY(relu, x < 0.0f ? 0.0f : x)
WEFT_UNARY(gelu, gelu_of(x))
WEFT_UNARY(gelu_tanh, gelu_tanh_of(x))
WEFT_UNARY(tanh, tanh_of(x))
WEFT_UNARY(sigmoid, sigmoid_of(x))
WEFT_UNARY(exp, exp_of(x))
WEFT_UNARY(log, log_of(x))
WEFT_UNARY(sqrt, __builtin_sqrtf(x))
WEFT_UNARY(negate, -x)
WEFT_UNARY(absolute, __builtin_fabsf(x))
WEFT_UNARY(square, x* x)
WEFT_UNARY(reciprocal, 1.0f / x)
WEFT_UNARY(add_scalar, x + literal)
WEFT_UNARY(multiply_scalar, x* literal)
WEFT_BINARY(add, x + y)
WEFT_BINARY(subtract, x - y)
WEFT_BINARY(multiply, x* y)
WEFT_BINARY(divide, x / y)
// NaN wins, so that it shows in the loss.
WEFT_BINARY(maximum, ((x > y) | (x != x)) ? x : y)
WEFT_BINARY(minimum, ((x < y) | (x != x)) ? x : y)
WEFT_BINARY(equal, x == y ? 1.0f : 0.0f)
WEFT_BINARY(greater, x > y ? 1.0f : 0.0f)
WEFT_BINARY(relu_backward, y > 0.0f ? x : 0.0f)
WEFT_BINARY(gelu_backward, x* gelu_slope_of(y))
WEFT_BINARY(gelu_tanh_backward, x* gelu_tanh_slope_of(y))
// i32 operands, as their bits in float slots.
WEFT_BINARY(equal_integers, bits_of(x) == bits_of(y) ? 1.0f : 0.0f)
WEFT_BINARY(greater_integers, static_cast<int32_t>(bits_of(x)) > static_cast<int32_t>(bits_of(y)) ? 1.0f : 0.0f)

#undef WEFT_UNARY
#undef WEFT_BINARY

void fill(float* out, float value, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = value;
}

InstructionLoop loop_of(ops::ScalarOp op) {
  using ops::ScalarOp;
  switch (op) {
    case ScalarOp::relu:
      return relu;
    case ScalarOp::gelu:
      return gelu;
    case ScalarOp::gelu_tanh:
      return gelu_tanh;
    case ScalarOp::tanh:
      return tanh;
    case ScalarOp::sigmoid:
      return sigmoid;
    case ScalarOp::exp:
      return exp;
    case ScalarOp::log:
      return log;
    case ScalarOp::sqrt:
      return sqrt;
    case ScalarOp::negate:
      return negate;
    case ScalarOp::absolute:
      return absolute;
    case ScalarOp::square:
      return square;
    case ScalarOp::reciprocal:
      return reciprocal;
    case ScalarOp::add:
      return add;
    case ScalarOp::subtract:
      return subtract;
    case ScalarOp::multiply:
      return multiply;
    case ScalarOp::divide:
      return divide;
    case ScalarOp::maximum:
      return maximum;
    case ScalarOp::minimum:
      return minimum;
    case ScalarOp::equal:
      return equal;
    case ScalarOp::greater:
      return greater;
    case ScalarOp::relu_backward:
      return relu_backward;
    case ScalarOp::gelu_backward:
      return gelu_backward;
    case ScalarOp::gelu_tanh_backward:
      return gelu_tanh_backward;
    case ScalarOp::add_scalar:
      return add_scalar;
    case ScalarOp::multiply_scalar:
      return multiply_scalar;
  }
  return nullptr;
}

constexpr Loops loops{loop_of, equal_integers, greater_integers, fill};
