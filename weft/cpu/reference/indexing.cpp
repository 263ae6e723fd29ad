// Gather and its gradient, one-hot, argmax and running sums: loops over (outer, axis, inner).
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "weft/cpu/reference/index_walks.h"
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

Body prepare_gather(const NodeSignature& node) {
  const int64_t axis = node.attributes.integer("axis");
  const AxisGrid from(node.inputs[0].shape, axis), to(node.outputs[0].shape, axis);
  return [=, dtype = node.inputs[0].dtype, index_dtype = node.inputs[1].dtype](const KernelArguments& call) {
    clear_bits_behind(node.outputs[0], call.outputs[0]);
    for (int64_t o = 0; o < to.outer; ++o)
      for (int64_t k = 0; k < to.length; ++k)
        for (int64_t i = 0; i < to.inner; ++i) {
          const int64_t place = to(o, k, i), at = load_as<int64_t>(index_dtype, call.inputs[1], place);
          if (at >= 0 && at < from.length)
            copy_element(dtype, call.inputs[0], from(o, at, i), call.outputs[0], place);
          else
            store_nothing(dtype, call.outputs[0], place);
        }
  };
}

Body prepare_take(const NodeSignature& node) {
  const AxisGrid from(node.inputs[0].shape, node.attributes.integer("axis"));
  const int64_t count = node.inputs[1].elements();
  return [=, dtype = node.inputs[0].dtype, index_dtype = node.inputs[1].dtype](const KernelArguments& call) {
    clear_bits_behind(node.outputs[0], call.outputs[0]);
    for (int64_t o = 0; o < from.outer; ++o)
      for (int64_t k = 0; k < count; ++k) {
        const int64_t given = load_as<int64_t>(index_dtype, call.inputs[1], k);
        const int64_t at = given < 0 ? given + from.length : given;
        for (int64_t i = 0; i < from.inner; ++i) {
          const int64_t place = (o * count + k) * from.inner + i;
          if (at >= 0 && at < from.length)
            copy_element(dtype, call.inputs[0], from(o, at, i), call.outputs[0], place);
          else
            store_nothing(dtype, call.outputs[0], place);
        }
      }
  };
}

Body prepare_gather_backward(const NodeSignature& node) {
  const int64_t axis = node.attributes.integer("axis");
  const AxisGrid from(node.inputs[0].shape, axis), to(node.outputs[0].shape, axis);
  return [=](const KernelArguments& call) {
    const int32_t* indices = input<int32_t>(call, 1);
    float* x_gradient = output(call, 0);
    std::fill(x_gradient, x_gradient + to.outer * to.length * to.inner, 0.0f);
    for (int64_t o = 0; o < from.outer; ++o)
      for (int64_t k = 0; k < from.length; ++k)
        for (int64_t i = 0; i < from.inner; ++i) {
          const int64_t at = indices[from(o, k, i)];
          if (at >= 0 && at < to.length) x_gradient[to(o, at, i)] += input(call, 0)[from(o, k, i)];
        }
  };
}

Body prepare_one_hot(const NodeSignature& node) {
  const int64_t count = node.inputs[0].elements(), classes = node.attributes.integer("classes");
  return [=](const KernelArguments& call) {
    float* y = output(call, 0);
    std::fill(y, y + count * classes, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t at = input<int32_t>(call, 0)[i];
      if (at >= 0 && at < classes) y[i * classes + at] = 1;
    }
  };
}

/// Of any numbers: the first that is larger than all others, or NaN.
template <typename T>
int64_t first_largest_of(const AxisGrid& grid, DType dtype, const void* x, int64_t o, int64_t i) {
  int64_t best = 0;
  T largest = load_as<T>(dtype, x, grid(o, 0, i));
  for (int64_t k = 1; k < grid.length && largest == largest; ++k) {
    const T value = load_as<T>(dtype, x, grid(o, k, i));
    if (value <= largest) continue;
    best = k;
    largest = value;
  }
  return best;
}

Body prepare_argmax(const NodeSignature& node) {
  const AxisGrid grid(node.inputs[0].shape, node.attributes.integer("axis"));
  const DType dtype = node.inputs[0].dtype;
  return visit_number(dtype, [&](auto zero) -> Body {
    using T = decltype(zero);
    return [=](const KernelArguments& call) {
      grid.for_each_line([&](int64_t o, int64_t i) {
        const int64_t best = first_largest_of<T>(grid, dtype, call.inputs[0], o, i);
        output<int32_t>(call, 0)[o * grid.inner + i] = static_cast<int32_t>(best);
      });
    };
  });
}

/// Reals are summed in double, integers wrap around.
Body prepare_cumulative_sum(const NodeSignature& node) {
  const AxisGrid grid(node.inputs[0].shape, node.attributes.integer("axis"));
  const bool reverse = node.attributes.boolean("reverse"), exclusive = node.attributes.boolean("exclusive");
  return visit_number(node.inputs[0].dtype, [&](auto zero) -> Body {
    using Sum = std::conditional_t<std::is_same_v<decltype(zero), double>, double, uint64_t>;
    return [=, type = node.outputs[0]](const KernelArguments& call) {
      clear_bits_behind(type, call.outputs[0]);
      grid.for_each_line([&](int64_t o, int64_t i) {
        Sum sum = 0;
        for (int64_t step = 0; step < grid.length; ++step) {
          const int64_t at = grid(o, reverse ? grid.length - 1 - step : step, i);
          const Sum value = load_as<Sum>(type.dtype, call.inputs[0], at);  // before the result may overwrite it
          store_number(type.dtype, call.outputs[0], at, exclusive ? sum : sum + value);
          sum += value;
        }
      });
    };
  });
}

}  // namespace

int64_t first_largest(const float* x, int64_t count, int64_t stride) {
  int64_t best = 0;
  for (int64_t k = 1; k < count && !std::isnan(x[best * stride]); ++k)
    if (x[k * stride] > x[best * stride] || std::isnan(x[k * stride])) best = k;
  return best;
}

void add_indexing(KernelTable& table) {
  add_plain(table, "gather", prepare_gather, Accepts::any_dtype);
  add_plain(table, "take", prepare_take, Accepts::any_dtype);
  add_plain(table, "gather_backward", prepare_gather_backward);
  add_plain(table, "one_hot", prepare_one_hot);
  add_plain(table, "argmax", prepare_argmax, Accepts::any_dtype);
  add_plain(table, "cumulative_sum", prepare_cumulative_sum, Accepts::any_dtype);
}

}  // namespace weft::reference
