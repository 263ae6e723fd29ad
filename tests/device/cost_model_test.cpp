#include "weft/device/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class CostModelTest : public testing::Test {
 protected:
  NodeSignature product(DType dtype, int64_t size) const {
    const TensorType square{dtype, {size, size}, {}};
    return {&registry_.get("matmul"),
            "product",
            {square, square},
            {square},
            {{"transpose_a", false}, {"transpose_b", false}}};
  }
  const OpRegistry registry_ = ops::make_registry();
  const DeviceProfile profile_{
      .name = "round", .flops_per_second = 1e9, .bytes_per_second = 1e8, .narrow_speedup = 2, .call_seconds = 1e-3};
};

std::string error_of(const std::string& text) {
  try {
    parse_device_profile(text, "rates.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return "no error";
}

TEST_F(CostModelTest, TheLargerOfArithmeticAndTrafficCounts) {
  const auto costs = rated_costs(profile_);
  // 2 * 1000^3 operations; 3 matrices of 4 MB.
  EXPECT_DOUBLE_EQ(costs->seconds(product(DType::f32, 1000), 1), 1e-3 + 2);
  EXPECT_DOUBLE_EQ(costs->seconds(product(DType::f32, 1000), 2), 1e-3 + 1);
  // 2 * 10^3 operations take 2 us, 1200 bytes 12 us.
  EXPECT_DOUBLE_EQ(costs->seconds(product(DType::f32, 10), 1), 1e-3 + 12e-6);
  EXPECT_EQ(costs->cost_of(product(DType::f32, 10), 1).source, CostSource::rated);
}

TEST_F(CostModelTest, NarrowProductsTakeTheirRate) {
  EXPECT_DOUBLE_EQ(rated_costs(profile_)->seconds(product(DType::bf16, 1000), 1), 1e-3 + 1);
}

TEST_F(CostModelTest, AViewTakesNoTime) {
  const TensorType row{DType::f32, {6}, {}}, table{DType::f32, {2, 3}, {}};
  const NodeSignature view{&registry_.get("reshape"), "view", {row}, {table}, {}};
  EXPECT_EQ(rated_costs(profile_)->seconds(view, 1), 0);
}

// Plans, and with them the bits of a run, depend on these numbers.
TEST_F(CostModelTest, TheDefaultProfileIsWhatItWas) {
  const DeviceProfile expected{.name = "default",
                               .flops_per_second = 2.1e11,
                               .bytes_per_second = 2e10,
                               .narrow_speedup = 4,
                               .call_seconds = 3e-6};
  EXPECT_EQ(default_profile(), expected);
}

TEST_F(CostModelTest, TheDefaultProfileIsWhatItsFileSays) {
  const std::string file = WEFT_SOURCE_DIR "/weft/device/default_profile.toml";
  EXPECT_EQ(parse_device_profile(read_text(file), file), default_profile());
}

TEST_F(CostModelTest, AProfileParsesBackToTheLastBit) {
  DeviceProfile odd = profile_;
  odd.flops_per_second = 1.0 / 3;
  EXPECT_EQ(parse_device_profile(print_device_profile(odd), "rates.toml"), odd);
}

TEST_F(CostModelTest, SaysByWhichProfileItRates) {
  EXPECT_EQ(rated_costs()->describe(), "rated by the profile 'default'");
  EXPECT_EQ(rated_costs(profile_)->describe(), "rated by the profile 'round'");
}

TEST_F(CostModelTest, WhatAProfileLacksIsNamed) {
  const std::string whole = print_device_profile(profile_);
  EXPECT_THAT(error_of("name = \"x\""), HasSubstr("rates.toml:1: 'flops_per_second' is missing; write it anew"));
  EXPECT_THAT(error_of(whole + "bytes_per_secund = 1.0\n"),
              HasSubstr("rates.toml:6: a device profile has no key 'bytes_per_secund'"));
  EXPECT_THAT(error_of("= 3"), HasSubstr("rates.toml:1: "));
  std::string negative = whole;
  negative.replace(negative.find("call_seconds = "), std::string::npos, "call_seconds = -1.0\n");
  EXPECT_THAT(error_of(negative), HasSubstr("rates.toml:5: 'call_seconds' has to be a number above 0"));
}

}  // namespace
}  // namespace weft
