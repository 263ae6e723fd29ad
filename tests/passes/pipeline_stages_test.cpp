// Where a model is cut into stages, and what of its backward part belongs to which.
#include "weft/passes/ranks/pipeline_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/support/error_of.h"
#include "weft/autodiff/autodiff.h"
#include "weft/base/rng.h"
#include "weft/library/library.h"
#include "weft/ops/ops.h"

namespace weft::passes {
namespace {

using Begins = std::vector<size_t>;

TEST(CutByCost, TheLargestPartIsAsSmallAsItCanBe) {
  EXPECT_EQ(cut_by_cost({1, 1, 1, 1}, {0, 1, 1, 1}, 2), (Begins{0, 2}));
  EXPECT_EQ(cut_by_cost({5, 1, 1, 1}, {0, 1, 1, 1}, 2), (Begins{0, 1}));
  EXPECT_EQ(cut_by_cost({1, 1, 1, 6, 1, 2}, {0, 1, 1, 1, 1, 1}, 3), (Begins{0, 3, 4}));
}

TEST(CutByCost, OfCutsThatAreAsGoodTheOneThatFewerBytesCrossIsTaken) {
  EXPECT_EQ(cut_by_cost({1, 0.01, 0.01, 1}, {0, 900, 100, 900}, 2), (Begins{0, 2}));
}

/// The largest part, and the bytes that cross, of pieces cut at `begins`.
std::pair<double, int64_t> costs_of(const std::vector<double>& seconds, const std::vector<int64_t>& crossing,
                                    const Begins& begins) {
  double largest = 0;
  int64_t bytes = 0;
  for (size_t part = 0; part < begins.size(); ++part) {
    const auto from = seconds.begin() + static_cast<std::ptrdiff_t>(begins[part]);
    const auto to =
        part + 1 < begins.size() ? seconds.begin() + static_cast<std::ptrdiff_t>(begins[part + 1]) : seconds.end();
    largest = std::max(largest, std::accumulate(from, to, 0.0));
    if (part > 0) bytes += crossing[begins[part]];
  }
  return {largest, bytes};
}

TEST(CutByCost, NoOtherCutsAreBetter) {
  RandomStream random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> seconds(9);
    std::vector<int64_t> crossing(9);
    for (double& each : seconds) each = random.below(8);  // 0 among them
    for (int64_t& each : crossing) each = random.below(100);
    std::vector<std::pair<double, int64_t>> all;
    for (size_t b = 1; b < 9; ++b)
      for (size_t c = b + 1; c < 9; ++c) all.push_back(costs_of(seconds, crossing, {0, b, c}));
    const double least = std::ranges::min_element(all)->first;
    int64_t bytes = std::numeric_limits<int64_t>::max();
    for (const auto& [largest, crossed] : all)
      if (largest <= 1.05 * least) bytes = std::min(bytes, crossed);
    const auto [largest, crossed] = costs_of(seconds, crossing, cut_by_cost(seconds, crossing, 3));
    EXPECT_LE(largest, 1.05 * least) << trial;
    EXPECT_EQ(crossed, bytes) << trial;
  }
}

TEST(CutByCost, NoPartIsEmpty) {
  EXPECT_EQ(cut_by_cost({1, 0, 0}, {0, 1, 1}, 3), (Begins{0, 1, 2}));
  EXPECT_EQ(test::error_of(
                [] {
                  cut_by_cost({1, 1}, {0, 1}, 3);
                },
                ErrorKind::usage),
            "3 stages want at least as many operations with weights before them, and there are 2");
}

TEST(CutByCost, OfCutsThatAreAsGoodOneIsTakenInWhichEachPartIsWorthSomething) {
  const std::vector<double> seconds{9, 4, 1, 0.1, 0.1};
  const std::vector<int64_t> crossing{0, 9, 9, 1, 2};
  EXPECT_EQ(cut_by_cost(seconds, crossing, 3), (Begins{0, 1, 3}));
  EXPECT_EQ(cut_by_cost(seconds, crossing, 3, {2, 2, 2, 0, 0}), (Begins{0, 1, 2}));
}

TEST(CutByCost, WhereNotAllPartsCanBeWorthSomethingTheLargestPartDecides) {
  EXPECT_EQ(cut_by_cost({1, 1, 1, 1}, {0, 1, 1, 1}, 2, {2, 0, 0, 0}), (Begins{0, 2}));
}

TEST(IdleRanks, ARankHasWorkWhereOneOfItsStagesHas) {
  EXPECT_EQ(idle_ranks({true, false, true, false}, {.ranks = 4}), (std::vector<int>{1, 3}));
  EXPECT_EQ(idle_ranks({true, false, true, false}, {.ranks = 2, .chunks = 2}), (std::vector<int>{1}));
  EXPECT_TRUE(idle_ranks({true, false, true, false}, {.ranks = 2, .chunks = 2, .is_v = true}).empty());
}

/// A chain of fully connected layers, one tied to the first, with gradients.
struct Chain {
  explicit Chain(int layers) : library(standard_library()), graph(library.ops, "chain") {
    const TensorType square{DType::f32, {32, 32}, {}};
    ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, {8, 32}, {}});
    for (int layer = 0; layer < layers; ++layer) {
      const std::string name = fmt::format("weight{}", layer);
      weights.push_back(graph.add_input(InputKind::parameter, name, square));
      x = ops::relu(graph, ops::matmul(graph, x, weights.back(), false, false, fmt::format("product{}", layer)));
    }
    x = ops::matmul(graph, x, weights.front(), false, true, "tied");
    loss = ops::reduce_mean(graph, x, {}, false, "loss");
    graph.add_output("loss", loss);
    gradients = add_gradients(graph, loss, weights, &origins);
  }
  StagedGraph cut(int stages) const { return cut_into_stages(graph, origins, gradients, stages, *rated_costs(), 1); }
  int stage_of(const StagedGraph& staged, ValueId value) const {
    return staged.stage[static_cast<size_t>(graph.value(value).producer.index)];
  }
  PipelineWork work_of(const StagedGraph& staged, ValueId value) const {
    return staged.work[static_cast<size_t>(graph.value(value).producer.index)];
  }

  Library library;
  Graph graph;
  std::vector<ValueId> weights, gradients;
  ValueId loss;
  GradientOrigins origins;
};

