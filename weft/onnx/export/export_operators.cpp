#include "weft/onnx/export/export_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/graph/constant_node.h"
#include "weft/onnx/export/export_indexing.h"
#include "weft/onnx/export/export_recurrent.h"
#include "weft/onnx/export/export_shapes.h"
#include "weft/onnx/export/node_parts.h"
#include "weft/onnx/file/tensor_format.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

/// The same operator, with the node's operands as they are.
ExportNode same(const std::string& op) {
  return [op](Emitter& emitter, NodeId id) { emitter.add(op, inputs(emitter, id), {}, output(emitter, id)); };
}

/// With one real attribute under another name.
ExportNode with_real(const std::string& op, const std::string& from, const std::string& to) {
  return [=](Emitter& emitter, NodeId id) {
    emitter.add(op, inputs(emitter, id), {{to, static_cast<float>(attributes_of(emitter, id).real(from))}},
                output(emitter, id));
  };
}

/// A second operand that is a number of the node.
ExportNode with_number(const std::string& op, const std::string& attribute = "value") {
  return [=](Emitter& emitter, NodeId id) {
    const std::string number =
        emitter.number(attributes_of(emitter, id).real(attribute), dtype_of_input(emitter, id, 0));
    emitter.add(op, {input(emitter, id, 0), number}, {}, output(emitter, id));
  };
}

/// weft's comparisons of these types give 1 and 0 in them.
ExportNode comparison(const std::string& op) {
  return [op](Emitter& emitter, NodeId id) {
    const DType result = emitter.graph().type(node_of(emitter, id).outputs[0]).dtype;
    if (result == DType::boolean)
      return static_cast<void>(emitter.add(op, inputs(emitter, id), {}, output(emitter, id)));
    const std::string boolean = emitter.add(op, inputs(emitter, id));
    emitter.add("Cast", {boolean}, {{"to", int64_t{data_type_of(result)}}}, output(emitter, id));
  };
}

// --- convolutions and pooling -------------------------------------------------------------------------------------

std::map<std::string, AttributeContent> window_attributes(const Attributes& attributes) {
  const auto& padding = attributes.integers("padding");
  std::map<std::string, AttributeContent> result{
      {"strides", attributes.integers("stride")},
      {"pads", std::vector<int64_t>{padding[0], padding[1], padding[0], padding[1]}}};
  if (attributes.has("dilation")) result["dilations"] = attributes.integers("dilation");
  if (attributes.has("groups")) result["group"] = attributes.integer("groups");
  return result;
}

void export_conv(Emitter& emitter, NodeId id) {
  auto attributes = window_attributes(attributes_of(emitter, id));
  const Shape& weight = emitter.graph().shape(input_of(emitter, id, 1));
  attributes["kernel_shape"] = std::vector<int64_t>{weight[2], weight[3]};
  emitter.add("Conv", inputs(emitter, id), attributes, output(emitter, id));
}

void export_transposed_conv(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  auto attributes = window_attributes(own);
  const Shape &weight = emitter.graph().shape(input_of(emitter, id, 1)),
              &from = emitter.graph().shape(input_of(emitter, id, 0));
  attributes["kernel_shape"] = std::vector<int64_t>{weight[2], weight[3]};
  std::vector<int64_t> extra;
  for (int axis = 0; axis < 2; ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int64_t without = (from[axis + 2] - 1) * own.integers("stride")[at] - 2 * own.integers("padding")[at] +
                            own.integers("dilation")[at] * (weight[axis + 2] - 1) + 1;
    extra.push_back(own.integers("input_size")[at] - without);
  }
  attributes["output_padding"] = extra;
  emitter.add("ConvTranspose", inputs(emitter, id), attributes, output(emitter, id));
}

void export_pool(Emitter& emitter, NodeId id, const std::string& op) {
  const Attributes& own = attributes_of(emitter, id);
  auto attributes = window_attributes(own);
  attributes["kernel_shape"] = own.integers("kernel");
  if (op == "AveragePool") attributes["count_include_pad"] = int64_t{own.boolean("count_padding") ? 1 : 0};
  emitter.add(op, inputs(emitter, id), attributes, output(emitter, id));
}

// --- normalisation ---------------------------------------------------------------------------------------------------

void export_batch_norm(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  if (node_of(emitter, id).inputs.size() > 5 || own.text("activation") != "none")
    emitter.fail(id, "it is fused with what follows; export the graph before any pass");
  emitter.add("BatchNormalization", inputs(emitter, id), {{"epsilon", static_cast<float>(own.real("epsilon"))}},
              output(emitter, id));
}

