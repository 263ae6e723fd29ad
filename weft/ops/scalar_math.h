// The arithmetic of one scalar instruction (ops/fused.h), once for all that evaluate it: kernels that interpret it,
// tests that compare it, passes that compute constants.
#pragma once

#include <cmath>

#include "weft/ops/fused.h"

namespace weft::ops {

/// Exact form: x Phi(x) (Hendrycks & Gimpel 2016, "Gaussian error linear units").
template <typename T>
T gelu_value(T x) {
  return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
}

/// d/dx x Phi(x) = Phi(x) + x phi(x).
template <typename T>
T gelu_slope(T x) {
  const T cumulative = T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440)));
  const T density = T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);
  return cumulative + x * density;
}

/// The tanh form: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
template <typename T>
T gelu_tanh_value(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}

template <typename T>
T gelu_tanh_slope(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  const T inner_slope = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
  const T bend = std::tanh(inner);
  return T(0.5) * (T(1) + bend) + T(0.5) * x * (T(1) - bend * bend) * inner_slope;
}

/// Written so that neither a large positive nor a large negative x overflows.
template <typename T>
T sigmoid_value(T x) {
  if (x >= T(0)) return T(1) / (T(1) + std::exp(-x));
  const T power = std::exp(x);
  return power / (T(1) + power);
}

/// log(1 + exp(x)); NaN stays NaN.
template <typename T>
T softplus_value(T x) {
  return (x < T(0) ? T(0) : x) + std::log1p(std::exp(-std::fabs(x)));
}

/// min(max(x, low), high); NaN stays NaN.
template <typename T>
T clip_value(T x, T low, T high) {
  return x < low ? low : x > high ? high : x;
}

/// 0 to the left of -3, 1 to the right of 3, a line between.
template <typename T>
T hardswish_slope(T x) {
  return x <= T(-3) ? T(0) : x >= T(3) ? T(1) : x / T(3) + T(0.5);
}

/// d/dx x sigmoid(x).
template <typename T>
T silu_slope(T x) {
  const T s = sigmoid_value(x);
  return s * (T(1) + x * (T(1) - s));
}

/// The values of an instruction's slots and literals; those that it does not have are ignored.
template <typename T>
T evaluate_scalar_op(ScalarOp op, T a, T b, T c, T literal, T second_literal) {
  switch (op) {
    case ScalarOp::relu:
      return a < T(0) ? T(0) : a;  // lets a NaN through
    case ScalarOp::leaky_relu:
      return a < T(0) ? literal * a : a;
    case ScalarOp::elu:
      return a < T(0) ? literal * std::expm1(a) : a;
    case ScalarOp::clip:
      return clip_value(a, literal, second_literal);
    case ScalarOp::hardswish:
      return a * clip_value(a + T(3), T(0), T(6)) / T(6);
    case ScalarOp::silu:
      return a * sigmoid_value(a);
    case ScalarOp::softplus:
      return softplus_value(a);
    case ScalarOp::gelu:
      return gelu_value(a);
    case ScalarOp::gelu_tanh:
      return gelu_tanh_value(a);
    case ScalarOp::gelu_slope:
      return gelu_slope(a);
    case ScalarOp::gelu_tanh_slope:
      return gelu_tanh_slope(a);
    case ScalarOp::tanh:
      return std::tanh(a);
    case ScalarOp::sigmoid:
      return sigmoid_value(a);
    case ScalarOp::exp:
      return std::exp(a);
    case ScalarOp::log:
      return std::log(a);
    case ScalarOp::sqrt:
      return std::sqrt(a);
    case ScalarOp::negate:
      return -a;
    case ScalarOp::absolute:
      return std::fabs(a);
    case ScalarOp::square:
      return a * a;
    case ScalarOp::reciprocal:
      return T(1) / a;
    case ScalarOp::erf:
      return std::erf(a);
    case ScalarOp::sign:
      return a > T(0) ? T(1) : a < T(0) ? T(-1) : a;  // zeros and NaN as they are
    case ScalarOp::floor:
      return std::floor(a);
    case ScalarOp::ceil:
      return std::ceil(a);
    case ScalarOp::round:  // half to even: no program changes the rounding mode
      return std::nearbyint(a);
    case ScalarOp::sin:
      return std::sin(a);
    case ScalarOp::cos:
      return std::cos(a);
    case ScalarOp::tan:
      return std::tan(a);
    case ScalarOp::asin:
      return std::asin(a);
    case ScalarOp::acos:
      return std::acos(a);
    case ScalarOp::atan:
      return std::atan(a);
    case ScalarOp::sinh:
      return std::sinh(a);
    case ScalarOp::cosh:
      return std::cosh(a);
    case ScalarOp::asinh:
      return std::asinh(a);
    case ScalarOp::acosh:
      return std::acosh(a);
    case ScalarOp::atanh:
      return std::atanh(a);
    case ScalarOp::add:
      return a + b;
    case ScalarOp::subtract:
      return a - b;
    case ScalarOp::multiply:
      return a * b;
    case ScalarOp::divide:
      return a / b;
    case ScalarOp::pow:
      return std::pow(a, b);
    case ScalarOp::maximum:  // NaN wins, so that it shows in the loss
      return a > b || a != a ? a : b;
    case ScalarOp::minimum:
      return a < b || a != a ? a : b;
    case ScalarOp::equal:
      return a == b ? T(1) : T(0);
    case ScalarOp::greater:
      return a > b ? T(1) : T(0);
    case ScalarOp::greater_equal:
      return a >= b ? T(1) : T(0);
    case ScalarOp::where:
      return a != T(0) ? b : c;
    case ScalarOp::relu_backward:
      return b <= T(0) ? T(0) : a;  // lets the gradient of a NaN through
    case ScalarOp::leaky_relu_backward:
      return b > T(0) ? a : literal * a;
    case ScalarOp::elu_backward:
      return b > T(0) ? a : a * (b + literal);
    case ScalarOp::clip_backward:
      return b <= literal || b >= second_literal ? T(0) : a;
    case ScalarOp::hardswish_backward:
      return a * hardswish_slope(b);
    case ScalarOp::gelu_backward:
      return a * gelu_slope(b);
    case ScalarOp::gelu_tanh_backward:
      return a * gelu_tanh_slope(b);
    case ScalarOp::silu_backward:
      return a * silu_slope(b);
    case ScalarOp::add_scalar:
      return a + literal;
    case ScalarOp::multiply_scalar:
      return a * literal;
    case ScalarOp::pow_scalar:
      return std::pow(a, literal);
  }
  return T(0);
}

/// With the literals that the instruction holds.
template <typename T>
T evaluate_scalar(const ScalarInstruction& instruction, T a, T b = T(0), T c = T(0)) {
  return evaluate_scalar_op(instruction.op, a, b, c, static_cast<T>(instruction.literal),
                            static_cast<T>(instruction.second_literal));
}

}  // namespace weft::ops