TEST(PipelineStages, LayersAreDividedInTheirOrderAndTheLossIsLast) {
  const Chain chain(7);
  const StagedGraph staged = chain.cut(4);
  int last = 0;
  for (int layer = 0; layer < 7; ++layer) {
    const int stage = chain.stage_of(staged, chain.graph.find_value(fmt::format("product{}", layer)));
    EXPECT_GE(stage, last);
    EXPECT_LE(stage, last + 1);
    last = stage;
  }
  EXPECT_EQ(chain.stage_of(staged, chain.loss), 3);
  for (const double seconds : staged.times.forward) EXPECT_GT(seconds, 0);
}

TEST(PipelineStages, AGradientIsMadeWhereItsLayerIs) {
  const Chain chain(7);
  const StagedGraph staged = chain.cut(4);
  for (int layer = 1; layer < 7; ++layer)
    EXPECT_EQ(chain.stage_of(staged, chain.gradients[static_cast<size_t>(layer)]),
              chain.stage_of(staged, chain.graph.find_value(fmt::format("product{}", layer))));
}

TEST(PipelineStages, GradientsOfWeightsAreApartFromThoseOfInputs) {
  const Chain chain(7);
  const StagedGraph staged = chain.cut(4);
  for (int layer = 1; layer < 7; ++layer)
    EXPECT_EQ(chain.work_of(staged, chain.gradients[static_cast<size_t>(layer)]), PipelineWork::backward_weights);
  for (size_t stage = 0; stage < 4; ++stage) {
    EXPECT_GT(staged.times.backward_inputs[stage], 0) << stage;
    EXPECT_GT(staged.times.backward_weights[stage], 0) << stage;
  }
}

TEST(PipelineStages, WhatDependsOnNoWeightIsInNoStage) {
  const Chain chain(3);
  const StagedGraph staged = chain.cut(2);
  for (size_t index = 0; index < chain.graph.nodes().size(); ++index)
    if (chain.graph.nodes()[index].op->name == "constant") {
      EXPECT_EQ(staged.stage[index], kNoStage);
    }
}

TEST(PipelineStages, AStageHasWorkWhereItMultipliesWithWeights) {
  for (const bool has_work : Chain(7).cut(8).has_work) EXPECT_TRUE(has_work);
}

TEST(PipelineStages, OfManyRanksWithoutWorkTheirNumberIsSaid) {
  EXPECT_EQ(describe_idle({}), "");
  EXPECT_EQ(describe_idle({2, 4}), "ranks 2, 4 of the pipeline would have next to nothing to compute");
  EXPECT_EQ(describe_idle({0, 1, 2, 3, 4, 5, 6, 7, 8}),
            "9 ranks of the pipeline would have next to nothing to compute");
}

TEST(PipelineStages, MoreStagesThanLayersAreRefused) {
  EXPECT_NE(test::error_of([] { Chain(1).cut(9); }, ErrorKind::usage).find("9 stages want"), std::string::npos);
}

}  // namespace
}  // namespace weft::passes
