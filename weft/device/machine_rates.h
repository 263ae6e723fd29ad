// What a machine can do at most, as a device measures it in a fraction of a second: arithmetic, and memory by level.
// From it, the floor of a node's time, and the profile by which plans weigh nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/device/cost_model.h"

namespace weft {

struct ArithmeticRate {
  double flops_per_second = 0;  // of all threads
  std::string measured_by;      // "vfmadd231ps on 512 bits", "a matrix product of 1024 x 1024 x 1024"
};

struct MemoryRate {
  std::string level;           // "L2", "L3", "memory"
  int64_t capacity_bytes = 0;  // of all threads together: what is larger lives in the next level; INT64_MAX: no limit
  double bytes_per_second = 0;
};

struct Floor {
  double seconds = 0;
  bool is_memory = false;  // bound by memory rather than by arithmetic
};

struct MachineRates {
  int threads = 1;
  ArithmeticRate f32, bf16;        // bf16: as f32 where the machine does not multiply it faster
  std::vector<MemoryRate> memory;  // by rising capacity
  double call_seconds = 0;         // of a kernel whose work is as good as none
  double measuring_seconds = 0;

  /// No kernel that multiplies as often as is counted takes less: the larger of its arithmetic at the unit's rate and
  /// of its traffic at the rate of the smallest level that holds its operands. `narrow`: a product of 16-bit numbers.
  Floor floor(int64_t flops, int64_t bytes, bool narrow) const { return floor(flops, bytes, narrow, bytes); }
  /// The same if the operands came from the smallest level that holds so many bytes.
  Floor floor(int64_t flops, int64_t bytes, bool narrow, int64_t held_bytes) const;
};

/// The rates of one thread, of large work: those of the memory beyond all caches. `name` is the profile's.
DeviceProfile profile_of(const MachineRates& rates, const std::string& name);

}  // namespace weft
