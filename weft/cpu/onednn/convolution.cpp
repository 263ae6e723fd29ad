#include "weft/cpu/onednn/convolution.h"

#include "weft/cpu/onednn/alternatives.h"
#include "weft/cpu/onednn/families.h"
#include "weft/graph/granted_workspace.h"

namespace weft::onednn {

namespace {

std::array<int64_t, 2> pair_of(const Attributes& attributes, const std::string& name) {
  const auto& values = attributes.integers(name);
  return {values[0], values[1]};
}

/// Splits axis 0 of a 4-D weight layout into (group, output channel).
std::optional<Layout> with_group_axis(const Layout& layout, int64_t groups, int64_t outputs_per_group) {
  // Blocks of axis 0 must not cross groups, or must be blocks of whole groups.
  const int64_t block = block_of(layout, 0);
  const bool depthwise = outputs_per_group == 1;
  if (!depthwise && outputs_per_group % block != 0) return std::nullopt;
  if (depthwise && groups % block != 0) return std::nullopt;
  Layout split;
  for (const auto& [axis, size] : layout.blocks)
    split.blocks.push_back({axis == 0 ? (depthwise ? 0 : 1) : axis + 1, size});
  for (int at = 0; at < 4; ++at) {
    const int axis = layout.order.empty() ? at : layout.order[static_cast<size_t>(at)];
    if (axis == 0) split.order.push_back(0);
    split.order.push_back(axis + 1);
  }
  return canonical(split);
}

/// Reverses with_group_axis, but for layouts that keep the groups apart: the caller compares.
Layout without_group_axis(const Layout& layout, int64_t outputs_per_group) {
  const int dropped = outputs_per_group == 1 ? 1 : 0;
  Layout merged;
  for (const auto& [axis, size] : layout.blocks) merged.blocks.push_back({std::max(axis - 1, 0), size});
  for (int at = 0; at < 5; ++at) {
    const int axis = layout.order.empty() ? at : layout.order[static_cast<size_t>(at)];
    if (axis != dropped) merged.order.push_back(std::max(axis - 1, 0));
  }
  return canonical(merged);
}

std::optional<MemoryDesc> describe_bias(const Convolution& c) {
  if (!c.bias) return std::nullopt;
  return MemoryDesc::strided(dnnl_f32, {c.weights.shape[0]}, {1});
}

PrimitiveDesc ask(const Engine& engine, const Convolution& c, const ConvolutionDescs& descs) {
  return ask_convolution(engine, c, descs.image, descs.weights, descs.output);
}

/// The weights, or their gradient, as the implementation wants them.
MemoryDesc wanted_weights(const Convolution& c, const PrimitiveDesc& main) {
  return main.memory_desc(c.pass == Pass::backward_weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
}

std::string kernel_name(const Convolution& c, const PrimitiveDesc& main, const ConvolutionDescs& descs) {
  const bool reordered = !wanted_weights(c, main).same_memory(descs.weights);
  return "onednn:" + main.implementation() + (reordered ? "+reorder" : "");
}

/// What oneDNN does to the sums of a fused_conv2d.
std::vector<PostOp> post_ops_of(const Convolution& c, const MemoryDesc& output) {
  std::vector<PostOp> post_ops;
  if (c.residual) post_ops.push_back({dnnl_binary_add, output});
  if (c.activation == "relu") post_ops.push_back({dnnl_eltwise_relu});
  if (c.activation == "relu6") post_ops.push_back({dnnl_eltwise_clip, {}, 0, 6});
  return post_ops;
}

}  // namespace

std::unique_ptr<CallKernel> build_convolution(const Convolution& c, const PrimitiveDesc& main,
                                              const ConvolutionDescs& descs, const Request& request) {
  auto kernel = request.new_kernel();
  const bool backward_data = c.pass == Pass::backward_data, backward_weights = c.pass == Pass::backward_weights;
  const MemoryDesc wanted = wanted_weights(c, main);
  const bool reordered = !wanted.same_memory(descs.weights);
  const Operand weights = reordered ? kernel->reserve(wanted) : c.weights_operand;
  std::vector<Argument> arguments = {
      {backward_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, descs.image, c.image_operand},
      {backward_weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, wanted, weights},
      {c.pass == Pass::forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, descs.output, c.output_operand}};
  if (const auto bias = describe_bias(c))
    arguments.push_back({backward_weights ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, *bias, *c.bias});
  if (c.residual)  // the first of the post-ops
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, descs.output, *c.residual});
  const auto add_reorder = [&](const MemoryDesc& from, Operand source, const MemoryDesc& to, Operand target) {
    const PrimitiveDesc reorder = ask_reorder(*request.engine, from, to);
    check(static_cast<bool>(reorder), "oneDNN reorders every weight that it wants");
    kernel->add_call(reorder, {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}});
  };
  if (reordered && !backward_weights) add_reorder(descs.weights, c.weights_operand, wanted, weights);
  kernel->add_call(main, arguments);
  if (reordered && backward_weights) add_reorder(wanted, weights, descs.weights, c.weights_operand);
  kernel->set_name(kernel_name(c, main, descs));
  return kernel;
}

