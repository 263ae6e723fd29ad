#include "weft/machines/roofline.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/machines/cluster_file.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft::machines {
namespace {

DeviceFile device() {
  DeviceFile device = read_device("v100_sxm2_16gb");
  device.launch_seconds = 4e-6;
  device.efficiency = {{WorkClass::convolution, {0.5, 0}},
                       {WorkClass::matrix_product, {0.5, 1e9}},
                       {WorkClass::attention, {0.5, 0}},
                       {WorkClass::memory, {0.8, 0}}};
  device.peak_flops = {{Arithmetic::f32, 10e12}, {Arithmetic::f16, 100e12}};
  device.bytes_per_second = 1e12;
  return device;
}

TEST(Roofline, TakesTheLargerOfArithmeticAndMemory) {
  EXPECT_DOUBLE_EQ(seconds_of({WorkClass::convolution, 5e12, 1e9, Arithmetic::f32}, device()), 1 + 4e-6);
  EXPECT_DOUBLE_EQ(seconds_of({WorkClass::convolution, 5e9, 8e11, Arithmetic::f32}, device()), 1 + 4e-6);
}

TEST(Roofline, SmallWorkReachesLessOfThePeak) {
  const auto reached = [](double flops) {
    return flops / (seconds_of({WorkClass::matrix_product, flops, 0, Arithmetic::f16}, device()) - 4e-6) / 100e12;
  };
  EXPECT_NEAR(reached(1e9), 0.25, 1e-9);  // half of the best at the half size
  EXPECT_NEAR(reached(1e13), 0.5, 1e-4);
}

TEST(Roofline, CalibrationScalesAllButTheLaunch) {
  const Work work{WorkClass::convolution, 5e12, 0, Arithmetic::f32};
  EXPECT_DOUBLE_EQ(seconds_of(work, device(), {1.5, 1.5}), 1.5 + 4e-6);
}

TEST(Roofline, KnowsClassAndArithmeticOfNodes) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry);
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::bf16, {8, 16, 32, 32}, {}});
  const ValueId w = graph.add_input(InputKind::parameter, "w", {DType::bf16, {32, 16, 3, 3}, {}});
  const ValueId y = ops::conv2d(graph, x, w, {.padding = {1, 1}});
  const Work work = work_of(signature_of(graph, graph.value(y).producer));
  EXPECT_EQ(work.kind, WorkClass::convolution);
  EXPECT_EQ(work.arithmetic, Arithmetic::bf16);
  EXPECT_DOUBLE_EQ(work.flops, 2.0 * 8 * 32 * 32 * 32 * 16 * 9);
  EXPECT_DOUBLE_EQ(work.bytes, 2.0 * (8 * 16 * 32 * 32 + 32 * 16 * 9 + 8 * 32 * 32 * 32));
  const ValueId z = ops::relu(graph, y);
  EXPECT_EQ(work_of(signature_of(graph, graph.value(z).producer)).kind, WorkClass::memory);
}

TEST(Roofline, AnOpThatStatesNoCostIsNamed) {
  OpDef op;
  op.name = "own_op";
  const NodeSignature node{&op, "a node", {{DType::f32, {8}, {}}}, {{DType::f32, {8}, {}}}, {}};
  const std::string message = test::error_of([&] { roofline_costs(device())->seconds(node, 1); }, ErrorKind::usage);
  EXPECT_NE(message.find("[own_op] 'a node': the op does not say what it costs"), std::string::npos) << message;
  op.work = "copies";
  EXPECT_GT(roofline_costs(device())->seconds(node, 1), 0) << "it moves what it reads";
}

TEST(Roofline, ViewsAndCollectivesCostNothing) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry);
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, {8, 16}, {}});
  const ValueId view = ops::reshape(graph, x, {16, 8});
  const ValueId sum = graph.add("all_reduce", {x});
  const auto costs = roofline_costs(device());
  EXPECT_EQ(costs->seconds(signature_of(graph, graph.value(view).producer), 1), 0);
  EXPECT_EQ(costs->seconds(signature_of(graph, graph.value(sum).producer), 1), 0);
}

}  // namespace
}  // namespace weft::machines
