// The time of a step from times of nodes that the tests make up.
#include "weft/predict/step_time.h"

#include <gtest/gtest.h>

#include "weft/compile/compile.h"
#include "weft/library/library.h"
#include "weft/predict/prediction.h"
#include "weft/program/planned_step.h"
#include "weft/program/rank_runtime.h"

namespace weft::predict {
namespace {

/// Each node takes a millisecond, and nothing errs.
NodeTimes constant_times(double seconds = 1e-3) {
  return {.of =
              [seconds](const NodeSignature&, const std::string&) {
                return OpEstimate{seconds, 0, CostSource::measured};
              },
          .seconds_per_node = 0,
          .common_spread = 0.1,
          .describe = "a millisecond each"};
}

ExchangeTimes constant_exchange(int ranks, double seconds, bool hides = true) {
  return {.ranks = ranks,
          .ranks_per_host = 1,
          .of = [seconds](std::string_view, int64_t) { return seconds; },
          .hides = hides,
          .spread = 0.2,
          .describe = ""};
}

class StepTimeTest : public testing::Test {
 protected:
  std::unique_ptr<program::PlannedStep> plan(const std::string& model, int ranks = 1, int64_t zero = 0,
                                             int64_t accumulate = 1, const spec::AveragingSpec& averaging = {}) {
    spec::RunSpec spec;
    spec.model.name = model;
    spec.threads = 1;
    spec.batch = 4;
    spec.accumulate = accumulate;
    spec.shard.zero = zero;
    spec.late_multiply = false;
    spec.optimizer.name = "adamw";
    spec.averaging = averaging;
    spec::resolve(spec);
    models::ModelInput input = models::find_model(library_.models, model).default_input;
    input.batch = spec.batch;
    runtimes_.push_back(std::make_unique<program::RankRuntime>(
        passes::Ranks{.count = ranks, .latency_seconds = 1e-4, .bytes_per_second = 1e9}));
    return std::make_unique<program::PlannedStep>(
        library_, program::StepChoice{.spec = spec, .input = input, .batches = accumulate}, *runtimes_.back(),
        program::CostProfile{}, Tuning{}, program::Note{});
  }
  StepTime predict(program::PlannedStep& step, const NodeTimes& nodes, const ExchangeTimes& exchange) {
    return predict_step({.batch = &step.compiled(),
                         .update = step.compiled_update(),
                         .averaging = step.compiled_averaging(),
                         .weight_averaging = step.compiled_weight_averaging(),
                         .batches = step.choice().batches,
                         .averaging_period = step.spec().averaging.period,
                         .states_every = step.spec().averaging.states_every},
                        nodes, exchange);
  }
  const Library library_ = standard_library();
  std::vector<std::unique_ptr<program::RankRuntime>> runtimes_;
};

int64_t nodes_that_run(const CompiledStep& step) {
  int64_t count = 0;
  for (const PlannedNode& node : step.plan.steps) count += step.graph.node(node.node).op->is_view ? 0 : 1;
  return count;
}

/// AdamW has two numbers for each weight: a mean of all states is three times as many bytes as one of the weights.
TEST_F(StepTimeTest, MeansOfTheWeightsAloneSendLess) {
  const auto bytes = [&](int64_t states_every) {
    const auto step = plan("lenet5", 2, 0, 1, {.period = 4, .states_every = states_every});
    const Strategy strategy = strategy_of(step->spec(), 2, 1);
    return traffic_of(predict(*step, constant_times(), constant_exchange(2, 1e-3)).exchanged, strategy).at(0).bytes;
  };
  const double weights = bytes(1) / 3;  // per step, as if each mean were of them alone
  EXPECT_NEAR(bytes(5), weights * (4.0 / 5 + 3.0 / 5), 1e-3 * weights);
}

TEST_F(StepTimeTest, OfOneRankIsTheSumOfItsNodes) {
  const auto step = plan("lenet5");
  const StepTime time = predict(*step, constant_times(), {});
  EXPECT_NEAR(time.whole(), 1e-3 * static_cast<double>(nodes_that_run(step->compiled())), 1e-9);
  for (const Part part : {Part::forward, Part::backward, Part::update}) EXPECT_GT(time.of(part), 0) << name_of(part);
  EXPECT_EQ(time.of(Part::exchange), 0);
  EXPECT_NEAR(time.spread, 0.1, 1e-9) << "nothing but the pace of the machine is unknown";
}

TEST_F(StepTimeTest, AccumulatedBatchesRunTheForwardPartAsOften) {
  const auto once = plan("lenet5"), thrice = plan("lenet5", 1, 0, 3);
  const StepTime one = predict(*once, constant_times(), {}), three = predict(*thrice, constant_times(), {});
  EXPECT_NEAR(three.of(Part::forward), 3 * one.of(Part::forward), 1e-9);
  // A sum per batch, and one update. Some processors keep sums of gradients in another layout than weights.
  constexpr double reorders = 2e-3;  // two nodes
  EXPECT_GE(three.of(Part::update), 4 * one.of(Part::update) - 1e-9);
  EXPECT_LE(three.of(Part::update), 4 * one.of(Part::update) + reorders + 1e-9);
}

TEST_F(StepTimeTest, AFastLinkHidesBehindTheBackwardPart) {
  const auto step = plan("vgg16", 2);
  const StepTime fast = predict(*step, constant_times(), constant_exchange(2, 1e-5));
  EXPECT_GT(fast.hidden_seconds, 0);
  EXPECT_LT(fast.of(Part::exchange), 2e-4) << "at most what begins last";
}

TEST_F(StepTimeTest, ASlowLinkBoundsTheStep) {
  for (const int64_t accumulate : {1, 3}) {
    SCOPED_TRACE(accumulate);
    const auto step = plan("lenet5", 2, 0, accumulate);
    const StepTime slow = predict(*step, constant_times(1e-6), constant_exchange(2, 1.0));
    int64_t starts = 0;
    for (const Span& span : slow.timeline) starts += span.on_link ? 1 : 0;
    ASSERT_GT(starts, 0);
    EXPECT_GT(slow.whole(), 0.99 * static_cast<double>(starts));
    EXPECT_GT(slow.of(Part::exchange), 0.9 * static_cast<double>(starts));
  }
}

TEST_F(StepTimeTest, RanksThatShareMemoryDoTheExchangeThemselves) {
  const auto step = plan("lenet5", 2);
  const StepTime time = predict(*step, constant_times(), constant_exchange(2, 1e-2, /*hides=*/false));
  EXPECT_EQ(time.hidden_seconds, 0);
  EXPECT_GE(time.of(Part::exchange), 1e-2);
}

TEST_F(StepTimeTest, WhatIsSentIsWhatTheLevelsOfSharedStatesSay) {
  // docs/strategy.md: 2 (n-1)/n W of level 0 and 1, 3 (n-1)/n W of level 3, and a little for small tensors.
  const auto sent = [&](int64_t zero) {
    const auto step = plan("transformer_lm", 4, zero);
    const Strategy strategy{.ranks = 4, .ranks_per_host = 1, .zero = zero};
    return traffic_of(predict(*step, constant_times(), constant_exchange(4, 1e-3)).exchanged, strategy).at(0).bytes;
  };
  const auto whole = plan("transformer_lm");
  double weights = 0;
  for (const GraphInput& input : whole->compiled().graph.inputs())
    if (input.kind == InputKind::parameter)
      weights += static_cast<double>(whole->compiled().graph.type(input.value).bytes());
  EXPECT_NEAR(sent(0) / weights, 2 * 0.75, 0.05);
  EXPECT_NEAR(sent(1) / weights, 2 * 0.75, 0.05);
  EXPECT_NEAR(sent(3) / weights, 3 * 0.75, 0.08);
}

TEST_F(StepTimeTest, SpansFollowEachOtherWithoutOverlapOnTheRank) {
  const auto step = plan("lenet5", 2, 0, 1);
  const StepTime time = predict(*step, constant_times(), constant_exchange(2, 5e-3));
  double end = 0;
  for (const Span& span : time.timeline) {
    if (span.on_link) continue;
    EXPECT_GE(span.begin, end - 1e-9) << span.name;
    end = span.begin + span.seconds;
  }
  EXPECT_NEAR(end, time.whole(), 1e-6);
}

}  // namespace
}  // namespace weft::predict
