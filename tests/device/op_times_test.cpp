#include "weft/device/op_times.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/device/op_times_file.h"
#include "weft/graph/signature_key.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

MachineRates rates() {
  MachineRates rates;
  rates.f32 = rates.bf16 = {100e9, "chains"};
  rates.memory = {{"memory", INT64_MAX, 10e9}};
  rates.call_seconds = 1e-6;
  return rates;
}

class OpTimesTest : public FilesTest {
 protected:
  NodeSignature product(int64_t rows, int64_t columns = 256) const {
    const OpDef& op = ops_.get("matmul");
    const auto type = [](int64_t a, int64_t b) { return TensorType{DType::f32, Shape({a, b}), {}}; };
    return {.op = &op,
            .name = "product",
            .inputs = {type(rows, 256), type(256, columns)},
            .outputs = {type(rows, columns)},
            .attributes = complete_attributes(op, "product", {})};
  }
  NodeSignature elementwise(const std::string& name, int64_t elements) const {
    const OpDef& op = ops_.get(name);
    const TensorType type{DType::f32, Shape({elements}), {}};
    return {
        .op = &op, .name = name, .inputs = {type}, .outputs = {type}, .attributes = complete_attributes(op, name, {})};
  }
  /// As if the kernel took so many times its roofline.
  void measure(OpTimes& times, const NodeSignature& node, const std::string& kernel, double factor) const {
    const OpWork work = work_of(node, kernel);
    times.add(signature_key(node),
              {.work = work, .seconds = factor * times.roofline(work), .spread = 0.01, .of = "test"});
  }
  const OpRegistry ops_ = ops::make_registry();
};

TEST_F(OpTimesTest, WhatWasMeasuredIsPredictedAsItWas) {
  OpTimes times(rates());
  measure(times, product(512), "fast", 2.5);
  const OpEstimate estimate = times.estimate(product(512), "fast");
  EXPECT_EQ(estimate.source, CostSource::measured);
  EXPECT_DOUBLE_EQ(estimate.seconds, 2.5 * times.roofline(work_of(product(512), "fast")));
  EXPECT_LT(estimate.spread, 0.05);
}

TEST_F(OpTimesTest, OtherShapesFollowTheirNeighbours) {
  OpTimes times(rates());
  // Nearer to the roofline the larger they are, as kernels come.
  for (const int64_t rows : {16, 64, 256, 1024, 4096})
    measure(times, product(rows), "fast", 1 + 64.0 / static_cast<double>(rows));
  for (const int64_t rows : {128, 512, 2048}) {
    const double truth = (1 + 64.0 / static_cast<double>(rows)) * times.roofline(work_of(product(rows), "fast"));
    const OpEstimate estimate = times.estimate(product(rows), "fast");
    EXPECT_EQ(estimate.source, CostSource::profiled);
    EXPECT_NEAR(estimate.seconds / truth, 1, 0.25) << rows;
  }
}

/// Of micro-batches of a pipeline, for example: packing the weights takes as long for two rows as for 256.
TEST_F(OpTimesTest, ABatchBelowAllThatWereMeasuredKeepsWhatEveryCallTakes) {
  OpTimes times(rates());
  const auto truth = [&](int64_t rows) { return 50e-6 + 2 * times.roofline(work_of(product(rows), "fast")); };
  for (const int64_t rows : {64, 128, 256})
    measure(times, product(rows), "fast", truth(rows) / times.roofline(work_of(product(rows), "fast")));
  EXPECT_NEAR(times.estimate(product(16), "fast").seconds / truth(16), 1, 0.01);
  EXPECT_NEAR(times.estimate(product(512), "fast").seconds / truth(512), 1, 0.2) << "above: by its neighbours";
}

TEST_F(OpTimesTest, ABatchBelowAllThatWereMeasuredFollowsTheRooflineWhereTheyDo) {
  OpTimes times(rates());
  for (const int64_t rows : {64, 128, 256}) measure(times, product(rows), "fast", 2);
  EXPECT_NEAR(times.estimate(product(16), "fast").seconds / times.roofline(work_of(product(16), "fast")), 2, 1e-6);
}

TEST_F(OpTimesTest, ABatchBelowAllThatWereMeasuredTakesNoLongerThanTheyDo) {
  OpTimes times(rates());
  measure(times, product(64), "fast", 4);
  measure(times, product(128), "fast", 1);
  const double smallest = 4 * times.roofline(work_of(product(64), "fast"));
  EXPECT_LE(times.estimate(product(16), "fast").seconds, smallest);
}

/// As a kernel that copies element by element: it uses a tenth of a near cache's rate, and all of the memory's.
TEST_F(OpTimesTest, AKernelThatFallsBehindACacheFallsNoFurtherBehindTheMemory) {
  MachineRates with_cache = rates();
  with_cache.memory = {{"L2", 2 << 20, 100e9}, {"memory", INT64_MAX, 10e9}};
  OpTimes times(with_cache);
  for (const int64_t elements : {1 << 12, 1 << 14, 1 << 16}) measure(times, elementwise("relu", elements), "fast", 8);
  const NodeSignature large = elementwise("relu", 1 << 23);
  const double floor = times.roofline(work_of(large, "fast"));
  EXPECT_NEAR(times.estimate(large, "fast").seconds / floor, 1, 0.01);
  EXPECT_NEAR(times.estimate(elementwise("relu", 1 << 15), "fast").seconds /
                  times.roofline(work_of(elementwise("relu", 1 << 15), "fast")),
              8, 0.01)
      << "in the cache";
  for (const int64_t elements : {1 << 22, 1 << 24}) measure(times, elementwise("relu", elements), "fast", 2);
  EXPECT_NEAR(times.estimate(large, "fast").seconds / floor, 2, 0.2) << "by those as large";
}

