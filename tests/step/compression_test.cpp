// Gradients made smaller before ranks, which here are threads, exchange them: which are, that training still learns,
// and that what each rank leaves out survives a checkpoint.
#include "weft/step/compression.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/ranks_rig.h"
#include "weft/graph/accumulation.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/passes/ranks/late_multiply.h"

namespace weft::step {
namespace {

const CompressionCosts kSlow{.ranks = {.count = 4, .latency_seconds = 1e-4, .bytes_per_second = 5e7}};
const CompressionCosts kFast{.ranks = {.count = 2, .latency_seconds = 1e-6, .bytes_per_second = 5e11}};

class ChooseCompression : public testing::Test {
 protected:
  ValueId gradient(const Shape& shape) {
    return graph_.add_input(InputKind::batch, "x" + std::to_string(graph_.inputs().size()), {DType::f32, shape, {}});
  }
  std::string choose(ValueId value, const std::string& method, const CompressionCosts& costs,
                     const std::string& tensors = "paid") const {
    return choose_compression(graph_, value, {.method = method, .tensors = tensors}, costs);
  }

  const OpRegistry registry_ = ops::make_registry();
  Graph graph_{registry_, "g"};
};

TEST_F(ChooseCompression, IsOffUnlessAskedFor) { EXPECT_EQ(choose(gradient({1024, 1024}), "none", kSlow), "none"); }

TEST_F(ChooseCompression, TakesTheMethodWhereItPays) {
  const ValueId large = gradient({1024, 1024});
  for (const char* method : {"bf16", "f16", "powersgd", "top_k", "one_bit"}) {
    EXPECT_EQ(choose(large, method, kSlow), method);
    EXPECT_EQ(choose(large, method, kFast), "none");
    EXPECT_EQ(choose(large, method, kFast, "all"), method);
  }
}

TEST_F(ChooseCompression, LeavesFewElementsAndVectorsThatAreNoMatrices) {
  EXPECT_EQ(choose(gradient({512}), "one_bit", kSlow, "all"), "none");
  EXPECT_EQ(choose(gradient({1 << 20}), "powersgd", kSlow, "all"), "none");
}

TEST_F(ChooseCompression, TakesTheCheapestOfThoseThatCostNoMoreSteps) {
  EXPECT_EQ(choose(gradient({4096, 4096}), "auto", kSlow), "powersgd");
  EXPECT_EQ(choose(gradient({1 << 24}), "auto", kSlow), "bf16") << "not top_k or one_bit, which cost steps";
}

TEST_F(ChooseCompression, LosesNothingWhereALateMultiplyIsAsCheap) {
  const ValueId rows = gradient({8, 1024}), shares = gradient({8, 2048});
  const ValueId weights = ops::matmul(graph_, shares, rows, true, false);
  EXPECT_EQ(choose(weights, "bf16", kSlow), "none");
  EXPECT_EQ(choose(gradient({2048, 1024}), "bf16", kSlow), "bf16");
}

TEST_F(ChooseCompression, LosesNothingWhereTheRowsOfAllBatchesAreAsCheap) {
  const ValueId weights = ops::matmul(graph_, gradient({8, 2048}), gradient({8, 1024}), true, false);
  const ValueId before = gradient({2048, 1024}), number = gradient({});
  const ValueId sum = graph_.add(kAccumulate, {before, weights, number, number, number});
  CompressionCosts costs = kSlow;
  costs.ranks.batches = 2;
  EXPECT_EQ(choose(sum, "bf16", costs), "none");
  costs.ranks.batches = 0;
  EXPECT_EQ(choose(sum, "bf16", costs), "bf16") << "rows do not travel";
}

/// By `auto`: the methods of a step over 1 Gbit/s whose other nodes take so long. One matrix of 4 MB: 33 ms without
/// compression, 17 ms as bf16, 4 ms as a product.
std::set<std::string> methods_beside(double computing_seconds, const Shape& shape = {32, 32768}) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "g");
  const ValueId gradient = graph.add_input(InputKind::batch, "x", {DType::f32, shape, {}});
  std::vector<TrainedParameter> parameters = {{.name = "w", .value = {}, .gradient = gradient}};
  exchange_gradients(graph, parameters, {.method = "auto"},
                     {.ranks = {.count = 2, .latency_seconds = 1e-5, .bytes_per_second = 1.25e8},
                      .computing_seconds = computing_seconds});
  std::set<std::string> methods;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const std::string name = graph.node_name(NodeId{static_cast<int32_t>(index)});
    if (name == "compress/w.bf16") methods.insert("bf16");
    if (name == "compress/w.left") methods.insert("powersgd");
  }
  return methods;
}

