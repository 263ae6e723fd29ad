// A backend that remembers its answers: networks repeat their layers, passes and planning ask the same several times,
// and each answer may cost a library the making of a kernel.
#pragma once

#include <string>
#include <unordered_map>

#include "weft/device/backend.h"

namespace weft {

class MemoizedBackend : public Backend {
 public:
  /// Keeps a reference.
  explicit MemoizedBackend(const Backend& backend) : backend_(backend) {}

  MemoryRules memory_rules() const override { return backend_.memory_rules(); }
  std::optional<LayoutChoice> preferred_layouts(const NodeSignature& node) const override;
  bool supports_layouts(const NodeSignature& node) const override;
  KernelChoice choose_kernel(const NodeSignature& node) const override;
  bool takes_granted_workspace(const NodeSignature& node) const override {
    return backend_.takes_granted_workspace(node);
  }
  std::optional<std::vector<Tensor>> evaluate(const NodeSignature& node,
                                              const std::vector<Tensor>& operands) const override {
    return backend_.evaluate(node, operands);
  }
  bool computes_fast(DType dtype) const override { return backend_.computes_fast(dtype); }

 private:
  const Backend& backend_;
  mutable std::unordered_map<std::string, std::optional<LayoutChoice>> layouts_;
  mutable std::unordered_map<std::string, bool> supported_;
  mutable std::unordered_map<std::string, KernelChoice> kernels_;
};

}  // namespace weft