void require_unused(Emitter& emitter, NodeId id, size_t from) {
  const auto users = find_users(emitter.graph());
  const auto& outputs = node_of(emitter, id).outputs;
  for (size_t index = from; index < outputs.size(); ++index)
    if (!users[static_cast<size_t>(outputs[index].index)].empty())
      emitter.fail(id, "its output " + std::to_string(index) + " is read");
}

/// By the statistics of the operand itself: what normalises groups of channels is made of it.
void export_own_statistics(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  if (node_of(emitter, id).inputs.size() > 3 || own.text("activation") != "none")
    emitter.fail(id, "it is fused with what follows; export the graph before any pass");
  const int rank = emitter.graph().shape(input_of(emitter, id, 0)).rank();
  std::vector<int64_t> axes, channels(static_cast<size_t>(rank), 1);
  for (int axis = 0; axis < rank; ++axis)
    if (axis != 1) axes.push_back(axis);
  channels[1] = -1;
  const auto mean_of = [&](const std::string& x, const std::string& name) {
    if (emitter.opset() >= 18) return emitter.add("ReduceMean", {x, emitter.integers(axes)}, {}, name);
    return emitter.add("ReduceMean", {x}, {{"axes", axes}}, name);
  };
  const std::string x = input(emitter, id, 0);
  const std::string mean = mean_of(x, "");
  const std::string centred = emitter.add("Sub", {x, mean});
  const std::string variance = mean_of(emitter.add("Mul", {centred, centred}), "");
  const std::string root =
      emitter.add("Sqrt", {emitter.add("Add", {variance, emitter.number(own.real("epsilon"), DType::f32)})});
  const auto as_channels = [&](size_t index) {
    return emitter.add("Reshape", {input(emitter, id, index), emitter.integers(channels)});
  };
  const std::string scaled = emitter.add("Mul", {emitter.add("Div", {centred, root}), as_channels(1)});
  emitter.add("Add", {scaled, as_channels(2)}, {}, output(emitter, id));
  require_unused(emitter, id, 1);
}

void export_layer_norm(Emitter& emitter, NodeId id) {
  require_unused(emitter, id, 1);
  const auto epsilon = static_cast<float>(attributes_of(emitter, id).real("epsilon"));
  if (emitter.opset() >= 17) {
    emitter.add("LayerNormalization", inputs(emitter, id), {{"axis", int64_t{-1}}, {"epsilon", epsilon}},
                output(emitter, id));
    return;
  }
  const std::map<std::string, AttributeContent> last{{"axes", std::vector<int64_t>{-1}}};
  const std::string x = input(emitter, id, 0);
  const std::string centred = emitter.add("Sub", {x, emitter.add("ReduceMean", {x}, last)});
  const std::string variance = emitter.add("ReduceMean", {emitter.add("Mul", {centred, centred})}, last);
  const std::string root = emitter.add("Sqrt", {emitter.add("Add", {variance, emitter.number(epsilon, DType::f32)})});
  const std::string scaled = emitter.add("Mul", {emitter.add("Div", {centred, root}), input(emitter, id, 1)});
  emitter.add("Add", {scaled, input(emitter, id, 2)}, {}, output(emitter, id));
}

// --- products
// ----------------------------------------------------------------------------------------------------------

/// The operand with its last two axes swapped.
std::string swapped(Emitter& emitter, ValueId value) {
  const int rank = emitter.graph().shape(value).rank();
  std::vector<int64_t> permutation;
  for (int axis = 0; axis < rank; ++axis) permutation.push_back(axis);
  std::swap(permutation[static_cast<size_t>(rank) - 1], permutation[static_cast<size_t>(rank) - 2]);
  return emitter.add("Transpose", {emitter.name(value)}, {{"perm", permutation}});
}

void export_matmul(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  const bool a = own.boolean("transpose_a"), b = own.boolean("transpose_b");
  const ValueId left = input_of(emitter, id, 0), right = input_of(emitter, id, 1);
  const bool are_matrices = emitter.graph().shape(left).rank() == 2 && emitter.graph().shape(right).rank() == 2;
  if ((a || b) && are_matrices) {
    emitter.add("Gemm", {emitter.name(left), emitter.name(right)}, {{"transA", int64_t{a}}, {"transB", int64_t{b}}},
                output(emitter, id));
    return;
  }
  const std::string first = a ? swapped(emitter, left) : emitter.name(left);
  const std::string second = b ? swapped(emitter, right) : emitter.name(right);
  emitter.add("MatMul", {first, second}, {}, output(emitter, id));
}