TEST(AutomaticCompression, TakesWhatEndsTheRunFirst) {
  EXPECT_EQ(methods_beside(0.01), std::set<std::string>{"powersgd"});
  EXPECT_EQ(methods_beside(0.01, {1 << 20}), std::set<std::string>{"bf16"}) << "no matrix";
  EXPECT_EQ(methods_beside(0.125), std::set<std::string>{"bf16"}) << "powersgd costs more steps than it saves time";
}

TEST(AutomaticCompression, LeavesAStepThatHardlyGainsAsItIs) {
  EXPECT_EQ(methods_beside(1), std::set<std::string>{}) << "4 MB travel while others are computed";
}

class Compressed : public RanksTest, public testing::WithParamInterface<const char*> {
 protected:
  static Library library() { return drawn_library(drawn_images(), 320, 70); }
  static spec::RunSpec spec_of(const std::string& method, double epochs) {
    spec::RunSpec spec = drawn_spec("lenet5", epochs, 64, 0.02);  // 5 steps an epoch
    spec.compression = {.method = method, .tensors = "all", .rank = 2, .share = 0.05};
    spec::resolve(spec);
    return spec;
  }
  std::vector<double> losses(const std::string& run) const { return RanksTest::losses(run, "step"); }
};
INSTANTIATE_TEST_SUITE_P(Methods, Compressed, testing::Values("bf16", "f16", "powersgd", "top_k", "one_bit"),
                         [](const auto& method) { return std::string(method.param); });

double last_of(const std::vector<double>& losses) {
  double sum = 0;
  for (size_t step = losses.size() - 5; step < losses.size(); ++step) sum += losses[step] / 5;
  return sum;
}

TEST_P(Compressed, LearnsAsItDoesWithout) {
  for (const std::string method : {"none", GetParam()}) {
    spec::RunSpec spec = spec_of(method, 16);
    spec.batch = 63;
    train(library(), spec, {"a", "a", "b"}, method);
  }
  const std::vector<double> plain = losses("none"), compressed = losses(GetParam());
  ASSERT_EQ(plain.size(), compressed.size());
  const double learned = plain.front() - last_of(plain);
  EXPECT_GT(learned, 0.2 * plain.front());
  EXPECT_GT(plain.front() - last_of(compressed), 0.8 * learned) << plain.front() << " to " << last_of(compressed);
  EXPECT_NE(plain, compressed);
}

TEST_P(Compressed, GoesOnFromACheckpointToTheLastBit) {
  const Library data = library();
  spec::RunSpec spec = spec_of(GetParam(), 3);
  spec.checkpoint.every_steps = 1;
  const Hosts hosts{"a", "b"};
  train(data, spec, hosts, "whole");
  on_ranks(hosts, [&](const run::RunOptions& given) {
    return run::start_run(data, spec, path("cut"), given.ranks->rank() == 1 ? stopped_after(given, 6) : given);
  });
  ASSERT_FALSE(std::filesystem::exists(path("cut/summary.json")));
  on_ranks(hosts, [&](const run::RunOptions& options) { return run::resume_run(data, path("cut"), 1, options); });
  expect_same_bits("cut", "whole");
}

TEST_P(Compressed, GoesOnAloneAndOnOtherNumbersOfRanks) {
  const Library data = library();
  on_ranks({"a", "b"}, [&](const run::RunOptions& options) {
    return run::start_run(data, spec_of(GetParam(), 3), path("run"), stopped_after(options, 6));
  });
  on_ranks({"a", "a", "b", "b"}, [&](const run::RunOptions& options) {
    return run::resume_run(data, path("run"), 1, stopped_after(options, 3));
  });
  const run::RunOutcome outcome = run::resume_run(data, path("run"), 1, {});
  EXPECT_TRUE(outcome.finished);
  const std::vector<std::string> names = newest("run").state.names();
  EXPECT_TRUE(std::none_of(names.begin(), names.end(), is_compression_error));
}

TEST(Compression, RefusesScaledLosses) {
  spec::RunSpec spec;
  spec.model.name = "mlp";
  spec.compression.method = "one_bit";
  spec.loss_scaling.mode = "dynamic";
  expect_error([&] { spec::resolve(spec); }, ErrorKind::usage,
               {"compression.method = 'one_bit'", "loss_scaling.mode=none"});
}

}  // namespace
}  // namespace weft::step
