// What this machine can do at most, measured in a fraction of a second: arithmetic, and memory by level. From it, the
// floor of a node's time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/cpu/cpu_backend.h"
#include "weft/graph/op_def.h"

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
  double measuring_seconds = 0;

  /// No kernel that multiplies as often as is counted takes less: the larger of its arithmetic at the unit's rate and
  /// of its traffic at the rate of the smallest level that holds its operands. `narrow`: a product of 16-bit numbers.
  Floor floor(int64_t flops, int64_t bytes, bool narrow) const;
};

/// Arithmetic: the faster of chains of multiply-adds in registers and, of `matmul`, a large product. Memory: the faster
/// of copying and reading. Each the best of several short repetitions, since other programs may be running.
MachineRates measure_machine(const CpuBackend& backend, const OpDef& matmul);

}  // namespace weft
