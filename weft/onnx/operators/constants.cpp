// Constants, and what is made of sizes alone.
#include <algorithm>
#include <cmath>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

/// One of several attributes, by the kind of the constant.
std::vector<HostValue> run_constant(const HostContext& node) {
  const auto list = [](Shape shape, DType dtype, const auto& numbers) {
    Tensor tensor(dtype, std::move(shape));
    for (size_t index = 0; index < numbers.size(); ++index)
      store_number(dtype, tensor.data(), static_cast<int64_t>(index), numbers[index]);
    return tensor;
  };
  if (node.has_attribute("value")) return {node.value_of("value")};
  if (node.has_attribute("value_int")) return {list({}, DType::i64, std::vector<int64_t>{node.integer("value_int")})};
  if (node.has_attribute("value_float"))
    return {list({}, DType::f32, std::vector<double>{node.real("value_float", 0)})};
  if (node.has_attribute("value_string")) return {StringTensor{{}, {node.text("value_string", "")}}};
  if (node.has_attribute("value_ints")) {
    const auto numbers = node.integers("value_ints");
    return {list(Shape{static_cast<int64_t>(numbers.size())}, DType::i64, numbers)};
  }
  if (node.has_attribute("value_floats")) {
    const auto numbers = node.reals("value_floats");
    return {list(Shape{static_cast<int64_t>(numbers.size())}, DType::f32, numbers)};
  }
  if (node.has_attribute("value_strings")) {
    const auto texts = node.texts("value_strings");
    return {StringTensor{Shape{static_cast<int64_t>(texts.size())}, texts}};
  }
  node.fail("has a sparse value, or none");
}

std::vector<ValueId> convert_constant_of_shape(NodeContext& node) {
  Graph& graph = node.graph();
  Tensor value(DType::f32, Shape{1});
  if (node.has_attribute("value")) {
    const Tensor* given = node.value_of("value").tensor();
    if (given == nullptr || given->elements() != 1) node.fail("wants one number as its value");
    value = *given;
  }
  const Shape shape(node.known_integers(0));
  if (!has_bounded_size(shape)) node.fail("has the shape " + to_string(shape));
  const ValueId one = ops::reshape(graph, ops::constant_tensor(graph, Constant(value)), std::vector<int64_t>{});
  return {ops::broadcast_to(graph, one, shape, node.hint())};
}

/// Computed with the numbers, since its length depends on them.
std::vector<ValueId> convert_range(NodeContext& node) {
  const Tensor &start = node.known(0), &limit = node.known(1), &step = node.known(2);
  const DType dtype = start.dtype();
  if (start.elements() != 1 || limit.elements() != 1 || step.elements() != 1) node.fail("wants single numbers");
  constexpr int64_t kMost = int64_t{1} << 31;
  Tensor result;
  if (is_floating(dtype)) {
    const double from = reals_of(start)[0], to = reals_of(limit)[0], by = reals_of(step)[0];
    const double count = std::ceil((to - from) / by);
    if (!(by != 0) || !(count < static_cast<double>(kMost))) node.fail("has no end");
    result = Tensor(dtype, Shape{std::max<int64_t>(0, static_cast<int64_t>(count))});
    for (int64_t index = 0; index < result.elements(); ++index)
      store_element(dtype, result.data(), index, from + static_cast<double>(index) * by);
  } else {
    const int64_t from = integers_of(start)[0], to = integers_of(limit)[0], by = integers_of(step)[0];
    if (by == 0) node.fail("has no end");
    const int64_t span = by > 0 ? to - from : from - to, size = std::abs(by);
    const int64_t count = span <= 0 ? 0 : (span + size - 1) / size;
    if (count >= kMost) node.fail("has no end");
    result = Tensor(dtype, Shape{count});
    for (int64_t index = 0; index < count; ++index) store_number(dtype, result.data(), index, from + index * by);
  }
  return {ops::constant_tensor(node.graph(), Constant(result), node.hint())};
}

std::vector<ValueId> convert_eye_like(NodeContext& node) {
  if (node.rank(0) != 2) node.fail("wants a matrix");
  const DType dtype = node.dtype_of("dtype", node.dtype(0));
  const int64_t diagonal = node.integer("k", 0);
  Tensor result(dtype, node.shape(0));
  for (int64_t row = 0; row < result.shape()[0]; ++row)
    if (const int64_t column = row + diagonal; column >= 0 && column < result.shape()[1])
      store_number(dtype, result.data(), row * result.shape()[1] + column, int64_t{1});
  return {ops::constant_tensor(node.graph(), Constant(result), node.hint())};
}

}  // namespace

void add_constants(OperatorTable& table) {
  const std::string family = "constant";
  table.add_on_host(family, "Constant", run_constant);
  table.add(family, "ConstantOfShape", convert_constant_of_shape);
  table.add(family, "Range", convert_range);
  table.add(family, "EyeLike", convert_eye_like);
}

}  // namespace weft::onnx
