// Functions of one tensor, arithmetic and comparison of two, and the derivatives of relu, gelu and silu.
#include "weft/cpu/onednn/elementwise.h"

#include <map>
#include <optional>

#include "weft/cpu/onednn/families.h"

namespace weft::onednn {

namespace {

/// The function of an op, or that whose derivative it is. oneDNN's pow is alpha x^beta, its linear alpha x + beta, its
/// hardswish x clip(alpha x + beta, 0, 1).
PointFunction function_of(const NodeSignature& node) {
  const std::string& op = node.op->name;
  const auto real = [&](const char* attribute) { return static_cast<float>(node.attributes.real(attribute)); };
  if (op == "add_scalar") return {dnnl_eltwise_linear, 1, real("value")};
  if (op == "multiply_scalar") return {dnnl_eltwise_linear, real("value"), 0};
  if (op == "pow_scalar") return {dnnl_eltwise_pow, 1, real("value")};
  if (op == "leaky_relu") return {dnnl_eltwise_relu, real("slope"), 0};
  if (op == "elu") return {dnnl_eltwise_elu, real("alpha"), 0};
  if (op == "gelu" || op == "gelu_backward")
    return {node.attributes.boolean("approximate") ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf};
  static const std::map<std::string, PointFunction> others{{"tanh", {dnnl_eltwise_tanh}},
                                                           {"sigmoid", {dnnl_eltwise_logistic}},
                                                           {"softplus", {dnnl_eltwise_soft_relu, 1}},
                                                           {"silu", {dnnl_eltwise_swish, 1}},
                                                           {"silu_backward", {dnnl_eltwise_swish, 1}},
                                                           {"hardswish", {dnnl_eltwise_hardswish, 1.0f / 6, 0.5f}},
                                                           {"log", {dnnl_eltwise_log}},
                                                           {"sqrt", {dnnl_eltwise_sqrt}},
                                                           {"absolute", {dnnl_eltwise_abs}},
                                                           {"square", {dnnl_eltwise_square}},
                                                           {"negate", {dnnl_eltwise_linear, -1}},
                                                           {"reciprocal", {dnnl_eltwise_pow, 1, -1}}};
  return others.at(op);
}

/// The descriptor that all operands share; nullopt and a reason where they are not of one type.
std::optional<MemoryDesc> common_desc(const NodeSignature& node, std::string& why_not) {
  const TensorType& type = node.outputs[0];
  for (const TensorType& input : node.inputs) {
    if (input == type) continue;
    why_not = fmt::format("{} and {} differ", to_string(input), to_string(type));
    return std::nullopt;
  }
  auto desc = describe(type);
  if (!desc) why_not = "no descriptor for " + to_string(type);
  return desc;
}

std::unique_ptr<Kernel> make_function(const Request& request, std::string& why_not) {
  const auto desc = common_desc(request.node, why_not);
  if (!desc) return nullptr;
  const PointFunction function = function_of(request.node);
  if (function.algorithm == dnnl_eltwise_relu && function.alpha == 0)
    return declined(why_not, "its relu without a slope hides a NaN");
  return single_call(request, skip_reference(ask_eltwise(*request.engine, function, *desc)),
                     {{DNNL_ARG_SRC, *desc, input(0)}, {DNNL_ARG_DST, *desc, output(0)}}, why_not);
}

/// The whole storage as one row. oneDNN 2.6 gets a second operand wrong where blocks are padded: what it does to the
/// padding must be harmless instead.
MemoryDesc describe_storage(const TensorType& type) {
  const auto data_type = data_type_of(type.dtype);
  check(data_type.has_value(), "oneDNN knows the types that networks compute in");
  return MemoryDesc::strided(*data_type, {type.bytes() / unpacked_size(type.dtype)}, {1});
}

std::vector<Argument> keeping_nan_arguments(const MemoryDesc& data, Operand from, Operand to) {
  return {{DNNL_ARG_SRC_0, data, from},
          {DNNL_ARG_SRC_1, data, from},
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, data, from},
          {DNNL_ARG_DST, data, to}};
}

std::unique_ptr<Kernel> make_relu(const Request& request, std::string& why_not) {
  if (!common_desc(request.node, why_not)) return nullptr;
  const ReluCall call = ask_relu(*request.engine, request.node.outputs[0], input(0), output(0));
  return single_call(request, call.desc, call.arguments, why_not);
}

std::unique_ptr<Kernel> make_exp(const Request& request, std::string& why_not) {
  if (!common_desc(request.node, why_not)) return nullptr;
  const TensorType& type = request.node.outputs[0];
  if (type.bytes() != unpacked_size(type.dtype) * type.shape.elements())
    return declined(why_not, "padding would become 1 in " + to_string(type));
  const MemoryDesc storage = describe_storage(type);
  return single_call(request, skip_reference(ask_keeping_nan(*request.engine, dnnl_eltwise_exp, storage)),
                     keeping_nan_arguments(storage, input(0), output(0)), why_not);
}

std::unique_ptr<Kernel> make_relu_backward(const Request& request, std::string& why_not) {
  const auto desc = common_desc(request.node, why_not);
  if (!desc) return nullptr;
  return single_call(request, ask_relu_backward(*request.engine, *desc),
                     relu_backward_arguments(*desc, input(0), input(1), output(0)), why_not);
}

/// Of a function told from its input.
std::unique_ptr<Kernel> make_derivative(const Request& request, std::string& why_not) {
  const auto desc = common_desc(request.node, why_not);
  if (!desc) return nullptr;
  return single_call(
      request, skip_reference(ask_eltwise_backward(*request.engine, function_of(request.node), *desc)),
      {{DNNL_ARG_DIFF_DST, *desc, input(0)}, {DNNL_ARG_SRC, *desc, input(1)}, {DNNL_ARG_DIFF_SRC, *desc, output(0)}},
      why_not);
}

/// The operand with leading dimensions of 1 up to the output's rank. Smaller operands are plain, as everywhere.
std::optional<MemoryDesc> describe_stretched(const TensorType& type, const TensorType& output) {
  if (type.shape == output.shape) return type.layout == output.layout ? describe(output) : std::optional<MemoryDesc>();
  const auto data_type = data_type_of(type.dtype);
  if (!data_type || !type.layout.is_plain()) return std::nullopt;
  std::vector<int64_t> dims(static_cast<size_t>(output.shape.rank() - type.shape.rank()), 1);
  dims.insert(dims.end(), type.shape.begin(), type.shape.end());
  return MemoryDesc::with_layout(*data_type, dims, {});
}

struct Arithmetic {
  dnnl_alg_kind_t algorithm;
  bool commutes = false;
  bool swapped = false;  // computed as algorithm(b, a)
};

std::unique_ptr<Kernel> make_arithmetic(const Request& request, Arithmetic arithmetic, std::string& why_not) {
  const NodeSignature& node = request.node;
  // Only the second source may stretch.
  if (arithmetic.commutes) arithmetic.swapped = node.inputs[0].shape != node.outputs[0].shape;
  const int64_t first = arithmetic.swapped ? 1 : 0;
  const auto a = describe_stretched(node.inputs[static_cast<size_t>(first)], node.outputs[0]);
  const auto b = describe_stretched(node.inputs[static_cast<size_t>(1 - first)], node.outputs[0]);
  const auto y = describe(node.outputs[0]);
  if (!a || !b || !y) return declined(why_not, no_implementation(node));
  return single_call(
      request, skip_reference(ask_binary(*request.engine, arithmetic.algorithm, *a, *b, *y)),
      {{DNNL_ARG_SRC_0, *a, input(first)}, {DNNL_ARG_SRC_1, *b, input(1 - first)}, {DNNL_ARG_DST, *y, output(0)}},
      why_not);
}

}  // namespace

