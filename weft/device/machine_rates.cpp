#include "weft/device/machine_rates.h"

#include <algorithm>

namespace weft {

Floor MachineRates::floor(int64_t flops, int64_t bytes, bool narrow, int64_t held_bytes) const {
  const double arithmetic = static_cast<double>(flops) / (narrow ? bf16 : f32).flops_per_second;
  const auto level = std::find_if(memory.begin(), memory.end(),
                                  [&](const MemoryRate& rate) { return held_bytes <= rate.capacity_bytes; });
  const double traffic = static_cast<double>(bytes) / level->bytes_per_second;
  return {std::max(arithmetic, traffic), traffic > arithmetic};
}

DeviceProfile profile_of(const MachineRates& rates, const std::string& name) {
  const auto threads = static_cast<double>(rates.threads);
  return {.name = name,
          .flops_per_second = rates.f32.flops_per_second / threads,
          .bytes_per_second = rates.memory.back().bytes_per_second / threads,
          .narrow_speedup = rates.bf16.flops_per_second / rates.f32.flops_per_second,
          .call_seconds = rates.call_seconds};
}

}  // namespace weft
