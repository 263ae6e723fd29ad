#include "weft/spec/compile_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft::spec {
namespace {

using testing::HasSubstr;

/// A machine that multiplies one type faster than f32.
class Machine : public Backend {
 public:
  explicit Machine(DType fast) : fast_(fast) {}
  std::optional<LayoutChoice> preferred_layouts(const NodeSignature&) const override { return std::nullopt; }
  bool supports_layouts(const NodeSignature&) const override { return true; }
  KernelChoice choose_kernel(const NodeSignature&) const override { return {"any", 0, {}}; }
  bool computes_fast(DType dtype) const override { return dtype == fast_; }
  std::string what_lacks(DType) const override { return "this CPU has no instructions for bf16"; }

 private:
  DType fast_;
};

const Machine kPlain(DType::f32), kNew(DType::bf16);

RunSpec spec_with(const std::string& precision, const std::string& precision_of = "") {
  RunSpec spec;
  spec.precision = precision;
  spec.precision_of = precision_of;
  return spec;
}

std::string error_of(const RunSpec& spec, const Machine& machine) {
  try {
    compile_options(spec, machine);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(CompileOptionsTest, ReadsTheExceptions) {
  const auto policy = compile_options(spec_with("bf16", "softmax=f32, layer4.*= f32 ,head=bf16"), kNew).precision;
  EXPECT_EQ(policy.dtype, DType::bf16);
  ASSERT_EQ(policy.overrides.size(), 3u);
  EXPECT_EQ(policy.overrides[0].pattern, "softmax");
  EXPECT_EQ(policy.overrides[1].pattern, "layer4.*");
  EXPECT_EQ(policy.overrides[1].dtype, DType::f32);
  EXPECT_EQ(policy.overrides[2].dtype, DType::bf16);
}

TEST(CompileOptionsTest, LeavesWinogradsTilesOut) {
  EXPECT_TRUE(compile_options(spec_with("bf16", "head=f32"), kNew).grants_workspace);
  const CompileOptions direct = compile_options(spec_with("bf16", "winograd=off, head=f32"), kNew);
  EXPECT_FALSE(direct.grants_workspace);
  EXPECT_EQ(direct.precision.overrides.size(), 1u);
}

TEST(CompileOptionsTest, NamesAnExceptionThatCannotBeRead) {
  EXPECT_EQ(error_of(spec_with("bf16", "softmax"), kNew),
            "precision_of: 'softmax' is no NAME=TYPE; write such as 'softmax=f32, head*=f32'");
  EXPECT_EQ(error_of(spec_with("bf16", "head=f16"), kNew),
            "precision_of: 'head=f16' wants f16, and the run computes in bf16; give f32 or bf16");
  EXPECT_EQ(error_of(spec_with("f32", "head=bf16"), kNew),
            "precision_of: 'head=bf16' wants bf16, and the run computes in f32; give f32");
}

TEST(CompileOptionsTest, APrecisionThatTheMachineLacksNamesAnother) {
  EXPECT_EQ(error_of(spec_with("bf16"), kNew), "");
  EXPECT_THAT(error_of(spec_with("bf16"), kPlain), HasSubstr("precision bf16: this CPU has no instructions for bf16"));
}

TEST(CompileOptionsTest, F16IsThereOnEveryMachine) {
  EXPECT_EQ(error_of(spec_with("f16"), kPlain), "");
  EXPECT_EQ(compile_options(spec_with("f16"), kPlain).precision.dtype, DType::f16);
  RunSpec spec = spec_with("f16");
  choose_precision(spec, "", kPlain, [](const std::string& line) { ADD_FAILURE() << line; });
  EXPECT_EQ(spec.precision, "f16");
}

TEST(CompileOptionsTest, AModelTrainedInAPrecisionThatIsMissingIsUsedInF32) {
  RunSpec spec = spec_with("bf16", "softmax=f32");
  std::string said;
  choose_precision(spec, "", kPlain, [&](const std::string& line) { said += line; });
  EXPECT_EQ(said, "trained in bf16, which this machine lacks; computing in f32");
  EXPECT_EQ(spec.precision, "f32");
  EXPECT_EQ(error_of(spec, kPlain), "");
}

TEST(CompileOptionsTest, AnotherUseMayChooseAnotherPrecision) {
  RunSpec spec = spec_with("bf16", "softmax=f32");
  const auto silent = [](const std::string& line) { ADD_FAILURE() << line; };
  choose_precision(spec, "", kNew, silent);
  EXPECT_EQ(spec.precision, "bf16");
  choose_precision(spec, "f32", kNew, silent);
  EXPECT_EQ(spec.precision, "f32");
  choose_precision(spec, "auto", kNew, silent);
  EXPECT_EQ(spec.precision, "bf16");
  EXPECT_THROW(choose_precision(spec, "bf61", kNew, silent), Error);
}

TEST(CompileOptionsTest, F32KeepsTheExceptionFromWinograd) {
  const auto silent = [](const std::string&) {};
  RunSpec asked = spec_with("bf16", "softmax=f32, winograd = off"), missing = asked;
  choose_precision(asked, "f32", kNew, silent);
  EXPECT_EQ(asked.precision_of, "winograd=off");
  EXPECT_FALSE(compile_options(asked, kNew).grants_workspace);
  choose_precision(missing, "", kPlain, silent);
  EXPECT_EQ(missing.precision_of, "winograd=off");
}

TEST(CompileOptionsTest, AutomaticIsWhatTheMachineIsFastIn) {
  EXPECT_EQ(automatic_precision(kNew), "bf16");
  EXPECT_EQ(automatic_precision(kPlain), "f32");
}

TEST(CompileOptionsTest, FallingToF32KeepsWhatIsSaidOfKernels) {
  RunSpec spec = spec_with("bf16", "softmax=f32, winograd=off");
  fall_to_f32(spec);
  EXPECT_EQ(spec.precision, "f32");
  EXPECT_EQ(spec.precision_of, "winograd=off");
}

TEST(CompileOptionsTest, APrecisionLeftToTheMachineIsItsFastOne) {
  RunSpec spec = spec_with("auto");
  EXPECT_EQ(compile_options(spec, kNew).precision.dtype, DType::bf16);
  EXPECT_EQ(compile_options(spec, kPlain).precision.dtype, DType::f32);
  choose_automatic_precision(spec, kNew);
  EXPECT_EQ(spec.precision, "bf16");
}

}  // namespace
}  // namespace weft::spec
