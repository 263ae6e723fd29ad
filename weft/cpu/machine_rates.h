// Measures what this machine's processor and memory can do at most.
#pragma once

#include "weft/cpu/cpu_backend.h"
#include "weft/device/machine_rates.h"
#include "weft/graph/op_def.h"

namespace weft {

/// Arithmetic: the faster of chains of multiply-adds in registers and, of `matmul`, a large product. Memory: the faster
/// of copying and reading. Each the best of several short repetitions, since other programs may be running.
MachineRates measure_machine(const CpuBackend& backend, const OpDef& matmul);

}  // namespace weft
