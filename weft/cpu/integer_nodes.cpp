#include "weft/cpu/integer_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "weft/ops/fused.h"

namespace weft {

namespace {

bool is_served(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

/// Ops that compute in any numbers and have kernels of their own in f32; elementwise ones.
constexpr const char* kComputing[] = {"matmul",      "argmax",      "softmax",    "log_softmax", "reduce_sum",
                                      "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"};

std::vector<std::string> computing_ops() {
  std::vector<std::string> names = ops::scalar_op_names();
  names.insert(names.end(), std::begin(kComputing), std::end(kComputing));
  return names;
}

bool computes(const std::string& op) {
  const std::vector<std::string> names = computing_ops();
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool compares(const std::string& op) { return op == "equal" || op == "greater" || op == "greater_equal"; }

/// Ops that move elements of any type, or cast them, and that have kernels of their own.
constexpr const char* kMovers[] = {
    "cast",   "constant", "pad",       "broadcast_to", "slice",          "strided_slice", "strided_slice_backward",
    "concat", "take",     "transpose", "reorder",      "copy_to_device", "copy_to_host",  "renew"};

}  // namespace

std::string why_reference(const NodeSignature& node) {
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const TensorType& type : *types)
      if (is_packed(type.dtype)) return fmt::format("{} is packed", name_of(type.dtype));
  if (node.attributes.exact_integer("value") && (node.op->name == "constant" || node.op->name == "pad"))
    return "no double equals the value";
  const std::string& op = node.op->name;
  if (op == "cast" && node.inputs[0].dtype == DType::f64 && node.outputs[0].dtype == DType::f16)
    return "f64 is rounded to f16 once";
  if (!computes(op)) return "";
  for (const TensorType& type : node.inputs)
    if (!is_served(type.dtype) && !(compares(op) && type.dtype == DType::i32))
      return fmt::format("it computes in {}", name_of(type.dtype));
  return "";
}

void leave_integers_to_reference(KernelTable& table) {
  std::vector<std::string> names = computing_ops();
  names.insert(names.end(), std::begin(kMovers), std::end(kMovers));
  for (const std::string& name : names) {
    if (table.candidates(name).empty()) continue;
    for (KernelCandidate& candidate : table.candidates_to_change(name)) {
      candidate.make = [make = std::move(candidate.make)](const NodeSignature& node, const KernelOptions& options,
                                                          std::string& why_not) -> std::unique_ptr<Kernel> {
        why_not = why_reference(node);
        return why_not.empty() ? make(node, options, why_not) : nullptr;
      };
      if (!candidate.layouts) continue;
      candidate.layouts = [layouts = std::move(candidate.layouts)](
                              const NodeSignature& node, const KernelOptions& options) -> std::optional<LayoutChoice> {
        return why_reference(node).empty() ? layouts(node, options) : std::nullopt;
      };
    }
  }
}

}  // namespace weft
