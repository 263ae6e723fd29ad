#include "weft/onnx/operators/host_tensors.h"

#include <algorithm>

#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

/// Elements before the axis, and behind it.
std::pair<int64_t, int64_t> around(const Shape& shape, int axis) {
  int64_t outer = 1, inner = 1;
  for (int each = 0; each < shape.rank(); ++each)
    if (each != axis) (each < axis ? outer : inner) *= shape[each];
  return {outer, inner};
}

void copy(const Tensor& from, int64_t source, Tensor& to, int64_t target, int64_t count) {
  for (int64_t index = 0; index < count; ++index)
    copy_element(from.dtype(), from.data(), source + index, to.data(), target + index);
}

}  // namespace

Tensor joined(const NodeAttributes& node, const std::vector<Tensor>& parts, int64_t axis) {
  if (parts.empty()) node.fail("joins nothing");
  const int along = static_cast<int>(axis < 0 ? axis + parts[0].shape().rank() : axis);
  Shape shape = parts[0].shape();
  if (along < 0 || along >= shape.rank())
    node.fail(fmt::format("joins along the axis {} of {}", axis, to_string(shape)));
  shape[along] = 0;
  for (const Tensor& part : parts) {
    Shape rest = part.shape();
    if (rest.rank() != shape.rank() || part.dtype() != parts[0].dtype())
      node.fail(fmt::format("joins {} and {}", to_string(parts[0].type()), to_string(part.type())));
    const int64_t size = rest[along];
    rest[along] = shape[along];
    if (rest != shape) node.fail(fmt::format("joins {} and {}", to_string(parts[0].type()), to_string(part.type())));
    shape[along] += size;
  }
  Tensor result(parts[0].dtype(), shape);
  const auto [outer, inner] = around(shape, along);
  int64_t done = 0;
  for (const Tensor& part : parts) {
    const int64_t count = part.shape()[along] * inner;
    for (int64_t row = 0; row < outer; ++row) copy(part, row * count, result, row * shape[along] * inner + done, count);
    done += count;
  }
  return result;
}

Tensor stacked(const NodeAttributes& node, const std::vector<Tensor>& parts, int64_t axis, bool reversed,
               const ValueInfo& info) {
  if (parts.empty()) {
    std::vector<int64_t> shape;
    if (info.shape)
      for (const Dimension& dimension : *info.shape) shape.push_back(dimension.size.value_or(0));
    const auto rank = static_cast<int64_t>(shape.size()) + 1;
    shape.insert(shape.begin() + std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank - 1), 0);
    return Tensor(info.dtype.value_or(DType::f32), Shape(shape));
  }
  const int64_t rank = parts[0].shape().rank() + 1, along = axis < 0 ? axis + rank : axis;
  if (along < 0 || along >= rank) node.fail(fmt::format("gathers along the axis {}", axis));
  std::vector<Tensor> layers;
  for (const Tensor& part : parts) {
    std::vector<int64_t> shape = part.shape().dims();
    shape.insert(shape.begin() + along, 1);
    layers.push_back(part.reinterpreted({part.dtype(), Shape(shape), {}}));
  }
  if (reversed) std::reverse(layers.begin(), layers.end());
  return joined(node, layers, along);
}

Tensor range_of(const Tensor& tensor, int axis, int64_t start, int64_t end) {
  Shape shape = tensor.shape();
  const auto [outer, inner] = around(shape, axis);
  const int64_t size = shape[axis];
  shape[axis] = end - start;
  Tensor result(tensor.dtype(), shape);
  for (int64_t row = 0; row < outer; ++row)
    copy(tensor, (row * size + start) * inner, result, row * (end - start) * inner, (end - start) * inner);
  return result;
}

Tensor layer_of(const Tensor& tensor, int axis, int64_t position) {
  const Tensor part = range_of(tensor, axis, position, position + 1);
  std::vector<int64_t> shape = part.shape().dims();
  shape.erase(shape.begin() + axis);
  return part.reinterpreted({part.dtype(), Shape(shape), {}});
}

}  // namespace weft::onnx
