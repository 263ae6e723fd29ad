// The CPU as a backend: chooses kernels from the ordered candidate lists and knows the layouts they want.
#pragma once

#include <memory>

#include "weft/device/device.h"
#include "weft/device/kernel.h"

namespace weft {

class CpuBackend : public Device {
 public:
  /// Error(usage) for less than one thread.
  explicit CpuBackend(int threads, KernelTable kernels = standard_kernels());
  std::optional<LayoutChoice> preferred_layouts(const NodeSignature& node) const override;
  bool supports_layouts(const NodeSignature& node) const override;
  KernelChoice choose_kernel(const NodeSignature& node) const override;
  /// Of Winograd's kernels: convolutions of 3x3, and their gradients, in f32 and bf16.
  bool takes_granted_workspace(const NodeSignature& node) const override;
  /// By the kernel that choose_kernel() names for the types: the bits that the step would have computed.
  std::optional<std::vector<Tensor>> evaluate(const NodeSignature& node,
                                              const std::vector<Tensor>& operands) const override;
  /// As oneDNN sees the CPU, which ONEDNN_MAX_CPU_ISA can limit.
  bool computes_fast(DType dtype) const override;
  std::string what_lacks(DType dtype) const override;
  DeviceIdentity identity() const override;
  MachineRates measure_rates() const override;

  std::unique_ptr<Kernel> make_kernel(const NodeSignature& node) const override;
  /// Of the candidates, or of what else oneDNN has for the node.
  std::unique_ptr<Kernel> make_kernel(const NodeSignature& node, const std::string& name) const override;
  const KernelTable& table() const { return table_; }
  int threads() const override { return options_.threads; }
  const std::shared_ptr<MemorySpace>& memory() const override { return memory_; }

 private:
  KernelTable table_;
  KernelOptions options_;
  std::shared_ptr<MemorySpace> memory_ = host_memory();
};

}  // namespace weft
