// Multiply-adds in registers and nothing else: what a core's units can do where no memory stands in the way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "weft/base/isa.h"
#include "weft/tensor/dtype.h"

namespace weft::native {

struct MultiplyChains {
  std::function<float(int64_t rounds)> run;  // returns a sum, so that nothing can be left out
  int64_t flops_per_round = 0;
  std::string unit;  // "vfmadd231ps on 512 bits"
};

/// Independent chains, as many as hide the latency. Null `run` where the processor, or what `isa` allows, has no vector
/// instructions that multiply this type; matrix units have none here.
MultiplyChains multiply_chains(DType dtype, Isa isa);

}  // namespace weft::native
