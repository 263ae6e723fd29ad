#include "weft/base/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

namespace weft {
namespace {

/// Sets both variables that limit the instruction set for one test, and puts back what they were.
class IsaLimit : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i)
      if (const char* text = std::getenv(kNames[i])) before_[i] = text;
    limit(nullptr, nullptr);
  }
  void TearDown() override {
    limit(before_[0] ? before_[0]->c_str() : nullptr, before_[1] ? before_[1]->c_str() : nullptr);
  }

  static void limit(const char* onednn, const char* dnnl) {
    const char* const texts[] = {onednn, dnnl};
    for (int i = 0; i < 2; ++i) texts[i] == nullptr ? unsetenv(kNames[i]) : setenv(kNames[i], texts[i], 1);
  }

 private:
  static constexpr const char* kNames[] = {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};
  std::optional<std::string> before_[2];
};

TEST_F(IsaLimit, SetsBeforeAvx2AreTheBaseline) {
  for (const char* name : {"SSE41", "AVX"}) {
    limit(name, nullptr);
    EXPECT_EQ(detect_isa(), Isa::baseline) << name;
  }
}

TEST_F(IsaLimit, NeverGivesMoreThanTheProcessorHas) {
  const Isa all = detect_isa();
  limit("AVX512_CORE_AMX", nullptr);
  EXPECT_EQ(detect_isa(), all);
  limit("AVX2_VNNI", nullptr);
  EXPECT_EQ(detect_isa(), std::min(all, Isa::avx2));
}

TEST_F(IsaLimit, TheCaseOfTheNameDoesNotMatter) {
  limit("sse41", nullptr);
  EXPECT_EQ(detect_isa(), Isa::baseline);
}

TEST_F(IsaLimit, TheOlderVariableCountsWhereTheNewerOneIsNotSet) {
  limit(nullptr, "SSE41");
  EXPECT_EQ(detect_isa(), Isa::baseline);
  limit("AVX2", "SSE41");
  EXPECT_NE(detect_isa(), Isa::avx512);
}

TEST_F(IsaLimit, PairsOfBf16AreNotMultipliedWhereTheirInstructionsAreLeftOut) {
  limit("AVX512_CORE_VNNI", nullptr);
  EXPECT_FALSE(multiplies_bf16());
}

}  // namespace
}  // namespace weft
