#include "weft/cpu/tuned_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "weft/cpu/all_kernels.h"
#include "weft/cpu/measure_kernels.h"
#include "weft/graph/signature_key.h"

namespace weft {

namespace {

constexpr double kSecondsPerNode = 0.25;
constexpr double kClearlyFaster = 0.97;  // of the first candidate's time: less may be chance

}  // namespace

std::vector<KernelTime> rank_kernels(std::vector<KernelTime> times) {
  const KernelTime first = times.front();
  std::erase_if(times, [](const KernelTime& time) { return !std::isfinite(time.seconds); });
  std::stable_sort(times.begin(), times.end(), [&](const KernelTime& a, const KernelTime& b) {
    const auto counted = [&](const KernelTime& time) {
      return time.kernel == first.kernel ? kClearlyFaster * time.seconds : time.seconds;
    };
    return counted(a) < counted(b);
  });
  return times;
}

TunedBackend::TunedBackend(int threads, KernelTable kernels, Tuning tuning)
    : CpuBackend(threads, std::move(kernels)), tuning_(std::move(tuning)), times_(tuning_.known) {}

KernelChoice TunedBackend::choose_kernel(const NodeSignature& node) const {
  const std::string key = signature_key(node);
  const std::lock_guard lock(mutex_);
  if (times_.contains(key) || measure(key, node)) {
    const std::vector<KernelTime>& times = times_.at(key);
    // Null where the times came from elsewhere: a run directory that was brought to this machine.
    if (const auto kernel = make_kernel(node, times.front().kernel)) {
      chosen_[key] = times;
      return {kernel->name(), kernel->workspace_bytes(), {}};
    }
  }
  return CpuBackend::choose_kernel(node);
}

bool TunedBackend::measure(const std::string& key, const NodeSignature& node) const {
  if (settled_ || measuring_seconds_ >= tuning_.budget_seconds || alone_.contains(key)) return false;
  const std::vector<std::unique_ptr<Kernel>> kernels = make_all_kernels(*this, node);
  if (kernels.size() < 2) {
    alone_.insert(key);
    return false;
  }
  if (measured_.empty() && tuning_.note)
    tuning_.note(
        fmt::format("measuring which kernels are the fastest here, for at most {:.0f} s", tuning_.budget_seconds));
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<double> seconds = measure_kernels(kernels, node, kSecondsPerNode);
  measuring_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<KernelTime> times;
  for (size_t at = 0; at < kernels.size(); ++at) times.push_back({kernels[at]->name(), seconds[at]});
  times = rank_kernels(std::move(times));
  if (times.empty()) return false;
  times_[key] = measured_[key] = std::move(times);
  return true;
}

void TunedBackend::settle() {
  const std::lock_guard lock(mutex_);
  settled_ = true;
  times_ = chosen_;
}

KernelTimes TunedBackend::chosen() const {
  const std::lock_guard lock(mutex_);
  return chosen_;
}

KernelTimes TunedBackend::measured() const {
  const std::lock_guard lock(mutex_);
  return measured_;
}

double TunedBackend::measuring_seconds() const {
  const std::lock_guard lock(mutex_);
  return measuring_seconds_;
}

}  // namespace weft
