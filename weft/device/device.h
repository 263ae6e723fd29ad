// A device: what planning asks (Backend) and what execution asks. The executor knows no other face of a machine.
#pragma once

#include <memory>
#include <string>

#include "weft/device/backend.h"
#include "weft/device/execution.h"
#include "weft/device/kernel.h"
#include "weft/device/memory_space.h"

namespace weft {

class Device : public Backend {
 public:
  /// The kernel that choose_kernel() names.
  virtual std::unique_ptr<Kernel> make_kernel(const NodeSignature& node) const = 0;
  /// The kernel of this name, as a plan has it; null where the device has none for the node.
  virtual std::unique_ptr<Kernel> make_kernel(const NodeSignature& node, const std::string& name) const = 0;
  /// Of a step.
  virtual int threads() const = 0;
  /// In which its kernels compute; the same at each call.
  virtual const std::shared_ptr<MemorySpace>& memory() const = 0;
  /// For one executor.
  virtual std::unique_ptr<ExecutionContext> make_context() const { return std::make_unique<ExecutionContext>(); }
};

}  // namespace weft
