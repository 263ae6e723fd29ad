// Ops measured in steps of a model: of whole layers and of parts that ranks share, alone and beside other ranks.
#include "weft/predict/measure_ops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/graph/collective.h"
#include "weft/graph/signature_key.h"
#include "weft/library/library.h"
#include "weft/program/rank_runtime.h"
#include "weft/spec/run_spec.h"

namespace weft::predict {
namespace {

class MeasureOps : public testing::Test {
 protected:
  program::StepChoice step(int64_t tensor, const std::string& model = "mlp") const {
    spec::RunSpec spec;
    spec.model.name = model;
    spec.batch = 8;
    spec.threads = 1;
    spec.mesh.tensor = tensor;
    spec::resolve(spec);
    models::ModelInput input = models::find_model(library_.models, model).default_input;
    input.batch = spec.batch;
    return {.spec = spec, .input = input};
  }
  MeasuredOps measure(int64_t tensor, int64_t ranks, const std::string& model = "mlp") const {
    MeasuredOps measured = measure_ops(library_, {step(tensor, model)},
                                       {.most_seconds = 60, .fewest_runs = 2, .most_runs = 2, .ranks = ranks});
    EXPECT_EQ(measured.steps.at(0).left_out, "");
    return measured;
  }
  /// Of the largest matrix product of a step.
  static double flops_of_product(const MeasuredOps& measured) {
    double flops = 0;
    for (const auto& [key, time] : measured.times.all())
      if (time.work.op == "matmul") flops = std::max(flops, time.work.flops);
    return flops;
  }
  const Library library_ = standard_library();
};

TEST_F(MeasureOps, PartsOfLayersThatRanksShareAreMeasuredAsSuch) {
  EXPECT_EQ(2 * flops_of_product(measure(2, 1)), flops_of_product(measure(1, 1)));
}

TEST_F(MeasureOps, OtherRanksComputeMeanwhile) {
  const MeasuredOps alone = measure(1, 1), together = measure(1, 3);
  EXPECT_EQ(alone.times.ranks, 1);
  EXPECT_EQ(together.times.ranks, 3);
  EXPECT_EQ(alone.steps[0].companion_runs, 0);
  EXPECT_GT(together.steps[0].companion_runs, 0) << "of either of the two beside it";
}

TEST_F(MeasureOps, ExchangesAreNoOpsOfOneRank) {
  for (const MeasuredOps& measured : {measure(2, 1), measure(1, 2)})
    for (const auto& [key, time] : measured.times.all()) EXPECT_FALSE(time.work.op.starts_with("all_")) << key;
}

/// Nodes that only the step of several ranks has.
TEST_F(MeasureOps, WhatPreparesAnExchangeIsMeasuredWithTheRanksThatExchange) {
  const auto knows_all_nodes = [&](const MeasuredOps& measured) {
    const program::StepChoice choice = step(1, "resnet20");
    const program::RankRuntime runtime(program::ranks_in_memory(2));
    program::PlannedStep planned(library_, choice, runtime, {}, Tuning{}, program::Note{});
    for (const PlannedNode& node : planned.compiled().plan.steps) {
      const Graph& graph = planned.compiled().graph;
      if (graph.node(node.node).op->is_view || is_collective(graph.node(node.node))) continue;
      if (!measured.times.find(signature_key(signature_of(graph, node.node)), node.kernel)) return false;
    }
    return true;
  };
  EXPECT_FALSE(knows_all_nodes(measure(1, 1, "resnet20")));
  EXPECT_TRUE(knows_all_nodes(measure(1, 2, "resnet20")));
}

TEST_F(MeasureOps, AStepThatCannotBePlannedIsLeftOutWithItsReason) {
  program::StepChoice choice = step(1);
  choice.input.shape = {3};
  choice.spec.model.name = "resnet18";
  const MeasuredOps measured = measure_ops(library_, {choice}, {.most_seconds = 60, .ranks = 2});
  EXPECT_NE(measured.steps.at(0).left_out, "");
  EXPECT_TRUE(measured.times.empty());
}

}  // namespace
}  // namespace weft::predict
