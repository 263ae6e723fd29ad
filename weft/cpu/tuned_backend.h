// The CPU backend with kernels chosen by the time they take here, where that is known or may be measured.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "weft/cpu/cpu_backend.h"

namespace weft {

/// The fastest first, but the first candidate, which stands first in `times`, before all that are not clearly faster.
/// Infinite times are left out.
std::vector<KernelTime> rank_kernels(std::vector<KernelTime> times);

class TunedBackend : public CpuBackend {
 public:
  explicit TunedBackend(int threads, KernelTable kernels = standard_kernels(), Tuning tuning = {});

  /// Where several kernels serve a node, the fastest in short runs side by side; the first candidate where no other is
  /// clearly faster. Nodes with the same signature_key() get the same answer. From any thread.
  KernelChoice choose_kernel(const NodeSignature& node) const override;

  void settle() override;
  KernelTimes chosen() const override;
  KernelTimes measured() const override;
  double measuring_seconds() const override;

 private:
  bool measure(const std::string& key, const NodeSignature& node) const;

  const Tuning tuning_;
  mutable std::mutex mutex_;  // of all below
  mutable KernelTimes times_, chosen_, measured_;
  mutable std::set<std::string> alone_;  // nodes with one kernel
  mutable double measuring_seconds_ = 0;
  bool settled_ = false;
};

}  // namespace weft
