#include "weft/device/machine_rates.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft {
namespace {

TEST(MachineRatesProfile, IsThatOfOneThreadAndOfTheFurthestMemory) {
  MachineRates rates;
  rates.threads = 4;
  rates.f32.flops_per_second = 400;
  rates.bf16.flops_per_second = 1200;
  rates.memory = {{"L2", 1000, 800}, {"memory", std::numeric_limits<int64_t>::max(), 80}};
  rates.call_seconds = 1e-6;
  const DeviceProfile expected{
      .name = "here", .flops_per_second = 100, .bytes_per_second = 20, .narrow_speedup = 3, .call_seconds = 1e-6};
  EXPECT_EQ(profile_of(rates, "here"), expected);
}

}  // namespace
}  // namespace weft