ReluCall ask_relu(const Engine& engine, const TensorType& type, Operand from, Operand to) {
  const MemoryDesc storage = describe_storage(type);
  return {skip_reference(ask_keeping_nan(engine, dnnl_eltwise_relu, storage)),
          keeping_nan_arguments(storage, from, to)};
}

PrimitiveDesc ask_relu_backward(const Engine& engine, const MemoryDesc& data) {
  return skip_reference(ask_eltwise_backward(engine, {dnnl_eltwise_relu_use_dst_for_bwd}, data));
}

std::vector<Argument> relu_backward_arguments(const MemoryDesc& data, Operand gradient, Operand relu_output,
                                              Operand to) {
  return {{DNNL_ARG_DIFF_DST, data, gradient}, {DNNL_ARG_DST, data, relu_output}, {DNNL_ARG_DIFF_SRC, data, to}};
}

void add_elementwise(const Register& add) {
  for (const char* op :
       {"leaky_relu", "elu", "gelu", "silu", "hardswish", "softplus", "tanh", "sigmoid", "log", "pow_scalar", "sqrt",
        "negate", "absolute", "square", "reciprocal", "add_scalar", "multiply_scalar"})
    add(op, make_function);
  add("relu", make_relu);
  add("exp", make_exp);
  add("relu_backward", make_relu_backward);
  for (const char* op : {"gelu_backward", "silu_backward"}) add(op, make_derivative);
  const auto add_arithmetic = [&](const char* op, Arithmetic arithmetic) {
    add(op, [arithmetic](const Request& request, std::string& why_not) {
      return make_arithmetic(request, arithmetic, why_not);
    });
  };
  add_arithmetic("add", {dnnl_binary_add, true});
  add_arithmetic("subtract", {dnnl_binary_sub});
  add_arithmetic("multiply", {dnnl_binary_mul, true});
  add_arithmetic("divide", {dnnl_binary_div});
  add_arithmetic("equal", {dnnl_binary_eq, true});
  add_arithmetic("greater", {dnnl_binary_lt, false, true});  // its gt is true of a NaN, its lt is not
}

}  // namespace weft::onednn
