#include "weft/cpu/cpu_backend.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/cpu/integer_nodes.h"
#include "weft/cpu/kept_layouts.h"
#include "weft/cpu/machine_rates.h"
#include "weft/cpu/native/elementwise/through_f32.h"
#include "weft/cpu/native/support/families.h"
#include "weft/cpu/onednn/alternatives.h"
#include "weft/cpu/onednn/isa.h"
#include "weft/cpu/renewal.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/window.h"

namespace weft {

namespace {

struct Choice {
  std::unique_ptr<Kernel> kernel;
  std::vector<std::string> declined;
};

Choice first_that_serves(const KernelTable& table, const KernelOptions& options, const NodeSignature& node) {
  Choice choice;
  for (const auto& candidate : table.candidates(node.op->name)) {
    std::string why_not = "no reason given";
    choice.kernel = candidate.make(node, options, why_not);
    if (choice.kernel != nullptr) return choice;
    choice.declined.push_back(fmt::format("{}: no, because {}", candidate.family, why_not));
  }
  if (choice.declined.empty())
    fail(ErrorKind::usage, "[{}] '{}': there is no kernel for this op; add one to the kernel table", node.op->name,
         node.name);
  std::string reasons;
  for (const auto& reason : choice.declined) reasons += "; " + reason;
  fail(ErrorKind::usage, "[{}] '{}': no kernel serves this node{}", node.op->name, node.name, reasons);
}

bool is_onednn(const KernelCandidate& candidate) { return candidate.family == "onednn"; }

}  // namespace

KernelTable standard_kernels() {
  KernelTable table;
  add_native_kernels(table);
  add_onednn_kernels(table);
  native::add_weight_tiles(table, detect_isa());
  native::add_through_f32(table, ops::make_registry(), detect_isa());
  add_renewals(table, ops::make_registry());
  leave_integers_to_reference(table);
  add_reference_kernels(table);
  add_kept_layouts(table);
  return table;
}

KernelTable reference_kernels() {
  KernelTable table;
  add_reference_kernels(table);
  return table;
}

CpuBackend::CpuBackend(int threads, KernelTable kernels) : table_(std::move(kernels)), options_{threads} {
  if (threads < 1) fail(ErrorKind::usage, "--threads {}: a step needs at least one thread; try --threads 1", threads);
}

std::optional<LayoutChoice> CpuBackend::preferred_layouts(const NodeSignature& asked) const {
  // What is computed through f32 takes the layouts that it has there.
  const NodeSignature node = computes_fast(DType::f16) ? asked : native::in_f32(asked);
  for (const KernelCandidate& candidate : table_.candidates(node.op->name))
    if (candidate.layouts)
      if (auto choice = candidate.layouts(node, options_)) return choice;
  return std::nullopt;
}

bool CpuBackend::supports_layouts(const NodeSignature& node) const {
  // A reference kernel is slow. But it stands for the exchange of ranks that are not here, whose step is planned.
  const bool may_be_reference = node.op->work == ops::work::kCommunication;
  for (const auto& candidate : table_.candidates(node.op->name)) {
    std::string why_not;
    if ((may_be_reference || candidate.family != "reference") && candidate.make(node, options_, why_not) != nullptr)
      return true;
  }
  return false;
}

KernelChoice CpuBackend::choose_kernel(const NodeSignature& node) const {
  Choice choice = first_that_serves(table_, options_, node);
  return {choice.kernel->name(), choice.kernel->workspace_bytes(), std::move(choice.declined)};
}

bool CpuBackend::takes_granted_workspace(const NodeSignature& node) const {
  const std::string& op = node.op->name;
  const bool is_weights = op == "conv2d_backward_weights";
  if (!is_weights && op != "conv2d" && op != "conv2d_backward_data") return false;
  const DType dtype = node.inputs[0].dtype;
  return (dtype == DType::f32 || dtype == DType::bf16) &&
         ops::has_winograd_windows((is_weights ? node.outputs[0] : node.inputs[1]).shape, node.attributes);
}

std::optional<std::vector<Tensor>> CpuBackend::evaluate(const NodeSignature& node,
                                                        const std::vector<Tensor>& operands) const {
  const std::unique_ptr<Kernel> kernel = make_kernel(node, choose_kernel(node).kernel);
  check(kernel != nullptr, "the kernel that was chosen exists");
  std::vector<const void*> sources;
  for (const Tensor& operand : operands) sources.push_back(operand.data());
  std::vector<Tensor> results;
  std::vector<void*> targets;
  for (const TensorType& type : node.outputs) targets.push_back(results.emplace_back(type).data());
  const auto workspace = allocate_aligned(kernel->workspace_bytes());
  kernel->run({sources, targets, workspace.get()});
  return results;
}

bool CpuBackend::computes_fast(DType dtype) const { return onednn::multiplies_fast(dtype); }

std::string CpuBackend::what_lacks(DType dtype) const {
  if (dtype != DType::bf16) return Device::what_lacks(dtype);
  return "this CPU has no instructions for bf16 (AVX512_BF16 or AMX), or ONEDNN_MAX_CPU_ISA hides them";
}

DeviceIdentity CpuBackend::identity() const {
  return {onednn::effective_isa(), "onednn", onednn::library_version(),
          "set ONEDNN_MAX_CPU_ISA to what all of them have"};
}

MachineRates CpuBackend::measure_rates() const {
  const OpRegistry ops = ops::make_inference_registry();
  return measure_machine(*this, ops.get("matmul"));
}

std::unique_ptr<Kernel> CpuBackend::make_kernel(const NodeSignature& node) const {
  return first_that_serves(table_, options_, node).kernel;
}

std::unique_ptr<Kernel> CpuBackend::make_kernel(const NodeSignature& node, const std::string& name) const {
  const std::vector<KernelCandidate>& candidates = table_.candidates(node.op->name);
  for (const KernelCandidate& candidate : candidates) {
    std::string why_not;
    auto kernel = candidate.make(node, options_, why_not);
    if (kernel != nullptr && kernel->name() == name) return kernel;
  }
  if (std::none_of(candidates.begin(), candidates.end(), is_onednn) || !why_reference(node).empty()) return nullptr;
  auto kernels =
      onednn::make_alternatives(node, options_.threads, [&](const std::string& offered) { return offered == name; });
  return kernels.empty() ? nullptr : std::move(kernels.front());
}

}  // namespace weft
