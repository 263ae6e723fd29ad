// A second device for tests: the CPU's kernels over memory that is closed outside kernels and copies. A kernel sees the
// pages of its operands, those of its inputs read-only unless it updates them in place. Each value ends where its page
// does, up to alignment, and what lies around it is filled before each call and looked at after it. Outputs and
// workspaces are filled too: whoever relies on what was there before computes something else than on the CPU.
#pragma once

#include "tests/support/checked_memory.h"
#include "weft/cpu/cpu_backend.h"

namespace weft {

class CheckedHost : public Device {
 public:
  explicit CheckedHost(int threads, KernelTable kernels = standard_kernels())
      : cpu_(threads, std::move(kernels)), checked_(std::make_shared<CheckedMemory>()), memory_(checked_) {}

  MemoryRules memory_rules() const override {
    return {.is_separate = true, .block_bytes = kPageBytes, .values_end_at_blocks = true, .guard_bytes = kPageBytes};
  }
  std::optional<LayoutChoice> preferred_layouts(const NodeSignature& node) const override {
    return cpu_.preferred_layouts(node);
  }
  bool supports_layouts(const NodeSignature& node) const override { return cpu_.supports_layouts(node); }
  KernelChoice choose_kernel(const NodeSignature& node) const override;
  bool takes_granted_workspace(const NodeSignature& node) const override { return cpu_.takes_granted_workspace(node); }
  std::optional<std::vector<Tensor>> evaluate(const NodeSignature& node,
                                              const std::vector<Tensor>& operands) const override {
    return cpu_.evaluate(node, operands);
  }
  bool computes_fast(DType dtype) const override { return cpu_.computes_fast(dtype); }

  /// Their run() throws Error(internal) where an operand is not of this memory, or something around one has changed.
  std::unique_ptr<Kernel> make_kernel(const NodeSignature& node) const override;
  std::unique_ptr<Kernel> make_kernel(const NodeSignature& node, const std::string& name) const override;
  int threads() const override { return cpu_.threads(); }
  const std::shared_ptr<MemorySpace>& memory() const override { return memory_; }
  std::unique_ptr<ExecutionContext> make_context() const override;

 private:
  CpuBackend cpu_;
  std::shared_ptr<CheckedMemory> checked_;
  std::shared_ptr<MemorySpace> memory_;
};

}  // namespace weft
