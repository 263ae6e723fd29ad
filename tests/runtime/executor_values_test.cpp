// What a graph is given beside states and batches: scalars of every type, and constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/drawn_tensor.h"
#include "weft/base/error.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/plan/make_plan.h"
#include "weft/runtime/executor.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

using test::drawn_tensor;
using testing::HasSubstr;

class ExecutorValues : public testing::Test {
 protected:
  OpRegistry registry_ = ops::make_registry();
  CpuBackend backend_{2};
};

// 2^53 + 1 is no double.
TEST_F(ExecutorValues, WholeScalarsAreExact) {
  const Graph graph = parse_graph(R"(graph "g" {
    scalar %step "step" : i64[]
    scalar %rate "rate" : f32[]
    %next = add(%step, %step) : i64[]
    output "next" %next
    output "rate" %rate
  })",
                                  registry_);
  const Plan plan = make_plan(graph, backend_, 1);
  Executor executor(graph, plan, backend_);
  executor.set_scalar("step", (int64_t{1} << 53) + 1);
  executor.set_scalar("rate", 3);
  executor.run();
  EXPECT_EQ(executor.output("next").data_as<int64_t>()[0], (int64_t{1} << 54) + 2);
  EXPECT_EQ(executor.scalar_output("rate"), 3);
  executor.set_scalar("step", 40.0);
  executor.run();
  EXPECT_EQ(executor.output("next").data_as<int64_t>()[0], 80);
  for (const double real : {0.5, 0x1p63, std::numeric_limits<double>::quiet_NaN()}) try {
      executor.set_scalar("step", real);
      ADD_FAILURE() << "takes " << real;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("scalar 'step' is i64 and cannot be"));
    }
}

constexpr const char* kWithConstants = R"(graph "g" {
  batch %x "x" : f32[2,4]
  state %kept "kept" : f32[4]
  %w = constant_tensor() {data=<f32[4,2] 1,2,3,4,5,6,7,8>} : f32[4,2]
  %again = constant_tensor() {data=<f32[4,2] 1,2,3,4,5,6,7,8>} : f32[4,2]
  %flat = reshape(%again) {shape=[8]} : f32[8]
  %new = constant_tensor() {data=<f32[4] 4,3,2,1>} : f32[4]
  %y = matmul(%x, %w) : f32[2,2]
  %z = relu(%flat) : f32[8]
  output "y" %y
  output "z" %z
  output "flat" %flat
  update "kept" %new
})";

TEST_F(ExecutorValues, ConstantsLieOutsideTheArenaAndAreNeverWritten) {
  const Graph graph = parse_graph(kWithConstants, registry_);
  const CompiledStep step = compile(graph, backend_, {});
  const Plan plan = make_plan(graph, backend_, 2);
  EXPECT_EQ(plan.constant_bytes, 2 * 64);  // equal ones are there once
  for (const auto& [one_graph, one_plan] : {std::pair{&graph, &plan}, std::pair{&step.graph, &step.plan}}) {
    Executor executor(*one_graph, *one_plan, backend_);
    State state;
    state.set("kept", Tensor(DType::f32, {4}));
    const Tensor x = drawn_tensor({2, 4}, 3);
    const auto expected =
        evaluate_graph(graph, {{"x", x}, {"kept", Tensor(DType::f32, {4})}}, CpuBackend(1, reference_kernels()));
    for (int run = 0; run < 3; ++run) {
      executor.bind_state(state);
      executor.bind_batch("x", x.data());
      executor.run();
      for (const char* name : {"y", "z", "flat"})
        for (int64_t i = 0; i < expected.at(name).elements(); ++i)
          EXPECT_NEAR(executor.output(name).data_as<float>()[i], expected.at(name).data_as<float>()[i], 1e-6) << name;
      EXPECT_EQ(state.get("kept").data_as<float>()[0], 4);
    }
  }
}

TEST_F(ExecutorValues, ConstantsAreReadWhereTheyLie) {
  Tensor table(DType::f32, {64, 1024});
  const auto* data = table.data_as<float>();
  Graph graph(registry_, "g");
  graph.add_output("table", ops::constant_tensor(graph, Constant(table), "table"));
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.constant_bytes, 64 * 1024 * 4);
  Executor executor(graph, plan, backend_);
  const_cast<float*>(data)[77] = 5;  // which the executor sees: it made no copy
  executor.run();
  EXPECT_EQ(executor.output("table").data_as<float>()[77], 5);
}

TEST_F(ExecutorValues, ScalarsAreStoredInTheirDtype) {
  const Graph graph = parse_graph(R"(graph "scalars" {
    scalar %rate "rate" : f32[]
    scalar %step "step" : i64[1]
    %number = cast(%step) : f32[1]
    %sum = add(%rate, %number) : f32[1]
    output "sum" %sum
  })",
                                  registry_);
  const Plan plan = make_plan(graph, backend_, 2);
  Executor executor(graph, plan, backend_);
  executor.set_scalar("rate", 0.25);
  executor.set_scalar("step", 40);
  executor.run();
  EXPECT_EQ(executor.scalar_output("sum"), 40.25f);
}

}  // namespace
}  // namespace weft
