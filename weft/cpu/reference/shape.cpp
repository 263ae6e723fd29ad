// Ops that move elements without computing on them, for every dtype: each is a copy between two views.
#include <cstring>
#include <functional>

#include "weft/base/error.h"
#include "weft/cpu/reference/reference.h"
#include "weft/graph/constant_node.h"

namespace weft::reference {
namespace {

/// Copies `count` elements: target[to(i)] = source[from(i)].
template <typename From, typename To>
void copy_elements(DType dtype, const void* source, const From& from, void* target, const To& to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) copy_element(dtype, source, from(i), target, to(i));
}

StridedView row_major(const Shape& shape) { return {shape, row_major_strides(shape)}; }

/// The element offset of `starts` in a row-major tensor.
int64_t offset_of(const Shape& shape, const std::vector<int64_t>& starts) {
  const std::vector<int64_t> strides = row_major_strides(shape);
  int64_t offset = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) offset += starts[axis] * strides[axis];
  return offset;
}

/// A copy of input 0, read through a view of the output's shape.
Body gather(const NodeSignature& node, const StridedView& from) {
  const TensorType& out = node.outputs[0];
  return [from, to = row_major(out.shape), out](const KernelArguments& call) {
    clear_bits_behind(out, call.outputs[0]);
    copy_elements(out.dtype, call.inputs[0], from, call.outputs[0], to, out.elements());
  };
}

Body prepare_reshape(const NodeSignature& node) { return gather(node, row_major(node.outputs[0].shape)); }

Body prepare_transpose(const NodeSignature& node) {
  const std::vector<int64_t> strides = row_major_strides(node.inputs[0].shape);
  std::vector<int64_t> permuted;
  for (const int64_t axis : node.attributes.integers("permutation"))
    permuted.push_back(strides[static_cast<size_t>(axis)]);
  return gather(node, {node.outputs[0].shape, std::move(permuted)});
}

Body prepare_broadcast(const NodeSignature& node) {
  return gather(node, broadcast_view(node.inputs[0].shape, node.outputs[0].shape));
}

Body prepare_slice(const NodeSignature& node) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t base = offset_of(shape, node.attributes.integers("starts"));
  return gather(node, {node.outputs[0].shape, row_major_strides(shape), base});
}

/// A view of the elements that a strided slice takes from a tensor of `whole`.
StridedView walked_view(const Attributes& attributes, const Shape& whole, const Shape& part) {
  std::vector<int64_t> strides = row_major_strides(whole);
  const int64_t base = part.elements() == 0 ? 0 : offset_of(whole, attributes.integers("starts"));
  for (size_t axis = 0; axis < strides.size(); ++axis) strides[axis] *= attributes.integers("steps")[axis];
  return {part, std::move(strides), base};
}

Body prepare_strided_slice(const NodeSignature& node) {
  return gather(node, walked_view(node.attributes, node.inputs[0].shape, node.outputs[0].shape));
}

Body prepare_strided_slice_backward(const NodeSignature& node) {
  const TensorType &in = node.inputs[0], &out = node.outputs[0];
  return [in, out, from = row_major(in.shape),
          to = walked_view(node.attributes, out.shape, in.shape)](const KernelArguments& call) {
    std::memset(call.outputs[0], 0, static_cast<size_t>(out.bytes()));
    copy_elements(in.dtype, call.inputs[0], from, call.outputs[0], to, in.elements());
  };
}

Body prepare_concat(const NodeSignature& node) {
  const Shape& whole = node.outputs[0].shape;
  const std::vector<int64_t> strides = row_major_strides(whole);
  const auto axis = static_cast<size_t>(node.attributes.integer("axis"));
  struct Part {
    StridedView from, to;
    int64_t count;
  };
  std::vector<Part> parts;
  int64_t position = 0;
  for (const TensorType& type : node.inputs) {
    parts.push_back({row_major(type.shape), {type.shape, strides, position * strides[axis]}, type.elements()});
    position += type.shape.dims()[axis];
  }
  return [parts, out = node.outputs[0]](const KernelArguments& call) {
    clear_bits_behind(out, call.outputs[0]);
    for (size_t k = 0; k < parts.size(); ++k)
      copy_elements(out.dtype, call.inputs[k], parts[k].from, call.outputs[0], parts[k].to, parts[k].count);
  };
}

/// Fills the node's result with its attribute "value".
std::function<void(void*)> filler(const NodeSignature& node) {
  const auto fill_with = [out = node.outputs[0]](auto value) {
    return [out, value](void* data) {
      clear_bits_behind(out, data);
      for (int64_t i = 0; i < out.elements(); ++i) store_number(out.dtype, data, i, value);
    };
  };
  if (const auto whole = node.attributes.exact_integer("value")) return fill_with(*whole);
  return fill_with(node.attributes.real("value"));
}

