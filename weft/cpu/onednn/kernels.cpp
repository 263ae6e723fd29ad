// The table of all kernels that run on oneDNN.
#include <algorithm>
#include <set>

#include "weft/cpu/onednn/alternatives.h"
#include "weft/cpu/onednn/convolution.h"
#include "weft/cpu/onednn/families.h"

namespace weft {

namespace {

/// Where oneDNN was measured to be the faster one (docs/performance.md), it comes before weft's own kernels.
bool comes_first(const std::string& op) {
  static const std::set<std::string> ops{"avg_pool2d", "avg_pool2d_backward", "reorder"};
  return ops.contains(op);
}

/// oneDNN does nothing then, not even write the zeros of a sum of no numbers.
bool has_empty_operand(const NodeSignature& node) {
  const auto is_empty = [](const TensorType& type) { return type.elements() == 0; };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_empty) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_empty);
}

/// Handing work to other threads and waiting for them takes some microseconds, on a busy machine far more: what one
/// thread does in about four is not shared out.
int useful_threads(const NodeSignature& node, int threads) {
  constexpr double kFlops = 400e3, kBytes = 80e3;  // of one thread in that time
  double bytes = 0;
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const TensorType& type : *types) bytes += static_cast<double>(type.bytes());
  const auto& count = node.op->flops;
  const double flops = count ? static_cast<double>(count(node.inputs, node.outputs, node.attributes)) : 0;
  return flops / kFlops + bytes / kBytes < 1 ? 1 : threads;
}

/// What the convolutions wish for.
std::optional<LayoutChoice> convolution_layouts(const NodeSignature& node, const KernelOptions& options) {
  const auto convolution = onednn::read_convolution(node);
  if (!convolution) return std::nullopt;
  const onednn::ThreadScope scope(options.threads);
  return onednn::preferred_convolution_layouts(*convolution, onednn::Engine());
}

}  // namespace

namespace {

onednn::Register register_in(KernelTable& table) {
  const auto engine = std::make_shared<const onednn::Engine>();
  return [&table, engine](const std::string& op, onednn::Factory make) {
    KernelCandidate candidate{"onednn",
                              [engine, make = std::move(make)](const NodeSignature& node, const KernelOptions& options,
                                                               std::string& why_not) -> std::unique_ptr<Kernel> {
                                if (has_empty_operand(node)) return onednn::declined(why_not, "an operand is empty");
                                const int threads = useful_threads(node, options.threads);
                                const onednn::ThreadScope scope(threads);
                                return make({node, threads, engine}, why_not);
                              }};
    if (op.starts_with("conv2d") || op == "fused_conv2d") candidate.layouts = convolution_layouts;
    comes_first(op) ? table.add_first(op, std::move(candidate)) : table.add(op, std::move(candidate));
  };
}

}  // namespace

void add_forward_onednn_kernels(KernelTable& table) {
  const onednn::Register add = register_in(table);
  onednn::add_convolutions(add);
  onednn::add_matmul(add);
  onednn::add_normalization(add);
  onednn::add_pooling(add);
  onednn::add_elementwise(add);
  onednn::add_reduction(add);
  onednn::add_recurrent(add);
}

void add_onednn_kernels(KernelTable& table) {
  add_forward_onednn_kernels(table);
  const onednn::Register add = register_in(table);
  onednn::add_normalization_gradients(add);
  onednn::add_recurrent_gradients(add);
}

std::vector<std::unique_ptr<Kernel>> onednn::make_alternatives(const NodeSignature& node, int threads,
                                                               const Wants& wants) {
  const std::string& op = node.op->name;
  const bool is_convolution = op.starts_with("conv2d");
  if ((!is_convolution && op != "matmul") || has_empty_operand(node)) return {};
  const auto engine = std::make_shared<const onednn::Engine>();
  const int useful = useful_threads(node, threads);
  const onednn::ThreadScope scope(useful);
  const Request request{node, useful, engine};
  return is_convolution ? other_convolutions(request, wants) : other_matmuls(request, wants);
}

bool onednn::is_new(const std::vector<std::unique_ptr<Kernel>>& kernels, const std::string& name) {
  return std::none_of(kernels.begin(), kernels.end(), [&](const auto& kernel) { return kernel->name() == name; });
}

}  // namespace weft
