// Reductions over any axes, softmax and log-softmax along one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/runtime/reference/reference.h"

namespace weft::reference {
namespace {

enum class Reduction { sum, mean, max, min };

double start_of(Reduction reduction) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return reduction == Reduction::max ? -infinity : reduction == Reduction::min ? infinity : 0;
}

double join(Reduction reduction, double result, double value) {
  if (reduction == Reduction::max) return std::max(result, value);
  if (reduction == Reduction::min) return std::min(result, value);
  return result + value;
}

Body prepare_reduce(const NodeSignature& node, Reduction reduction) {
  const Shape& shape = node.inputs[0].shape;
  const std::vector<int64_t>& axes = node.attributes.integers("axes");
  const std::vector<int64_t> strides = row_major_strides(shape);
  std::vector<int64_t> kept_dims, kept_strides, reduced_dims, reduced_strides;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool reduced = axes.empty() || std::count(axes.begin(), axes.end(), axis) > 0 ||
                         std::count(axes.begin(), axes.end(), axis - shape.rank()) > 0;
    (reduced ? reduced_dims : kept_dims).push_back(shape[axis]);
    (reduced ? reduced_strides : kept_strides).push_back(strides[static_cast<size_t>(axis)]);
  }
  const StridedView kept(Shape(kept_dims), kept_strides), inner(Shape(reduced_dims), reduced_strides);
  const int64_t outputs = node.outputs[0].elements(), count = Shape(reduced_dims).elements();
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

/// exp(x - max) / sum, or x - max - log(sum): the maximum is taken off so that nothing overflows.
Body prepare_softmax(const NodeSignature& node, bool logarithm) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t given = node.attributes.integer("axis");
  const int axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
  const int64_t length = shape[axis], inner = row_major_strides(shape)[static_cast<size_t>(axis)];
  const int64_t outer = length * inner == 0 ? 0 : shape.elements() / (length * inner);
  return [=](const KernelArguments& call) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const float* x = input(call, 0) + o * length * inner + i;
        float* y = output(call, 0) + o * length * inner + i;
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t k = 0; k < length; ++k) largest = std::max(largest, static_cast<double>(x[k * inner]));
        for (int64_t k = 0; k < length; ++k) sum += std::exp(static_cast<double>(x[k * inner]) - largest);
        for (int64_t k = 0; k < length; ++k) {
          const double centred = static_cast<double>(x[k * inner]) - largest;
          y[k * inner] = static_cast<float>(logarithm ? centred - std::log(sum) : std::exp(centred) / sum);
        }
      }
  };
}

}  // namespace

void add_reduce(KernelTable& table) {
  add_plain(table, "reduce_sum", [](const NodeSignature& node) { return prepare_reduce(node, Reduction::sum); });
  add_plain(table, "reduce_mean", [](const NodeSignature& node) { return prepare_reduce(node, Reduction::mean); });
  add_plain(table, "reduce_max", [](const NodeSignature& node) { return prepare_reduce(node, Reduction::max); });
  add_plain(table, "reduce_min", [](const NodeSignature& node) { return prepare_reduce(node, Reduction::min); });
  add_plain(table, "softmax", [](const NodeSignature& node) { return prepare_softmax(node, false); });
  add_plain(table, "log_softmax", [](const NodeSignature& node) { return prepare_softmax(node, true); });
}

}  // namespace weft::reference