Body prepare_pad(const NodeSignature& node) {
  const TensorType &in = node.inputs[0], &out = node.outputs[0];
  const StridedView to(in.shape, row_major_strides(out.shape), offset_of(out.shape, node.attributes.integers("low")));
  return [in, out, to, fill = filler(node), from = row_major(in.shape)](const KernelArguments& call) {
    fill(call.outputs[0]);
    copy_elements(in.dtype, call.inputs[0], from, call.outputs[0], to, in.elements());
  };
}

Body prepare_cast(const NodeSignature& node) {
  return [from = node.inputs[0].dtype, out = node.outputs[0]](const KernelArguments& call) {
    clear_bits_behind(out, call.outputs[0]);
    for (int64_t i = 0; i < out.elements(); ++i)
      convert_element(from, call.inputs[0], i, out.dtype, call.outputs[0], i);
  };
}

Body prepare_constant(const NodeSignature& node) {
  return [fill = filler(node)](const KernelArguments& call) { fill(call.outputs[0]); };
}

Body prepare_constant_tensor(const NodeSignature& node) {
  return [data = constant_of(node.attributes)](const KernelArguments& call) {
    if (data->type().bytes() > 0)
      std::memcpy(call.outputs[0], data->tensor().data(), static_cast<size_t>(data->type().bytes()));
  };
}

Body prepare_iota(const NodeSignature& node) {
  const auto start = static_cast<uint64_t>(node.attributes.integer("start"));
  const auto step = static_cast<uint64_t>(node.attributes.integer("step"));
  return [start, step, out = node.outputs[0]](const KernelArguments& call) {
    clear_bits_behind(out, call.outputs[0]);
    for (int64_t i = 0; i < out.elements(); ++i)  // wraps around
      store_number(out.dtype, call.outputs[0], i, static_cast<int64_t>(start + static_cast<uint64_t>(i) * step));
  };
}

/// Offsets of a layout, of the elements in the order of a row-major walk.
class LayoutOffsets {
 public:
  LayoutOffsets(const Shape& shape, const Layout& layout) : terms_(axis_offsets(shape, layout)) {}
  int64_t operator()(int64_t position) const {
    int64_t offset = 0;
    for (size_t axis = terms_.size(); axis-- > 0;) {
      const auto dim = static_cast<int64_t>(terms_[axis].size());
      offset += terms_[axis][static_cast<size_t>(position % dim)];
      position /= dim;
    }
    return offset;
  }

 private:
  std::vector<std::vector<int64_t>> terms_;
};

Body prepare_reorder(const NodeSignature& node) {
  const TensorType &in = node.inputs[0], &out = node.outputs[0];
  const LayoutOffsets from(in.shape, in.layout), to(out.shape, out.layout);
  return [from, to, out](const KernelArguments& call) {
    std::memset(call.outputs[0], 0, static_cast<size_t>(out.bytes()));  // the padding of blocks holds zeros
    copy_elements(out.dtype, call.inputs[0], from, call.outputs[0], to, out.elements());
  };
}

}  // namespace

void add_shape(KernelTable& table) {
  add_plain(table, "reshape", prepare_reshape, Accepts::any_dtype);
  add_plain(table, "transpose", prepare_transpose, Accepts::any_dtype);
  add_plain(table, "broadcast_to", prepare_broadcast, Accepts::any_dtype);
  add_plain(table, "slice", prepare_slice, Accepts::any_dtype);
  add_plain(table, "strided_slice", prepare_strided_slice, Accepts::any_dtype);
  add_plain(table, "strided_slice_backward", prepare_strided_slice_backward, Accepts::any_dtype);
  add_plain(table, "concat", prepare_concat, Accepts::any_dtype);
  add_plain(table, "pad", prepare_pad, Accepts::any_dtype);
  add_plain(table, "cast", prepare_cast, Accepts::any_dtype);
  add_plain(table, "constant", prepare_constant, Accepts::any_dtype);
  add_any_layout(table, "constant_tensor", prepare_constant_tensor);
  add_plain(table, "iota", prepare_iota, Accepts::any_dtype);
  add_any_layout(table, "reorder", prepare_reorder);
  // Without a file, and between places of one memory.
  for (const char* transfer : {"store", "load", "copy_to_device", "copy_to_host"})
    add_any_layout(table, transfer, prepare_reorder);
}

}  // namespace weft::reference