// --- activations
// -------------------------------------------------------------------------------------------------------

void export_clip(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  const DType dtype = dtype_of_input(emitter, id, 0);
  emitter.add("Clip",
              {input(emitter, id, 0), emitter.number(own.real("low"), dtype, "low"),
               emitter.number(own.real("high"), dtype, "high")},
              {}, output(emitter, id));
}

void export_gelu(Emitter& emitter, NodeId id) {
  const bool approximate = attributes_of(emitter, id).boolean("approximate");
  if (emitter.opset() >= 20) {
    emitter.add("Gelu", inputs(emitter, id), {{"approximate", std::string(approximate ? "tanh" : "none")}},
                output(emitter, id));
    return;
  }
  const DType dtype = dtype_of_input(emitter, id, 0);
  const std::string x = input(emitter, id, 0);
  const auto number = [&](double value) { return emitter.number(value, dtype); };
  std::string inner;
  if (approximate) {
    const std::string cube = emitter.add("Mul", {emitter.add("Mul", {x, x}), x});
    const std::string sum = emitter.add("Add", {x, emitter.add("Mul", {cube, number(0.044715)})});
    inner = emitter.add("Tanh", {emitter.add("Mul", {sum, number(std::sqrt(2 / M_PI))})});
  } else {
    inner = emitter.add("Erf", {emitter.add("Mul", {x, number(std::sqrt(0.5))})});
  }
  const std::string half = emitter.add("Mul", {x, number(0.5)});
  emitter.add("Mul", {half, emitter.add("Add", {inner, number(1)})}, {}, output(emitter, id));
}

void export_silu(Emitter& emitter, NodeId id) {
  emitter.add("Mul", {input(emitter, id, 0), emitter.add("Sigmoid", inputs(emitter, id))}, {}, output(emitter, id));
}

ExportNode with_axis(const std::string& op) {
  return [op](Emitter& emitter, NodeId id) {
    emitter.add(op, inputs(emitter, id), {{"axis", attributes_of(emitter, id).integer("axis")}}, output(emitter, id));
  };
}

/// weft's condition may be a real, which is true where it is not 0.
void export_where(Emitter& emitter, NodeId id) {
  std::vector<std::string> operands = inputs(emitter, id);
  if (dtype_of_input(emitter, id, 0) != DType::boolean)
    operands[0] = emitter.add("Cast", {operands[0]}, {{"to", int64_t{data_type_of(DType::boolean)}}});
  emitter.add("Where", operands, {}, output(emitter, id));
}

// --- reductions and indices
// ---------------------------------------------------------------------------------------------

ExportNode reduction(const std::string& op) {
  return [op](Emitter& emitter, NodeId id) {
    const Attributes& own = attributes_of(emitter, id);
    const std::vector<int64_t>& axes = own.integers("axes");
    std::map<std::string, AttributeContent> attributes{{"keepdims", int64_t{own.boolean("keep_dims")}}};
    std::vector<std::string> operands = inputs(emitter, id);
    const bool as_input = emitter.opset() >= (op == "ReduceSum" ? 13 : 18);
    if (!axes.empty() && as_input)
      operands.push_back(emitter.integers(axes, "axes"));
    else if (!axes.empty())
      attributes["axes"] = axes;
    emitter.add(op, operands, attributes, output(emitter, id));
  };
}

void export_resize(Emitter& emitter, NodeId id) {
  const Attributes& own = attributes_of(emitter, id);
  const auto shape = emitter.shape(node_of(emitter, id).outputs[0]);
  const bool is_nearest = own.text("mode") == "nearest";
  emitter.add("Resize", {input(emitter, id, 0), "", "", emitter.sizes(shape)},
              {{"mode", std::string(is_nearest ? "nearest" : "linear")},
               {"coordinate_transformation_mode", std::string(is_nearest ? "asymmetric" : "half_pixel")},
               {"nearest_mode", std::string("floor")}},
              output(emitter, id));
}

void export_modulo(Emitter& emitter, NodeId id) {
  emitter.add("Mod", inputs(emitter, id), {{"fmod", int64_t{attributes_of(emitter, id).boolean("truncated")}}},
              output(emitter, id));
}

void export_square(Emitter& emitter, NodeId id) {
  emitter.add("Mul", {input(emitter, id, 0), input(emitter, id, 0)}, {}, output(emitter, id));
}

