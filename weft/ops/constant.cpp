// Ops without operands whose results are more than one number repeated: a tensor that the graph holds, and a count.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "weft/graph/constant_node.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/tensor/element.h"

namespace weft::ops {

namespace {

template <typename Number>
AttributeValue example_data(DType dtype, Shape shape, std::vector<Number> values) {
  Tensor tensor(dtype, std::move(shape));
  for (size_t index = 0; index < values.size(); ++index)
    store_number(dtype, tensor.data(), static_cast<int64_t>(index), values[index]);
  return Constant(std::move(tensor));
}

OpDef constant_tensor_op() {
  OpDef op;
  op.name = kConstantTensor;
  op.summary = "A tensor that the graph holds: weights that are not trained, tables, shapes.";
  op.outputs = {"y"};
  op.attributes = {required_attribute(kConstantData, Constant{}, "type and elements, shared and never copied")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Constant& data = context.attributes.constant(kConstantData);
    if (!data) context.fail("has no data; give a Constant with a tensor");
    return {data->type()};
  };
  op.gradient = [](GradContext&) -> std::vector<ValueId> { return {}; };
  op.examples = {
      {"a shape", {}, {{kConstantData, example_data<int64_t>(DType::i64, {3}, {2, -1, INT64_MAX})}}, {}},
      {"a weight", {}, {{kConstantData, example_data<double>(DType::f32, {2, 2}, {0.5, -1, 1e-3, 3})}}, {}},
      {"packed", {}, {{kConstantData, example_data<int64_t>(DType::i4, {3}, {-8, 7, 1})}}, {}},
      {"a scalar", {}, {{kConstantData, example_data<uint64_t>(DType::boolean, {}, {1})}}, {}},
  };
  return op;
}

OpDef iota_op() {
  OpDef op;
  op.name = "iota";
  op.summary = "The vector start, start + step, ... (ONNX's Range, NumPy's arange).";
  op.outputs = {"y"};
  op.attributes = {required_attribute("count", int64_t{4}, "how many"), attribute("start", int64_t{0}, "the first"),
                   attribute("step", int64_t{1}, "from one to the next"),
                   attribute("dtype", "i64", std::string(dtype_names()))};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const int64_t count = context.attributes.integer("count");
    if (count < 0) context.fail(fmt::format("count must not be negative, got {}", count));
    return {typed(require_dtype_name(context), {count})};
  };
  op.gradient = [](GradContext&) -> std::vector<ValueId> { return {}; };
  op.examples = {
      {"indices", {}, {{"count", int64_t{5}}}, {}},
      {"downwards", {}, {{"count", int64_t{4}}, {"start", int64_t{3}}, {"step", int64_t{-1}}}, {}},
      {"reals", {}, {{"count", int64_t{7}}, {"step", int64_t{2}}, {"dtype", "f32"}}, {}},
  };
  return op;
}

}  // namespace

void add_constant_ops(OpRegistry& registry) {
  registry.add(of_work(work::kCopies, constant_tensor_op()));
  registry.add(of_work(work::kCopies, iota_op()));
}

ValueId constant_tensor(Graph& graph, Constant data, const std::string& name) {
  return graph.add(kConstantTensor, {}, {{kConstantData, std::move(data)}}, name);
}
ValueId constant_integers(Graph& graph, const std::vector<int64_t>& values, const std::string& name) {
  Tensor tensor(DType::i64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.data_as<int64_t>());
  return constant_tensor(graph, Constant(std::move(tensor)), name);
}
ValueId iota(Graph& graph, DType dtype, int64_t count, int64_t start, int64_t step, const std::string& name) {
  const Attributes attributes{
      {"count", count}, {"start", start}, {"step", step}, {"dtype", std::string(name_of(dtype))}};
  return graph.add("iota", {}, attributes, name);
}

}  // namespace weft::ops
