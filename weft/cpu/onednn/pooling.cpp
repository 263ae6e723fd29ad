// Average pooling and its gradient.
#include "weft/cpu/onednn/ask_layers.h"
#include "weft/cpu/onednn/families.h"

namespace weft::onednn {

namespace {

std::optional<PoolingQuery> query_of(const NodeSignature& node, dnnl_alg_kind_t algorithm, const TensorType& image,
                                     const TensorType& pooled) {
  const auto input = describe(image), output = describe(pooled);
  if (!input || !output) return std::nullopt;
  const auto pair = [&](const char* name) -> std::array<int64_t, 2> {
    const auto& values = node.attributes.integers(name);
    return {values[0], values[1]};
  };
  return PoolingQuery{algorithm, *input, *output, pair("kernel"), pair("stride"), pair("padding")};
}

dnnl_alg_kind_t average_of(const NodeSignature& node) {
  return node.attributes.boolean("count_padding") ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
}

/// Averages come before weft's own kernels, so only by code made for the shape.
PrimitiveDesc first_direct(PrimitiveDesc desc) {
  while (desc && desc.quality() != Quality::direct) desc.next();
  return desc;
}

std::unique_ptr<Kernel> make_average(const Request& request, std::string& why_not) {
  const NodeSignature& node = request.node;
  const auto query = query_of(node, average_of(node), node.inputs[0], node.outputs[0]);
  if (!query) return declined(why_not, no_implementation(node));
  return single_call(request, first_direct(ask_pooling(*request.engine, *query)),
                     {{DNNL_ARG_SRC, query->input, input(0)}, {DNNL_ARG_DST, query->output, output(0)}}, why_not);
}

std::unique_ptr<Kernel> make_average_backward(const Request& request, std::string& why_not) {
  const NodeSignature& node = request.node;
  const auto query = query_of(node, average_of(node), node.outputs[0], node.inputs[0]);
  if (!query) return declined(why_not, no_implementation(node));
  const auto forward = std::make_shared<const PrimitiveDesc>(ask_pooling(*request.engine, *query));
  return single_call(request, first_direct(ask_pooling_backward(*request.engine, *query, forward)),
                     {{DNNL_ARG_DIFF_DST, query->output, input(0)}, {DNNL_ARG_DIFF_SRC, query->input, output(0)}},
                     why_not);
}

}  // namespace

void add_pooling(const Register& add) {
  add("avg_pool2d", make_average);
  add("avg_pool2d_backward", make_average_backward);
}

}  // namespace weft::onednn