ExportNode shift(const std::string& direction) {
  return [direction](Emitter& emitter, NodeId id) {
    emitter.add("BitShift", inputs(emitter, id), {{"direction", direction}}, output(emitter, id));
  };
}

/// All but those of export_indexing.cpp.
std::map<std::string, ExportNode> own_exports() {
  std::map<std::string, ExportNode> table{
      {"absolute", same("Abs")},
      {"add", same("Add")},
      {"add_scalar", with_number("Add")},
      {"avg_pool2d", [](Emitter& emitter, NodeId id) { export_pool(emitter, id, "AveragePool"); }},
      {"batch_norm", export_own_statistics},
      {"batch_norm_inference", export_batch_norm},
      {"bitwise_and", same("BitwiseAnd")},
      {"bitwise_not", same("BitwiseNot")},
      {"bitwise_or", same("BitwiseOr")},
      {"bitwise_xor", same("BitwiseXor")},
      {"broadcast_to", export_broadcast},
      {"cast", export_cast},
      {"causal_mask", export_causal_mask},
      {"clip", export_clip},
      {"concat", with_axis("Concat")},
      {"constant", export_constant},
      {"constant_tensor", export_constant_tensor},
      {"conv2d", export_conv},
      {"conv2d_backward_data", export_transposed_conv},
      {"divide", same("Div")},
      {"elu", with_real("Elu", "alpha", "alpha")},
      {"equal", comparison("Equal")},
      {"erf", same("Erf")},
      {"exp", same("Exp")},
      {"floor", same("Floor")},
      {"gelu", export_gelu},
      {"greater", comparison("Greater")},
      {"greater_equal", comparison("GreaterOrEqual")},
      {"gru", export_gru},
      {"hardswish", same("HardSwish")},
      {"iota", export_iota},
      {"layer_norm", export_layer_norm},
      {"leaky_relu", with_real("LeakyRelu", "slope", "alpha")},
      {"log", same("Log")},
      {"log_softmax", with_axis("LogSoftmax")},
      {"logical_and", same("And")},
      {"logical_not", same("Not")},
      {"logical_or", same("Or")},
      {"logical_xor", same("Xor")},
      {"lstm", export_lstm},
      {"matmul", export_matmul},
      {"max_pool2d", [](Emitter& emitter, NodeId id) { export_pool(emitter, id, "MaxPool"); }},
      {"maximum", same("Max")},
      {"minimum", same("Min")},
      {"modulo", export_modulo},
      {"multiply", same("Mul")},
      {"multiply_scalar", with_number("Mul")},
      {"negate", same("Neg")},
      {"pad", export_pad},
      {"pow", same("Pow")},
      {"pow_scalar", with_number("Pow")},
      {"reciprocal", same("Reciprocal")},
      {"reduce_max", reduction("ReduceMax")},
      {"reduce_mean", reduction("ReduceMean")},
      {"reduce_min", reduction("ReduceMin")},
      {"reduce_prod", reduction("ReduceProd")},
      {"reduce_sum", reduction("ReduceSum")},
      {"relu", same("Relu")},
      {"reshape", export_reshape},
      {"resize", export_resize},
      {"shift_left", shift("LEFT")},
      {"shift_right", shift("RIGHT")},
      {"sigmoid", same("Sigmoid")},
      {"sign", same("Sign")},
      {"silu", export_silu},
      {"slice", export_slice},
      {"softmax", with_axis("Softmax")},
      {"softplus", same("Softplus")},
      {"sqrt", same("Sqrt")},
      {"square", export_square},
      {"strided_slice", export_slice},
      {"subtract", same("Sub")},
      {"tanh", same("Tanh")},
      {"transpose", export_transpose},
      {"where", export_where},
  };
  for (const auto& [op, name] : {std::pair("acos", "Acos"),
                                 {"acosh", "Acosh"},
                                 {"asin", "Asin"},
                                 {"asinh", "Asinh"},
                                 {"atan", "Atan"},
                                 {"atanh", "Atanh"},
                                 {"ceil", "Ceil"},
                                 {"cos", "Cos"},
                                 {"cosh", "Cosh"},
                                 {"round", "Round"},
                                 {"sin", "Sin"},
                                 {"sinh", "Sinh"},
                                 {"tan", "Tan"}})
    table.emplace(op, same(name));
  return table;
}

}  // namespace

const std::map<std::string, ExportNode>& export_operators() {
  static const std::map<std::string, ExportNode> table = [] {
    std::map<std::string, ExportNode> all = own_exports();
    all.merge(indexing_exports());
    return all;
  }();
  return table;
}

}  // namespace weft::onnx