PrimitiveDesc ask_convolution(const Engine& engine, const Convolution& c, const MemoryDesc& image,
                              const MemoryDesc& weights, const MemoryDesc& output, dnnl_alg_kind_t algorithm) {
  return ask_convolution(engine, {c.pass, image, weights, output, c.stride, c.padding, c.dilation, describe_bias(c),
                                  algorithm, post_ops_of(c, output)});
}

Convolution Convolution::unfused() const {
  Convolution plain = *this;
  plain.is_fused = false;
  plain.activation = "none";
  plain.residual.reset();
  return plain;
}

std::optional<Convolution> read_convolution(const NodeSignature& node) {
  Convolution c;
  const auto& in = node.inputs;
  c.is_fused = node.op->name == "fused_conv2d";
  if (node.op->name == "conv2d" || c.is_fused) {
    c.image = in[0], c.weights = in[1], c.output = node.outputs[0];
    c.image_operand = input(0), c.weights_operand = input(1), c.output_operand = output(0);
    if (in.size() > 2) c.bias = input(2);
    if (in.size() > 3) c.residual = input(3);
    if (c.is_fused) c.activation = node.attributes.text("activation");
  } else if (node.op->name == "conv2d_backward_data") {
    c.pass = Pass::backward_data;
    c.output = in[0], c.weights = in[1], c.image = node.outputs[0];
    c.output_operand = input(0), c.weights_operand = input(1), c.image_operand = output(0);
  } else if (node.op->name == "conv2d_backward_weights") {
    c.pass = Pass::backward_weights;
    c.image = in[0], c.output = in[1], c.weights = node.outputs[0];
    c.image_operand = input(0), c.output_operand = input(1), c.weights_operand = output(0);
    if (node.outputs.size() > 1) c.bias = output(1);
  } else {
    return std::nullopt;
  }
  for (const TensorType* type : {&c.image, &c.weights, &c.output})
    if (type->elements() == 0) return std::nullopt;
  c.stride = pair_of(node.attributes, "stride");
  c.padding = pair_of(node.attributes, "padding");
  c.dilation = pair_of(node.attributes, "dilation");
  c.groups = node.attributes.integer("groups");
  c.winograd = granted_workspace(node.attributes);
  return c;
}

std::optional<MemoryDesc> describe_weights(const Convolution& c, const std::optional<Layout>& layout) {
  const auto type = data_type_of(c.weights.dtype);
  if (!type) return std::nullopt;
  std::vector<int64_t> dims = c.weights.shape.dims();
  const int64_t outputs_per_group = dims[0] / c.groups;
  if (c.groups > 1) {
    dims[0] = outputs_per_group;
    dims.insert(dims.begin(), c.groups);
  }
  if (!layout) return MemoryDesc::any(*type, dims);
  if (c.groups == 1) return MemoryDesc::with_layout(*type, dims, *layout);
  const auto split = with_group_axis(*layout, c.groups, outputs_per_group);
  return split ? MemoryDesc::with_layout(*type, dims, *split) : std::nullopt;
}

