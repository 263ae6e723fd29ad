// Sums and means over axes of a plain tensor. The output keeps the reduced axes as 1, which is the same memory.
#include <algorithm>

#include "weft/cpu/onednn/ask_pointwise.h"
#include "weft/cpu/onednn/families.h"

namespace weft::onednn {

namespace {

/// oneDNN adds in single precision, one sum per vector lane. Longer sums would lose digits that weft's own keep.
constexpr int64_t kLongestSum = 1 << 16;

std::unique_ptr<Kernel> make_reduction(const Request& request, dnnl_alg_kind_t algorithm, std::string& why_not) {
  const NodeSignature& node = request.node;
  const TensorType& type = node.inputs[0];
  const auto from = describe(type);
  if (!from || !type.layout.is_plain()) return declined(why_not, "wants a plain operand, got " + to_string(type));
  std::vector<int64_t> kept = type.shape.dims();
  const auto& axes = node.attributes.integers("axes");
  for (const int64_t axis : axes) kept[static_cast<size_t>(axis < 0 ? axis + type.shape.rank() : axis)] = 1;
  if (axes.empty()) std::fill(kept.begin(), kept.end(), 1);
  if (kept == type.shape.dims()) return declined(why_not, "nothing is reduced");
  const int64_t length = type.shape.elements() / Shape(kept).elements();
  if (length > kLongestSum) return declined(why_not, fmt::format("too many numbers for its precision: {}", length));
  const auto to = describe({node.outputs[0].dtype, Shape(kept), {}});
  if (!to) return declined(why_not, no_implementation(node));
  return single_call(request, skip_reference(ask_reduction(*request.engine, algorithm, *from, *to)),
                     {{DNNL_ARG_SRC, *from, input(0)}, {DNNL_ARG_DST, *to, output(0)}}, why_not);
}

}  // namespace

void add_reduction(const Register& add) {
  add("reduce_sum", [](const Request& request, std::string& why_not) {
    return make_reduction(request, dnnl_reduction_sum, why_not);
  });
  add("reduce_mean", [](const Request& request, std::string& why_not) {
    return make_reduction(request, dnnl_reduction_mean, why_not);
  });
}

}  // namespace weft::onednn
