// Batch and layer normalisation, their gradients, and batch normalisation by given statistics.
#include "weft/cpu/onednn/ask_layers.h"
#include "weft/cpu/onednn/elementwise.h"
#include "weft/cpu/onednn/families.h"

namespace weft::onednn {

namespace {

bool has_relu(const NodeSignature& node) { return node.attributes.text("activation") == "relu"; }
bool has_other_activation(const NodeSignature& node) {
  return !has_relu(node) && node.attributes.text("activation") != "none";
}

/// batch_norm, and batch_norm_inference where `pass` is that for given statistics.
std::unique_ptr<Kernel> make_batch_norm(const Request& request, dnnl_prop_kind_t pass, std::string& why_not) {
  const NodeSignature& node = request.node;
  const bool training = pass == dnnl_forward_training;
  if (has_other_activation(node)) return declined(why_not, "an activation that is no relu");
  if (node.inputs.size() > (training ? 3u : 5u)) return declined(why_not, "oneDNN's batch norm adds no residual");
  const auto data = describe(node.inputs[0]), channels = describe(node.inputs[1]);
  if (!data || node.outputs[0] != node.inputs[0]) return declined(why_not, no_implementation(node));
  const PrimitiveDesc norm =
      skip_reference(ask_batch_norm(*request.engine, pass, *data, node.attributes.real("epsilon")));
  // A relu fused by oneDNN would hide a NaN.
  const ReluCall relu = has_relu(node) ? ask_relu(*request.engine, node.outputs[0], output(0), output(0)) : ReluCall();
  if (!norm || (has_relu(node) && !relu.desc)) return declined(why_not, no_implementation(node));
  auto kernel = request.new_kernel();
  kernel->add_call(norm, {{DNNL_ARG_SRC, *data, input(0)},
                          {DNNL_ARG_SCALE, *channels, input(1)},
                          {DNNL_ARG_SHIFT, *channels, input(2)},
                          {DNNL_ARG_MEAN, *channels, training ? output(1) : input(3)},
                          {DNNL_ARG_VARIANCE, *channels, training ? output(2) : input(4)},
                          {DNNL_ARG_DST, *data, output(0)}});
  if (relu.desc) kernel->add_call(relu.desc, relu.arguments);
  kernel->set_name("onednn:" + norm.implementation() + (relu.desc ? "+relu" : ""));
  return kernel;
}

std::unique_ptr<Kernel> make_batch_norm_backward(const Request& request, std::string& why_not) {
  const NodeSignature& node = request.node;
  const bool relu = has_relu(node), has_output = node.inputs.size() > 6, residual = node.outputs.size() > 3;
  if (has_other_activation(node)) return declined(why_not, "an activation that is no relu");
  if (relu && !has_output) return declined(why_not, "the mask of the relu has to be computed again from the input");
  const auto data = describe(node.inputs[1]), channels = describe(node.inputs[2]);
  for (const size_t operand : {size_t{0}, has_output ? size_t{6} : size_t{0}})
    if (!data || node.inputs[operand] != node.inputs[1]) return declined(why_not, no_implementation(node));
  for (const size_t result : {size_t{0}, residual ? size_t{3} : size_t{0}})
    if (node.outputs[result] != node.inputs[1]) return declined(why_not, no_implementation(node));
  const PrimitiveDesc norm =
      skip_reference(ask_batch_norm_backward(*request.engine, *data, node.attributes.real("epsilon")));
  const PrimitiveDesc mask = relu ? ask_relu_backward(*request.engine, *data) : PrimitiveDesc();
  if (!norm || (relu && !mask)) return declined(why_not, no_implementation(node));
  auto kernel = request.new_kernel();
  // The masked gradient is what the residual gets. The first result may lie over the gradient, so it comes last.
  Operand gradient = input(0);
  if (residual || relu) gradient = residual ? output(3) : kernel->reserve(*data);
  if (relu) kernel->add_call(mask, relu_backward_arguments(*data, input(0), input(6), gradient));
  if (residual && !relu)
    kernel->add_call(ask_reorder(*request.engine, *data, *data),
                     {{DNNL_ARG_FROM, *data, input(0)}, {DNNL_ARG_TO, *data, gradient}});
  // oneDNN 2.6 does not run without a shift, though it reads none.
  kernel->add_call(norm, {{DNNL_ARG_SRC, *data, input(1)},
                          {DNNL_ARG_DIFF_DST, *data, gradient},
                          {DNNL_ARG_SCALE, *channels, input(2)},
                          {DNNL_ARG_SHIFT, *channels, input(3)},
                          {DNNL_ARG_MEAN, *channels, input(4)},
                          {DNNL_ARG_VARIANCE, *channels, input(5)},
                          {DNNL_ARG_DIFF_SRC, *data, output(0)},
                          {DNNL_ARG_DIFF_SCALE, *channels, output(1)},
                          {DNNL_ARG_DIFF_SHIFT, *channels, output(2)}});
  kernel->set_name("onednn:" + norm.implementation() + (relu ? "+relu" : ""));
  return kernel;
}

/// A tensor as rows of its last axis.
struct Rows {
  MemoryDesc data, statistics, row;
};

std::optional<Rows> rows_of(const NodeSignature& node, size_t input, std::string& why_not) {
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const TensorType& type : *types)
      if (type.dtype != DType::f32 || !type.layout.is_plain()) {
        why_not = "wants plain f32 operands, got " + to_string(type);
        return std::nullopt;
      }
  const Shape& shape = node.inputs[input].shape;
  const int64_t width = shape[shape.rank() - 1], rows = shape.elements() / width;
  const auto plain = [](Shape dims) { return *describe({DType::f32, std::move(dims), {}}); };
  return Rows{plain({rows, width}), plain({rows}), plain({width})};
}

std::unique_ptr<Kernel> make_layer_norm(const Request& request, std::string& why_not) {
  const auto rows = rows_of(request.node, 0, why_not);
  if (!rows) return nullptr;
  const Engine& engine = *request.engine;
  const auto epsilon = static_cast<float>(request.node.attributes.real("epsilon"));
  const auto& [data, statistics, row] = *rows;
  const PrimitiveDesc norm = skip_reference(ask_layer_norm(engine, data, statistics, epsilon));
  // The variance becomes the inverse deviation, (variance + epsilon)^-1/2, in place: one number per row.
  const PrimitiveDesc shift = skip_reference(ask_eltwise(engine, {dnnl_eltwise_linear, 1, epsilon}, statistics));
  const PrimitiveDesc power = skip_reference(ask_eltwise(engine, {dnnl_eltwise_pow, 1, -0.5f}, statistics));
  if (!norm || !shift || !power) return declined(why_not, no_implementation(request.node));
  auto kernel = request.new_kernel();
  kernel->add_call(norm, {{DNNL_ARG_SRC, data, input(0)},
                          {DNNL_ARG_SCALE, row, input(1)},
                          {DNNL_ARG_SHIFT, row, input(2)},
                          {DNNL_ARG_MEAN, statistics, output(1)},
                          {DNNL_ARG_VARIANCE, statistics, output(2)},
                          {DNNL_ARG_DST, data, output(0)}});
  for (const PrimitiveDesc* function : {&shift, &power})
    kernel->add_call(*function, {{DNNL_ARG_SRC, statistics, output(2)}, {DNNL_ARG_DST, statistics, output(2)}});
  kernel->set_name("onednn:" + norm.implementation());
  return kernel;
}

std::unique_ptr<Kernel> make_layer_norm_backward(const Request& request, std::string& why_not) {
  const auto rows = rows_of(request.node, 1, why_not);
  if (!rows) return nullptr;
  const Engine& engine = *request.engine;
  const auto& [data, statistics, row] = *rows;
  // The inverse deviation holds the epsilon already.
  const PrimitiveDesc norm = skip_reference(ask_layer_norm_backward(engine, data, statistics, 0));
  const PrimitiveDesc power = skip_reference(ask_eltwise(engine, {dnnl_eltwise_pow, 1, -2}, statistics));
  if (!norm || !power) return declined(why_not, no_implementation(request.node));
  auto kernel = request.new_kernel();
  const Operand variance = kernel->reserve(statistics);
  kernel->add_call(power, {{DNNL_ARG_SRC, statistics, input(4)}, {DNNL_ARG_DST, statistics, variance}});
  kernel->add_call(norm, {{DNNL_ARG_SRC, data, input(1)},
                          {DNNL_ARG_DIFF_DST, data, input(0)},
                          {DNNL_ARG_SCALE, row, input(2)},
                          {DNNL_ARG_SHIFT, row, input(2)},  // wanted, not read; the op has none
                          {DNNL_ARG_MEAN, statistics, input(3)},
                          {DNNL_ARG_VARIANCE, statistics, variance},
                          {DNNL_ARG_DIFF_SRC, data, output(0)},
                          {DNNL_ARG_DIFF_SCALE, row, output(1)},
                          {DNNL_ARG_DIFF_SHIFT, row, output(2)}});
  kernel->set_name("onednn:" + norm.implementation());
  return kernel;
}

}  // namespace

void add_normalization(const Register& add) {
  add("batch_norm", [](const Request& request, std::string& why_not) {
    return make_batch_norm(request, dnnl_forward_training, why_not);
  });
  add("batch_norm_inference", [](const Request& request, std::string& why_not) {
    return make_batch_norm(request, dnnl_forward_inference, why_not);
  });
  add("layer_norm", make_layer_norm);
}

void add_normalization_gradients(const Register& add) {
  add("batch_norm_backward", make_batch_norm_backward);
  add("layer_norm_backward", make_layer_norm_backward);
}

}  // namespace weft::onednn