std::optional<Layout> weights_layout(const Convolution& c, const MemoryDesc& desc) {
  auto layout = desc.layout();
  if (!layout || c.groups == 1) return layout;
  const Layout merged = without_group_axis(*layout, c.weights.shape[0] / c.groups);
  const auto same = describe_weights(c, merged);
  return same && same->same_memory(desc) ? std::optional(merged) : std::nullopt;
}

std::optional<ConvolutionDescs> describe_operands(const Convolution& c) {
  const auto image = describe(c.image), output = describe(c.output);
  const auto weights = describe_weights(c, c.weights.layout);
  return image && weights && output ? std::optional(ConvolutionDescs{*image, *weights, *output}) : std::nullopt;
}

namespace {

/// With the signature's layouts; weights that are laid out for another kernel are reordered inside.
std::unique_ptr<Kernel> make_winograd(const Request& request, std::string& why_not) {
  const auto c = read_convolution(request.node);
  check(c.has_value(), "make_winograd wants a convolution");
  if (c->winograd == 0) return declined(why_not, "Winograd's algorithm is not asked for");
  const auto image = describe(c->image), output = describe(c->output);
  const auto weights = describe_weights(*c, c->weights.layout);
  const PrimitiveDesc desc =
      image && output && weights ? ask_winograd(*request.engine, *c, *image, *output) : PrimitiveDesc();
  if (!desc) return declined(why_not, "Winograd's algorithm does not serve it, or is no faster");
  return build_convolution(*c, desc, {*image, *weights, *output}, request);
}

/// Serves the signature's layouts exactly; plain weights are reordered inside where that makes the better kernel.
std::unique_ptr<Kernel> make_convolution(const Request& request, std::string& why_not) {
  const Engine& engine = *request.engine;
  const auto c = read_convolution(request.node);
  check(c.has_value(), "make_convolution wants a convolution");
  const std::optional<ConvolutionDescs> exact = describe_operands(*c);
  if (!exact) {
    why_not =
        fmt::format("no descriptor for {}, {} or {}", to_string(c->image), to_string(c->weights), to_string(c->output));
    return nullptr;
  }
  PrimitiveDesc best = ask(engine, *c, *exact);
  if ((!best || best.quality() != Quality::direct) && c->weights.layout.is_plain()) {
    PrimitiveDesc reordering = ask(engine, *c, {exact->image, *describe_weights(*c, std::nullopt), exact->output});
    if (reordering && (!best || reordering.quality() > best.quality())) best = std::move(reordering);
  }
  const bool all_plain = c->image.layout.is_plain() && c->weights.layout.is_plain() && c->output.layout.is_plain();
  if (!best || (best.quality() == Quality::reference && !all_plain)) {
    why_not = fmt::format("no fast implementation for image {}, weights {}, output {}", to_string(c->image),
                          to_string(c->weights), to_string(c->output));
    return nullptr;
  }
  return build_convolution(*c, best, *exact, request);
}

}  // namespace

/// All of oneDNN's implementations of the node, those too that want the weights in another layout.
std::vector<std::unique_ptr<Kernel>> other_convolutions(const Request& request, const Wants& wants) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  const auto c = read_convolution(request.node);
  const std::optional<ConvolutionDescs> exact = c ? describe_operands(*c) : std::nullopt;
  if (!exact) return kernels;
  for (const MemoryDesc& weights : {exact->weights, *describe_weights(*c, std::nullopt)})
    for (PrimitiveDesc desc = ask(*request.engine, *c, {exact->image, weights, exact->output}); desc; desc.next()) {
      if (desc.quality() == Quality::reference) continue;
      const std::string name = kernel_name(*c, desc, *exact);
      if (wants(name) && is_new(kernels, name)) kernels.push_back(build_convolution(*c, desc, *exact, request));
    }
  return kernels;
}

void add_convolutions(const Register& add) {
  for (const char* op : {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"}) {
    add(op, make_winograd);
    add(op, make_convolution);
  }
  add("fused_conv2d", make_fused_convolution);
}

}  // namespace weft::onednn