TEST_F(OpTimesTest, WithoutExactTimesTheShapeItselfSaysNothing) {
  OpTimes times(rates());
  measure(times, product(512), "fast", 9);
  measure(times, product(256), "fast", 2);
  measure(times, product(1024), "fast", 2);
  const OpEstimate estimate = times.estimate(product(512), "fast", /*exact=*/false);
  EXPECT_EQ(estimate.source, CostSource::profiled);
  EXPECT_NEAR(estimate.seconds, 2 * times.roofline(work_of(product(512), "fast")), 1e-9);
}

TEST_F(OpTimesTest, AnotherKernelSaysLessAndTheRatesTheLeast) {
  OpTimes times(rates());
  const OpEstimate rated = times.estimate(product(512), "fast");
  EXPECT_EQ(rated.source, CostSource::rated);
  measure(times, product(512), "slow", 3);
  measure(times, product(1024), "slow", 3);
  const OpEstimate by_other = times.estimate(product(512), "fast");
  EXPECT_EQ(by_other.source, CostSource::profiled);
  EXPECT_LT(by_other.spread, rated.spread);
  EXPECT_GT(by_other.spread, times.estimate(product(768), "slow").spread);
}

TEST_F(OpTimesTest, AnOpOfTheSameClassStandsInForOneThatWasNeverMeasured) {
  OpTimes times(rates());
  for (const int64_t elements : {1 << 12, 1 << 16, 1 << 20}) measure(times, elementwise("relu", elements), "native", 4);
  const NodeSignature other = elementwise("tanh", 1 << 18);
  EXPECT_NEAR(times.estimate(other, "native").seconds, 4 * times.roofline(work_of(other, "native")), 1e-9);
}

TEST_F(OpTimesTest, WhatIsPrintedIsRead) {
  OpTimes times(rates());
  measure(times, product(512), "fast", 2.5);
  measure(times, elementwise("relu", 4096), "native \"x\"", 1.5);
  times.overhead = {2e-7, 3};
  times.ranks = 2;
  times.exchanges.add({"all_gather", 2, 4096}, 3e-6);
  const std::string text = print_op_times(times, "here");
  const OpTimes read = parse_op_times(text, "here");
  EXPECT_EQ(print_op_times(read, "here"), text);
  EXPECT_EQ(read.size(), 2u);
  EXPECT_EQ(read.overhead.steps, 3);
  EXPECT_EQ(read.ranks, 2);
  EXPECT_EQ(read.exchanges.seconds("all_gather", 2, 4096), 3e-6);
  EXPECT_EQ(read.estimate(product(512), "fast").seconds, times.estimate(product(512), "fast").seconds);
}

TEST_F(OpTimesTest, TimesOfAnotherMachineAreRefusedByName) {
  OpTimes times(rates());
  measure(times, product(512), "fast", 2);
  write_atomically(path("ops.jsonl"), print_op_times(times, "a machine with weft 0.0.1"));
  const std::string message = test::error_of([&] { read_op_times(path("ops.jsonl"), "this one"); }, ErrorKind::data);
  for (const char* part : {"ops.jsonl'", "a machine with weft 0.0.1", "this is this one", "weft rates --ops"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " not in: " << message;
}

TEST_F(OpTimesTest, ADamagedFileIsRefused) {
  OpTimes times(rates());
  measure(times, product(512), "fast", 2);
  const std::string text = print_op_times(times, "here");
  EXPECT_NE(test::error_of([&] { parse_op_times(text.substr(0, text.size() - 9), "here"); }).find("damaged"),
            std::string::npos);
}

TEST_F(OpTimesTest, TheFileGathersWhatSeveralProgramsMeasure) {
  const OpTimesFile file(folder_ / "cache", "here");
  OpTimes one(rates()), other(rates());
  measure(one, product(512), "fast", 2);
  measure(other, product(64), "fast", 3);
  one.overhead = {.seconds_per_node = 5e-7, .steps = 2};
  other.overhead = {.seconds_per_node = 3e-5, .steps = 1};  // beside other programs
  one.exchanges.add({"all_gather", 2, 4096}, 3e-6);
  other.exchanges.add({"all_reduce", 2, 4096}, 4e-6);
  file.add(one);
  file.add(other);
  EXPECT_EQ(file.read({}).exchanges.all().size(), 2u);
  EXPECT_EQ(file.read({}).size(), 2u);
  EXPECT_EQ(file.read({}).overhead.seconds_per_node, 5e-7);
  EXPECT_EQ(file.read({}).overhead.steps, 3);
  EXPECT_EQ(OpTimesFile(folder_ / "cache", "there").read({}).size(), 0u);
  EXPECT_EQ(OpTimesFile(folder_ / "cache", "here", 2).read({}).size(), 0u) << "of two ranks at once";
}

}  // namespace
}  // namespace weft
