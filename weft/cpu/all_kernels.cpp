#include "weft/cpu/all_kernels.h"

#include <algorithm>

#include "weft/cpu/integer_nodes.h"
#include "weft/cpu/onednn/alternatives.h"

namespace weft {

namespace {

bool has_onednn(const CpuBackend& backend, const NodeSignature& node) {
  const auto& candidates = backend.table().candidates(node.op->name);
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const KernelCandidate& candidate) { return candidate.family == "onednn"; });
}

}  // namespace

std::vector<std::unique_ptr<Kernel>> make_all_kernels(const CpuBackend& backend, const NodeSignature& node) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  const auto is_new = [&](const std::string& name) {
    return std::none_of(kernels.begin(), kernels.end(), [&](const auto& kernel) { return kernel->name() == name; });
  };
  for (const KernelCandidate& candidate : backend.table().candidates(node.op->name)) {
    if (candidate.family == "reference" && !kernels.empty()) continue;
    std::string why_not;
    auto kernel = candidate.make(node, {backend.threads()}, why_not);
    if (kernel != nullptr && is_new(kernel->name())) kernels.push_back(std::move(kernel));
  }
  if (has_onednn(backend, node) && why_reference(node).empty())
    for (auto& kernel : onednn::make_alternatives(node, backend.threads(), is_new))
      kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace weft
