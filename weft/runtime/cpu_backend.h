// The CPU as a backend: chooses kernels from the ordered candidate lists and knows the layouts they want.
#pragma once

#include <memory>

#include "weft/graph/backend.h"
#include "weft/runtime/kernel.h"

namespace weft {

class CpuBackend : public Backend {
 public:
  /// Registers all kernel families. `only_reference` leaves just the plain loops, for checks against them.
  explicit CpuBackend(int threads, bool only_reference = false);
  std::optional<LayoutChoice> preferred_layouts(const NodeSignature& node) const override;
  bool supports_layouts(const NodeSignature& node) const override;
  KernelChoice choose_kernel(const NodeSignature& node) const override;

  /// The kernel that choose_kernel names.
  std::unique_ptr<Kernel> make_kernel(const NodeSignature& node) const;
  const KernelTable& table() const { return table_; }
  int threads() const { return options_.threads; }

 private:
  bool only_reference_;
  KernelTable table_;
  KernelOptions options_;
};

}  // namespace weft
