#include "weft/report/op_profile.h"

#include <gtest/gtest.h>

#include "weft/ops/all.h"
#include "weft/report/op_class.h"

namespace weft::report {
namespace {

OpProfile node(const std::string& op_class, const std::string& op, double seconds, double floor_seconds,
               double memory_floor_seconds = 0) {
  OpProfile entry;
  entry.name = "node";
  entry.op_class = op_class;
  entry.op = op;
  entry.kernel = "kernel";
  entry.seconds = seconds;
  entry.floor_seconds = floor_seconds;
  entry.memory_floor_seconds = memory_floor_seconds;
  return entry;
}

TEST(OpProfile, AStepThatWasDisturbedDoesNotCount) {
  const Profile median = median_profile({{{1, 20}, 1}, {{90, 2 * 21}, 2}, {{3, 22}, 1}});
  EXPECT_EQ(median.runs, 1);
  EXPECT_EQ(median.seconds, (std::vector<double>{3, 21})) << "45 is a disturbed one";
  EXPECT_TRUE(median_profile({{}, {}}).seconds.empty()) << "no graph for the update";
}

TEST(OpProfile, ClassesStandInTheOrderOfWhatTheyLose) {
  const auto classes = sum_by_class({node("updates", "sgd_update", 3, 1, 1), node("pooling", "max_pool2d", 9, 8.5),
                                     node("updates", "adamw_update", 2, 1, 1)});
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].op_class, "updates");
  EXPECT_EQ(classes[0].calls, 2);
  EXPECT_DOUBLE_EQ(classes[0].seconds_above_floor(), 3);
  EXPECT_DOUBLE_EQ(classes[0].memory_floor_seconds, 2);
  EXPECT_EQ(classes[1].op_class, "pooling");
}

TEST(OpProfile, TheTableOfClassesSaysHowFarEachIsFromItsFloor) {
  const std::string table =
      class_table({node("updates", "sgd_update", 0.75, 0.5, 0.5), node("pooling", "x", 0.25, 0)}).text();
  EXPECT_NE(table.find("75.0 %"), std::string::npos) << table;
  EXPECT_NE(table.find("1.50  memory"), std::string::npos) << table;
  EXPECT_NE(table.find("> 100"), std::string::npos) << "no floor, no ratio" << table;
  EXPECT_NE(table.find("all"), std::string::npos) << table;
  EXPECT_NE(table.find("2.00"), std::string::npos) << "1 s of 0.5 s" << table;
}

TEST(OpClass, TellsTheWaysThroughAConvolutionApart) {
  const OpRegistry registry = ops::make_registry();
  const auto is = [&](const char* op) { return class_of(registry.get(op)); };
  EXPECT_EQ(is("conv2d"), "convolutions, forward");
  EXPECT_EQ(is("conv2d_backward_data"), "convolutions, gradient of the data");
  EXPECT_EQ(is("conv2d_backward_weights"), "convolutions, gradient of the weights");
  EXPECT_EQ(is("batch_norm_backward"), "normalisation");
  EXPECT_EQ(is("squared_norm"), "reductions");
  EXPECT_EQ(is("log_softmax"), "softmax");
  EXPECT_EQ(is("sgd_update"), "updates");
  EXPECT_EQ(is("fused_elementwise"), "elementwise");
  EXPECT_EQ(is("gelu_backward"), "elementwise");
}

}  // namespace
}  // namespace weft::report
