#include "weft/program/automatic_precision.h"

#include <gtest/gtest.h>

#include "tests/support/fit_rig.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/spec/compile_options.h"

namespace weft::program {
namespace {

TEST(AutomaticPrecision, LeavesF32OnlyWhereThatPays) {
  EXPECT_EQ(faster_precision({.f32_seconds = 1, .bf16_seconds = 0.5}), "bf16");
  EXPECT_EQ(faster_precision({.f32_seconds = 1, .bf16_seconds = 0.97}), "f32");
  EXPECT_EQ(faster_precision({.f32_seconds = 1, .bf16_seconds = 2}), "f32");
}

TEST(AutomaticPrecision, SaysWhatItMeasured) {
  EXPECT_EQ(program::describe(PrecisionTimes{.f32_seconds = 0.0123, .bf16_seconds = 0.0045}),
            "precision auto: a step takes 12.3 ms in f32, 4.5 ms in bf16: computing in bf16");
}

TEST(AutomaticPrecision, WhatIsGivenIsNotMeasured) {
  spec::RunSpec spec = spec_for("mlp", 1);
  spec.precision = "f16";
  const data::MemoryDataset data = make_data(40);
  const auto input = model_input({data.info(), data::channel_statistics(data)}, spec::StepShape{spec.batch});
  EXPECT_FALSE(choose_automatic_precision(standard_library(), spec, input, CpuBackend(1)));
  EXPECT_EQ(spec.precision, "f16");
}

TEST(AutomaticPrecision, MeasuresWhereThereIsAChoice) {
  spec::RunSpec spec = spec_for("lenet5", 1);
  spec.precision = "auto";
  const data::MemoryDataset data = make_data(40);
  const auto input = model_input({data.info(), data::channel_statistics(data)}, spec::StepShape{spec.batch});
  const CpuBackend backend(1);
  const Library library = standard_library();
  const auto times = choose_automatic_precision(library, spec, input, backend);
  EXPECT_EQ(times.has_value(), backend.computes_fast(DType::bf16));
  EXPECT_EQ(spec.precision, times ? faster_precision(*times) : "f32");
  if (times) {
    EXPECT_GT(times->f32_seconds, 0);
    EXPECT_GT(times->bf16_seconds, 0);
  }
}

}  // namespace
}  // namespace weft::program
