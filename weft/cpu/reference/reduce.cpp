// Reductions over any axes, softmax and log-softmax along one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

enum class Reduction { sum, mean, product, max, min };

double start_of(Reduction reduction) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (reduction == Reduction::product) return 1;
  return reduction == Reduction::max ? -infinity : reduction == Reduction::min ? infinity : 0;
}

double join(Reduction reduction, double result, double value) {
  if (reduction == Reduction::product) return result * value;
  if (reduction != Reduction::max && reduction != Reduction::min) return result + value;
  if (std::isnan(result) || std::isnan(value)) return result + value;  // as torch.amax
  return reduction == Reduction::max ? std::max(result, value) : std::min(result, value);
}

/// The operand as outputs() lines of count() elements each.
struct ReducedLines {
  std::vector<int64_t> kept_dims, kept_strides, reduced_dims, reduced_strides;

  explicit ReducedLines(const NodeSignature& node) {
    const Shape& shape = node.inputs[0].shape;
    const std::vector<int64_t>& axes = node.attributes.integers("axes");
    const std::vector<int64_t> strides = row_major_strides(shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const bool reduced = axes.empty() || std::count(axes.begin(), axes.end(), axis) > 0 ||
                           std::count(axes.begin(), axes.end(), axis - shape.rank()) > 0;
      (reduced ? reduced_dims : kept_dims).push_back(shape[axis]);
      (reduced ? reduced_strides : kept_strides).push_back(strides[static_cast<size_t>(axis)]);
    }
  }
  /// Where each line begins, and where its elements lie from there.
  StridedView lines() const { return StridedView(Shape(kept_dims), kept_strides); }
  StridedView elements() const { return StridedView(Shape(reduced_dims), reduced_strides); }
  int64_t outputs() const { return Shape(kept_dims).elements(); }
  int64_t count() const { return Shape(reduced_dims).elements(); }
};

Body prepare_reduce(const NodeSignature& node, Reduction reduction) {
  const ReducedLines reduced(node);
  const StridedView kept = reduced.lines(), inner = reduced.elements();
  const int64_t outputs = reduced.outputs(), count = reduced.count();
  return [=](const KernelArguments& call) {
    for (int64_t out = 0; out < outputs; ++out) {
      const float* x = input(call, 0) + kept(out);
      double result = start_of(reduction);
      for (int64_t i = 0; i < count; ++i) result = join(reduction, result, static_cast<double>(x[inner(i)]));
      if (reduction == Reduction::mean) result /= static_cast<double>(count);
      output(call, 0)[out] = static_cast<float>(result);
    }
  };
}

/// The largest or smallest number of an integer type, in 64 bits.
template <typename T>
T extreme_of(DType dtype, bool highest) {
  const int bits = bits_of(dtype) - (is_signed(dtype) ? 1 : 0);
  const uint64_t largest = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return static_cast<T>(highest ? largest : is_signed(dtype) ? ~largest : 0);
}

template <typename T>
T start_of_numbers(Reduction reduction, DType dtype) {
  if constexpr (std::is_same_v<T, double>) return start_of(reduction);
  if (reduction == Reduction::max || reduction == Reduction::min)
    return extreme_of<T>(dtype, reduction == Reduction::min);
  return static_cast<T>(reduction == Reduction::product ? 1 : 0);
}

/// Integers wrap around.
template <typename T>
T join_numbers_of(Reduction reduction, T result, T value) {
  if constexpr (std::is_same_v<T, double>) return join(reduction, result, value);
  if (reduction == Reduction::max) return std::max(result, value);
  if (reduction == Reduction::min) return std::min(result, value);
  const auto a = static_cast<uint64_t>(result), b = static_cast<uint64_t>(value);
  return static_cast<T>(reduction == Reduction::product ? a * b : a + b);
}

/// Of f64 or integers.
Body prepare_reduce_of_numbers(const NodeSignature& node, Reduction reduction) {
  const ReducedLines reduced(node);
  const StridedView kept = reduced.lines(), inner = reduced.elements();
  const int64_t outputs = reduced.outputs(), count = reduced.count();
  return visit_number(node.inputs[0].dtype, [&](auto zero) -> Body {
    using T = decltype(zero);
    return [=, type = node.outputs[0]](const KernelArguments& call) {
      clear_bits_behind(type, call.outputs[0]);
      for (int64_t out = 0; out < outputs; ++out) {
        const int64_t first = kept(out);
        T result = start_of_numbers<T>(reduction, type.dtype);
        for (int64_t i = 0; i < count; ++i)
          result = join_numbers_of(reduction, result, load_as<T>(type.dtype, call.inputs[0], first + inner(i)));
        if (reduction == Reduction::mean) result /= static_cast<T>(count);
        store_number(type.dtype, call.outputs[0], out, result);
      }
    };
  });
}

