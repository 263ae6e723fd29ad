// A device: what planning asks (Backend) and what execution asks. The executor knows no other face of a machine.
#pragma once

#include <memory>
#include <string>

#include "weft/device/backend.h"
#include "weft/device/execution.h"
#include "weft/device/kernel.h"
#include "weft/device/kernel_times.h"
#include "weft/device/machine_rates.h"
#include "weft/device/memory_space.h"

namespace weft {

/// By what a device computes: for reports, and to compare hosts by.
struct DeviceIdentity {
  std::string instructions;     // "AVX512_CORE_BF16"
  std::string library;          // of kernels: "onednn"; empty where it has none
  std::string library_version;  // "2.6.0"
  std::string to_limit;         // how a user makes two alike: "set ONEDNN_MAX_CPU_ISA to what all of them have"
};

class Device : public Backend {
 public:
  virtual DeviceIdentity identity() const { return {}; }
  /// The kernel that choose_kernel() names.
  virtual std::unique_ptr<Kernel> make_kernel(const NodeSignature& node) const = 0;
  /// The kernel of this name, as a plan has it; null where the device has none for the node.
  virtual std::unique_ptr<Kernel> make_kernel(const NodeSignature& node, const std::string& name) const = 0;
  /// Of a step.
  virtual int threads() const = 0;
  /// In which its kernels compute; the same at each call.
  virtual const std::shared_ptr<MemorySpace>& memory() const = 0;
  /// What it can do at most, in less than a second. Error(usage) where it does not measure itself.
  virtual MachineRates measure_rates() const;

  // Of a device that chooses kernels by their time (Tuning); the others leave these as they are.
  /// From now on nodes that were asked for get the same answer as until now, and others the first candidate: what a run
  /// computes then depends on chosen() alone.
  virtual void settle() {}
  /// The times by which kernels were chosen so far.
  virtual KernelTimes chosen() const { return {}; }
  /// Those of them that were measured here.
  virtual KernelTimes measured() const { return {}; }
  virtual double measuring_seconds() const { return 0; }

  /// For one executor.
  virtual std::unique_ptr<ExecutionContext> make_context() const { return std::make_unique<ExecutionContext>(); }
};

}  // namespace weft
