#include "weft/onnx/export/export_shapes.h"

#include <algorithm>
#include <limits>

#include "weft/graph/constant_node.h"
#include "weft/onnx/export/node_parts.h"
#include "weft/onnx/file/tensor_format.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

bool is_fixed(const std::vector<Size>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.is_fixed(); });
}

}  // namespace

void export_reshape(Emitter& emitter, NodeId id) {
  std::vector<Size> shape = emitter.shape(node_of(emitter, id).outputs[0]);
  const auto open = std::count_if(shape.begin(), shape.end(), [](const Size& size) { return !size.is_fixed(); });
  std::string target;
  if (open == 1) {
    std::vector<int64_t> numbers;
    for (const Size& size : shape) numbers.push_back(size.is_fixed() ? size.constant : -1);
    target = emitter.integers(numbers, "shape");
  } else {
    target = emitter.sizes(shape);
  }
  emitter.add("Reshape", {input(emitter, id, 0), target}, {}, output(emitter, id));
}

void export_slice(Emitter& emitter, NodeId id) {
  const auto starts = emitter.attribute_sizes(id, "starts"), ends = emitter.attribute_sizes(id, "ends");
  const auto whole = emitter.shape(input_of(emitter, id, 0));
  const bool has_steps = attributes_of(emitter, id).has("steps");
  const std::vector<int64_t> steps =
      has_steps ? attributes_of(emitter, id).integers("steps") : std::vector<int64_t>(starts.size(), 1);
  std::vector<int64_t> axes, by;
  std::vector<Size> from, to;
  for (size_t axis = 0; axis < starts.size(); ++axis) {
    if (starts[axis] == Size{0, 0} && ends[axis] == whole[axis] && steps[axis] == 1) continue;
    axes.push_back(static_cast<int64_t>(axis));
    from.push_back(starts[axis]);
    // weft's -1 lies before the first element; ONNX's is the last one.
    to.push_back(steps[axis] < 0 && ends[axis] == Size{-1, 0} ? Size{std::numeric_limits<int64_t>::min(), 0}
                                                              : ends[axis]);
    by.push_back(steps[axis]);
  }
  if (axes.empty()) return static_cast<void>(emitter.add("Identity", inputs(emitter, id), {}, output(emitter, id)));
  emitter.add("Slice",
              {input(emitter, id, 0), emitter.sizes(from), emitter.sizes(to), emitter.integers(axes, "axes"),
               emitter.integers(by, "steps")},
              {}, output(emitter, id));
}

void export_broadcast(Emitter& emitter, NodeId id) {
  const std::string shape = emitter.sizes(emitter.shape(node_of(emitter, id).outputs[0]));
  emitter.add("Expand", {input(emitter, id, 0), shape}, {}, output(emitter, id));
}

void export_constant(Emitter& emitter, NodeId id) {
  const ValueId value = node_of(emitter, id).outputs[0];
  const DType dtype = emitter.graph().type(value).dtype;
  Tensor one(dtype, Shape{1});
  const Attributes& own = attributes_of(emitter, id);
  if (const auto exact = own.exact_integer("value"))
    store_number(dtype, one.data(), 0, *exact);
  else
    store_element(dtype, one.data(), 0, own.real("value"));
  const std::vector<Size> shape = emitter.shape(value);
  if (shape.empty()) {
    emitter.result().initializers[emitter.name(value)] = one.reinterpreted({dtype, Shape{}, {}});
    return;
  }
  emitter.add("ConstantOfShape", {emitter.sizes(shape)}, {{"value", HostValue(one)}}, output(emitter, id));
}

void export_constant_tensor(Emitter& emitter, NodeId id) {
  emitter.result().initializers[output(emitter, id)] = constant_of(node_of(emitter, id))->tensor();
}

void export_iota(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  const TensorType& type = emitter.graph().type(node_of(emitter, id).outputs[0]);
  if (!is_fixed(emitter.shape(node_of(emitter, id).outputs[0]))) emitter.fail(id, "its length depends on the batch");
  Tensor numbers(type);
  for (int64_t index = 0; index < numbers.elements(); ++index)
    store_number(type.dtype, numbers.data(), index, own.integer("start") + index * own.integer("step"));
  emitter.result().initializers[output(emitter, id)] = numbers;
}

void export_pad(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  std::vector<int64_t> pads = own.integers("low");
  pads.insert(pads.end(), own.integers("high").begin(), own.integers("high").end());
  Tensor fill(dtype_of_input(emitter, id, 0), Shape{});
  if (const auto exact = own.exact_integer("value"))
    store_number(fill.dtype(), fill.data(), 0, *exact);
  else
    store_element(fill.dtype(), fill.data(), 0, own.real("value"));
  emitter.add("Pad", {input(emitter, id, 0), emitter.integers(pads, "pads"), emitter.constant(fill, "fill")}, {},
              output(emitter, id));
}

void export_cast(Emitter& emitter, NodeId id) {
  const DType dtype = emitter.graph().type(node_of(emitter, id).outputs[0]).dtype;
  emitter.add("Cast", inputs(emitter, id), {{"to", int64_t{data_type_of(dtype)}}}, output(emitter, id));
}

void export_transpose(Emitter& emitter, NodeId id) {
  emitter.add("Transpose", inputs(emitter, id), {{"perm", attributes_of(emitter, id).integers("permutation")}},
              output(emitter, id));
}

/// Scores on and below the diagonal stay.
void export_causal_mask(Emitter& emitter, NodeId id) {
  const ValueId scores = input_of(emitter, id, 0);
  const auto shape = emitter.shape(scores);
  const Size rows = shape[shape.size() - 2], columns = shape.back();
  if (!rows.is_fixed() || !columns.is_fixed()) emitter.fail(id, "its length depends on the batch");
  const DType dtype = emitter.graph().type(scores).dtype;
  const double value = attributes_of(emitter, id).real("value");
  const auto is_seen = [&](int64_t row, int64_t column) { return column <= row + columns.constant - rows.constant; };
  if (dtype == DType::f32) {
    // Beside so large a number no score counts, and every engine adds quickly.
    Tensor addend(DType::f32, Shape{rows.constant, columns.constant});
    for (int64_t row = 0; row < rows.constant; ++row)
      for (int64_t column = 0; column < columns.constant; ++column)
        addend.data_as<float>()[row * columns.constant + column] =
            is_seen(row, column) ? 0.0F : static_cast<float>(value);
    emitter.add("Add", {emitter.name(scores), emitter.constant(addend, "causal")}, {}, output(emitter, id));
    return;
  }
  Tensor mask(DType::boolean, Shape{rows.constant, columns.constant});
  for (int64_t row = 0; row < rows.constant; ++row)
    for (int64_t column = 0; column < columns.constant; ++column)
      mask.data_as<uint8_t>()[row * columns.constant + column] = is_seen(row, column);
  emitter.add("Where", {emitter.constant(mask, "causal"), emitter.name(scores), emitter.number(value, dtype)}, {},
              output(emitter, id));
}

}  // namespace weft::onnx