void add_reduction_kernel(KernelTable& table, const std::string& op, Reduction reduction) {
  add_numbers(
      table, op, [reduction](const NodeSignature& node) { return prepare_reduce(node, reduction); },
      [reduction](const NodeSignature& node) { return prepare_reduce_of_numbers(node, reduction); });
}

/// The products of all elements before and behind each one: right where one or several are zero. In single precision
/// between the two sweeps, as the gradient itself is what keeps the first.
Body prepare_product_backward(const NodeSignature& node) {
  const ReducedLines reduced(node);
  const StridedView kept = reduced.lines(), inner = reduced.elements();
  const int64_t outputs = reduced.outputs(), count = reduced.count();
  return [=](const KernelArguments& call) {
    for (int64_t out = 0; out < outputs; ++out) {
      const float* x = input(call, 0) + kept(out);
      float* gradient = output(call, 0) + kept(out);
      double before = static_cast<double>(input(call, 1)[out]), behind = 1;
      for (int64_t i = 0; i < count; ++i) {
        gradient[inner(i)] = static_cast<float>(before);
        before *= static_cast<double>(x[inner(i)]);
      }
      for (int64_t i = count; i-- > 0;) {
        gradient[inner(i)] = static_cast<float>(static_cast<double>(gradient[inner(i)]) * behind);
        behind *= static_cast<double>(x[inner(i)]);
      }
    }
  };
}

/// The lines along the axis of a softmax.
struct SoftmaxLines {
  int64_t length, inner, outer;
  explicit SoftmaxLines(const NodeSignature& node) {
    const Shape& shape = node.inputs[0].shape;
    const int64_t given = node.attributes.integer("axis");
    const int axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
    length = shape[axis];
    inner = row_major_strides(shape)[static_cast<size_t>(axis)];
    outer = length * inner == 0 ? 0 : shape.elements() / (length * inner);
  }
  /// Calls visit(offset of the first element); the others follow `inner` apart.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) visit(o * length * inner + i);
  }
};

/// exp(x - max) / sum, or x - max - log(sum): the maximum is taken off so that nothing overflows. T: float or double.
template <typename T>
Body prepare_softmax(const NodeSignature& node, bool logarithm) {
  const SoftmaxLines lines(node);
  return [=](const KernelArguments& call) {
    lines.for_each([&](int64_t offset) {
      const int64_t length = lines.length, inner = lines.inner;
      const T* x = input<T>(call, 0) + offset;
      T* y = output<T>(call, 0) + offset;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t k = 0; k < length; ++k) largest = std::max(largest, static_cast<double>(x[k * inner]));
      for (int64_t k = 0; k < length; ++k) sum += std::exp(static_cast<double>(x[k * inner]) - largest);
      for (int64_t k = 0; k < length; ++k) {
        const double centred = static_cast<double>(x[k * inner]) - largest;
        y[k * inner] = static_cast<T>(logarithm ? centred - std::log(sum) : std::exp(centred) / sum);
      }
    });
  };
}

void add_softmax_kernel(KernelTable& table, const std::string& op, bool logarithm) {
  add_numbers(
      table, op, [logarithm](const NodeSignature& node) { return prepare_softmax<float>(node, logarithm); },
      [logarithm](const NodeSignature& node) { return prepare_softmax<double>(node, logarithm); });
}

Body prepare_softmax_backward(const NodeSignature& node) {
  const SoftmaxLines lines(node);
  return [=](const KernelArguments& call) {
    lines.for_each([&](int64_t offset) {
      const float *dy = input(call, 0) + offset, *y = input(call, 1) + offset;
      float* dx = output(call, 0) + offset;
      double sum = 0;
      for (int64_t k = 0; k < lines.length; ++k)
        sum += static_cast<double>(dy[k * lines.inner]) * static_cast<double>(y[k * lines.inner]);
      for (int64_t k = 0; k < lines.length; ++k)
        dx[k * lines.inner] = static_cast<float>(static_cast<double>(y[k * lines.inner]) *
                                                 (static_cast<double>(dy[k * lines.inner]) - sum));
    });
  };
}

}  // namespace

void add_reduce(KernelTable& table) {
  add_reduction_kernel(table, "reduce_sum", Reduction::sum);
  add_reduction_kernel(table, "reduce_mean", Reduction::mean);
  add_reduction_kernel(table, "reduce_prod", Reduction::product);
  add_plain(table, "reduce_prod_backward", prepare_product_backward);
  add_reduction_kernel(table, "reduce_max", Reduction::max);
  add_reduction_kernel(table, "reduce_min", Reduction::min);
  add_softmax_kernel(table, "softmax", false);
  add_plain(table, "softmax_backward", prepare_softmax_backward);
  add_softmax_kernel(table, "log_softmax", true);
}

}  // namespace weft::reference
