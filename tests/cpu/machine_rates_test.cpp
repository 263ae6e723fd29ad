#include "weft/cpu/machine_rates.h"

#include <gtest/gtest.h>

#include <limits>

#include "weft/cpu/cpu_backend.h"
#include "weft/cpu/native/rates/multiply_chains.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

MachineRates some_machine() {
  MachineRates rates;
  rates.f32.flops_per_second = 100;
  rates.bf16.flops_per_second = 200;
  rates.memory = {{"L2", 1000, 50}, {"memory", std::numeric_limits<int64_t>::max(), 10}};
  return rates;
}

TEST(MachineRates, FloorIsTheLargerOfArithmeticAndTraffic) {
  const MachineRates rates = some_machine();
  EXPECT_DOUBLE_EQ(rates.floor(1000, 100, false).seconds, 10);
  EXPECT_FALSE(rates.floor(1000, 100, false).is_memory);
  EXPECT_DOUBLE_EQ(rates.floor(100, 500, false).seconds, 10);
  EXPECT_TRUE(rates.floor(100, 500, false).is_memory);
}

TEST(MachineRates, FloorOfNarrowProductsTakesTheirRate) {
  EXPECT_DOUBLE_EQ(some_machine().floor(1000, 100, true).seconds, 5);
}

TEST(MachineRates, FloorTakesTheLevelThatHoldsTheOperands) {
  EXPECT_DOUBLE_EQ(some_machine().floor(0, 1000, false).seconds, 20);
  EXPECT_DOUBLE_EQ(some_machine().floor(0, 1001, false).seconds, 100.1);
}

TEST(MachineRates, NearerMemoryIsMeasuredAsNoSlower) {
  const OpRegistry registry = ops::make_registry();
  const CpuBackend backend(1);
  const MachineRates rates = measure_machine(backend, registry.get("matmul"));
  EXPECT_GT(rates.f32.flops_per_second, 0);
  EXPECT_GE(rates.bf16.flops_per_second, backend.computes_fast(DType::bf16) ? 1 : rates.f32.flops_per_second);
  ASSERT_FALSE(rates.memory.empty());
  EXPECT_EQ(rates.memory.back().level, "memory");
  for (size_t level = 1; level < rates.memory.size(); ++level) {
    EXPECT_LT(rates.memory[level - 1].capacity_bytes, rates.memory[level].capacity_bytes);
    EXPECT_GE(rates.memory[level - 1].bytes_per_second, rates.memory[level].bytes_per_second);
  }
  EXPECT_GT(rates.memory.back().bytes_per_second, 0);
}

TEST(MultiplyChains, ComputeWhatTheyCount) {
  // Each chain tends to 0.25 / (1 - 0.5); one lane of 12 chains is summed, or four lanes.
  for (const Isa isa : {Isa::baseline, detect_isa()}) {
    const native::MultiplyChains chains = native::multiply_chains(DType::f32, isa);
    EXPECT_FLOAT_EQ(chains.run(100), chains.unit == "mulps and addps" ? 24 : 6) << chains.unit;
  }
  const native::MultiplyChains narrow = native::multiply_chains(DType::bf16, detect_isa());
  if (!narrow.run) GTEST_SKIP() << "this CPU has no vector instructions for bf16";
  EXPECT_FLOAT_EQ(narrow.run(100), 12 * 2 * 100) << "each lane adds two products of ones per round";
}

}  // namespace
}  // namespace weft
