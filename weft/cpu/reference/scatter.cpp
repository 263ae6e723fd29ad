// Updates at places that indices name, in the order of the indices, and slices that vectors of indices name.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "weft/base/error.h"
#include "weft/cpu/reference/index_walks.h"
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

enum class Joining { replace, add, multiply, maximum, minimum };

Joining joining_of(const NodeSignature& node) {
  const std::string& text = node.attributes.text("reduction");
  if (text == "add") return Joining::add;
  if (text == "multiply") return Joining::multiply;
  if (text == "maximum") return Joining::maximum;
  if (text == "minimum") return Joining::minimum;
  check(text == "none", "a scatter has a known reduction");
  return Joining::replace;
}

/// Integers wrap around; a NaN wins over what it is compared with.
template <typename T>
T join_numbers(Joining joining, T there, T update) {
  using Wrapping = std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;
  const auto a = static_cast<Wrapping>(there), b = static_cast<Wrapping>(update);
  if (joining == Joining::add) return static_cast<T>(a + b);
  if (joining == Joining::multiply) return static_cast<T>(a * b);
  if (there != there) return there;
  if (update != update) return update;
  return (joining == Joining::maximum) == (update > there) ? update : there;
}

void join_element(Joining joining, DType dtype, const void* updates, int64_t from, void* data, int64_t to) {
  if (joining == Joining::replace) return copy_element(dtype, updates, from, data, to);
  visit_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    store_number(dtype, data, to, join_numbers(joining, load_as<T>(dtype, data, to), load_as<T>(dtype, updates, from)));
  });
}

/// The result begins as the data, over which it may lie.
void begin_with_data(const TensorType& type, const KernelArguments& call) {
  if (call.inputs[0] != call.outputs[0] && type.bytes() > 0)
    std::memcpy(call.outputs[0], call.inputs[0], static_cast<size_t>(type.bytes()));
}

/// The index in [0, size), or -1 where there is no such element.
int64_t counted_from_start(int64_t index, int64_t size) {
  const int64_t at = index < 0 ? index + size : index;
  return at < size ? std::max<int64_t>(at, -1) : -1;
}

Body prepare_scatter_elements(const NodeSignature& node) {
  const TensorType type = node.outputs[0];
  const int64_t given = node.attributes.integer("axis");
  const int axis = static_cast<int>(given < 0 ? given + type.shape.rank() : given);
  std::vector<int64_t> strides = row_major_strides(type.shape);
  const int64_t step = strides[static_cast<size_t>(axis)], size = type.shape[axis];
  strides[static_cast<size_t>(axis)] = 0;
  const StridedView line(node.inputs[1].shape, std::move(strides));  // where in the data each update's line begins
  return [=, count = node.inputs[1].elements(), joining = joining_of(node),
          index_dtype = node.inputs[1].dtype](const KernelArguments& call) {
    begin_with_data(type, call);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = counted_from_start(load_as<int64_t>(index_dtype, call.inputs[1], i), size);
      if (at >= 0) join_element(joining, type.dtype, call.inputs[2], i, call.outputs[0], line(i) + at * step);
    }
  };
}

/// The slices of the data (operand 0) that vectors of indices (operand 1) name.
struct NamedSlices {
  std::vector<int64_t> sizes, strides;  // of the axes that a vector walks, the strides in slices
  int64_t vectors = 1, per_batch = 1, slices_per_batch = 1, slice = 1;
  DType index_dtype;

  explicit NamedSlices(const NodeSignature& node) : index_dtype(node.inputs[1].dtype) {
    const Shape &data = node.inputs[0].shape, &indices = node.inputs[1].shape;
    const int batch_dims = static_cast<int>(node.attributes.integer("batch_dims")), last = indices.rank() - 1;
    const int walked = batch_dims + static_cast<int>(indices[last]);
    for (int axis = 0; axis < last; ++axis) vectors *= indices[axis];
    for (int axis = batch_dims; axis < last; ++axis) per_batch *= indices[axis];
    for (int axis = walked; axis < data.rank(); ++axis) slice *= data[axis];
    for (int axis = walked; axis-- > batch_dims;) {
      sizes.insert(sizes.begin(), data[axis]);
      strides.insert(strides.begin(), slices_per_batch);
      slices_per_batch *= data[axis];
    }
  }
  /// The first element of the slice that a vector names, or -1 where there is none.
  int64_t operator()(const void* indices, int64_t vector) const {
    int64_t place = vector / per_batch * slices_per_batch;
    for (size_t k = 0; k < sizes.size(); ++k) {
      const int64_t position = vector * static_cast<int64_t>(sizes.size()) + static_cast<int64_t>(k);
      const int64_t at = counted_from_start(load_as<int64_t>(index_dtype, indices, position), sizes[k]);
      if (at < 0) return -1;
      place += at * strides[k];
    }
    return place * slice;
  }
};

Body prepare_gather_nd(const NodeSignature& node) {
  return [named = NamedSlices(node), type = node.outputs[0]](const KernelArguments& call) {
    clear_bits_behind(type, call.outputs[0]);
    for (int64_t vector = 0; vector < named.vectors; ++vector) {
      const int64_t from = named(call.inputs[1], vector), to = vector * named.slice;
      for (int64_t i = 0; i < named.slice; ++i) {
        if (from >= 0)
          copy_element(type.dtype, call.inputs[0], from + i, call.outputs[0], to + i);
        else
          store_nothing(type.dtype, call.outputs[0], to + i);
      }
    }
  };
}

Body prepare_scatter_nd(const NodeSignature& node) {
  return [named = NamedSlices(node), type = node.outputs[0], joining = joining_of(node)](const KernelArguments& call) {
    begin_with_data(type, call);
    for (int64_t vector = 0; vector < named.vectors; ++vector) {
      const int64_t to = named(call.inputs[1], vector), from = vector * named.slice;
      for (int64_t i = 0; to >= 0 && i < named.slice; ++i)
        join_element(joining, type.dtype, call.inputs[2], from + i, call.outputs[0], to + i);
    }
  };
}

}  // namespace

void add_scatter(KernelTable& table) {
  add_plain(table, "scatter_elements", prepare_scatter_elements, Accepts::any_dtype);
  add_plain(table, "gather_nd", prepare_gather_nd, Accepts::any_dtype);
  add_plain(table, "scatter_nd", prepare_scatter_nd, Accepts::any_dtype);
}

}  // namespace weft::reference
