// Steps of ranks that divide the batch and the experts, which here are threads: what they compute together is what one
// process computes that accumulates as many batches, each of which is routed by itself.
#include "weft/step/experts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/error_of.h"
#include "tests/support/pipeline_rig.h"
#include "weft/graph/collective.h"
#include "weft/step/sharded_states.h"

namespace weft::step {
namespace {

constexpr int64_t kRowsOfRank = 4;

PipelineModel model_of_experts(const std::string& optimizer = "adamw") {
  return {"transformer_lm",
          {12},
          24,
          {{"layers", "2"}, {"heads", "2"}, {"width", "32"}, {"experts", "4"}, {"capacity", "1"}},
          optimizer};
}

using Change = std::function<void(spec::RunSpec&)>;

spec::RunSpec divided(const PipelineRig& rig, int ranks, int64_t zero = 0) {
  spec::RunSpec spec = rig.spec();
  spec.mesh.data = ranks;
  spec.shard.experts = "data";
  spec.shard.zero = zero;
  spec::resolve(spec);
  return spec;
}

/// One process with as many groups of tokens, each of a batch of its own, as ranks have batches.
StepsResult alone(const PipelineModel& model, int ranks, int steps, const Change& change = {}, int64_t batches = 1) {
  PipelineRig rig(model, kRowsOfRank, ranks * batches);
  if (change) rig.change = change;
  return rig.alone(steps);
}
std::vector<StepsResult> on_ranks(const PipelineModel& model, int ranks, int steps, const Change& change = {},
                                  int64_t batches = 1, int64_t zero = 0) {
  PipelineRig rig(model, kRowsOfRank * ranks, batches);
  if (change) rig.change = change;
  return rig.on_ranks(divided(rig, ranks, zero), steps);
}

TEST(ExpertSteps, TwentyStepsAreThoseOfOneProcessWithAsManyGroups) {
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    expect_same_steps(alone(model_of_experts(), ranks, 20), on_ranks(model_of_experts(), ranks, 20), 1e-5, 5e-3);
  }
}

TEST(ExpertSteps, WhereNoTokenIsLeftOutGroupsDoNotMatter) {
  PipelineModel model = model_of_experts();
  model.options["capacity"] = "4";  // as many as there are experts
  model.options["balance"] = "0";
  const PipelineRig whole(model, 4 * kRowsOfRank, 1);
  expect_same_steps(whole.alone(20), on_ranks(model, 4, 20), 1e-5, 5e-3);
}

TEST(ExpertSteps, SeveralBatchesAreSummedBeforeAnUpdate) {
  expect_same_steps(alone(model_of_experts(), 2, 4, {}, 3), on_ranks(model_of_experts(), 2, 4, {}, 3), 1e-5, 2e-3);
}

TEST(ExpertSteps, NormsOverAllExpertsBoundTheGradients) {
  const Change change = [](spec::RunSpec& spec) {
    spec.clip.norm = 0.5;
    spec.ema.decay = 0.9;
    spec.lookahead.steps = 2;
  };
  const StepsResult wanted = alone(model_of_experts(), 2, 4, change);
  EXPECT_EQ(wanted.norms.size(), 4u);
  expect_same_steps(wanted, on_ranks(model_of_experts(), 2, 4, change), 1e-5, 2e-3);
}

TEST(ExpertSteps, OptimisersThatLookAtWholeWeightsDoSo) {
  for (const char* optimizer : {"lars", "lamb", "muon"}) {
    SCOPED_TRACE(optimizer);
    const PipelineModel model = model_of_experts(optimizer);
    expect_same_steps(alone(model, 2, 4), on_ranks(model, 2, 4), 1e-5, 5e-3);
  }
}

TEST(ExpertSteps, AScaledLossSkipsTheSameStepsOnAllRanks) {
  const Change change = [](spec::RunSpec& spec) {
    spec.loss_scaling.mode = "dynamic";
    spec.loss_scaling.scale = 1e38;  // the first steps overflow
  };
  expect_same_steps(alone(model_of_experts(), 2, 6, change), on_ranks(model_of_experts(), 2, 6, change), 1e-5, 2e-3);
}

TEST(ExpertSteps, OtherStatesThatRanksShareKeepTheBits) {
  const std::vector<StepsResult> kept = on_ranks(model_of_experts(), 2, 6);
  for (const int64_t zero : {1, 2, 3}) {
    const std::vector<StepsResult> shared = on_ranks(model_of_experts(), 2, 6, {}, 1, zero);
    EXPECT_EQ(shared[0].losses, kept[0].losses) << zero;
    EXPECT_LT(shared[0].state_bytes, kept[0].state_bytes) << zero;
    for (const char* name : {"blocks.0.mlp.fc1.weight", "optimizer/first_moment/blocks.1.mlp.fc2.weight"})
      EXPECT_EQ(shared[1].state.at(name), kept[1].state.at(name)) << name;
  }
}

TEST(ExpertSteps, CompressionIsOfTheOtherGradients) {
  const Change change = [](spec::RunSpec& spec) {
    spec.compression.method = "bf16";
    spec.compression.tensors = "all";
  };
  expect_same_steps(alone(model_of_experts("sgd"), 2, 4), on_ranks(model_of_experts("sgd"), 2, 4, change), 1e-3, 2e-2);
}

TEST(ExpertSteps, StagesDivideTheirExpertsToo) {
  PipelineModel model = model_of_experts();
  model.options["layers"] = "4";
  const auto change = [](spec::RunSpec& spec) { spec.clip.norm = 0.5; };
  const StepsResult wanted = alone(model, 2, 6, change, 2);
  PipelineRig rig(model, 2 * kRowsOfRank, 2);
  rig.change = change;
  for (const int64_t zero : {0, 1, 2}) {
    SCOPED_TRACE(zero);
    spec::RunSpec spec = rig.pipelined(2, "1f1b", 2);
    spec.shard.experts = "data";
    spec.shard.zero = zero;
    spec::resolve(spec);
    const std::vector<StepsResult> ranks = rig.on_ranks(spec, 6);
    expect_same_steps(wanted, ranks, 1e-5, 2e-3);
    bool has_parts = false;
    for (const auto& [name, part] : ranks[0].parts)
      has_parts = has_parts || to_string(part.first) == "split(data=2,-,-) of (4,128,32)";
    EXPECT_TRUE(has_parts);
  }
}

/// Each expert in two parts, on each of two ranks that have other experts.
spec::RunSpec divided_twice(const PipelineRig& rig, int64_t zero = 0) {
  spec::RunSpec spec = divided(rig, 2, zero);
  spec.mesh.tensor = 2;
  spec::resolve(spec);
  return spec;
}

TEST(ExpertSteps, ExpertsAndWhatEachIsMadeOfAreDivided) {
  const Change change = [](spec::RunSpec& spec) {
    spec.clip.norm = 0.5;
    spec.ema.decay = 0.9;
  };
  for (const int64_t batches : {1, 2}) {
    SCOPED_TRACE(batches);
    const StepsResult wanted = alone(model_of_experts(), 2, 20, change, batches);
    PipelineRig rig(model_of_experts(), 2 * kRowsOfRank, batches);
    rig.change = change;
    for (const int64_t zero : {0, 1, 3}) {
      SCOPED_TRACE(zero);
      const std::vector<StepsResult> ranks = rig.on_ranks(divided_twice(rig, zero), 20);
      expect_same_steps(wanted, ranks, 1e-5, 5e-3);
      for (const char* name : {"blocks.0.mlp.fc1.weight", "optimizer/first_moment/blocks.0.mlp.fc1.weight"})
        EXPECT_EQ(to_string(ranks[0].parts.at(name).first), "split(data=2,tensor=2,-) of (4,128,32)") << name;
      EXPECT_EQ(to_string(ranks[0].parts.at("blocks.1.mlp.fc2.weight").first),
                "split(data=2,-,tensor=2) of (4,32,128)");
    }
  }
}

TEST(ExpertSteps, OptimisersThatLookAtWholeWeightsSeeThoseOfExpertsInParts) {
  for (const char* optimizer : {"lars", "lamb", "muon"}) {
    SCOPED_TRACE(optimizer);
    const PipelineModel model = model_of_experts(optimizer);
    const PipelineRig rig(model, 2 * kRowsOfRank, 1);
    expect_same_steps(alone(model, 2, 4), rig.on_ranks(divided_twice(rig), 4), 1e-5, 5e-3);
  }
}

TEST(ExpertSteps, StagesDivideTheirExpertsAndEachOfThem) {
  PipelineModel model = model_of_experts();
  model.options["layers"] = "4";
  const StepsResult wanted = alone(model, 2, 6, {}, 2);
  const PipelineRig rig(model, 2 * kRowsOfRank, 2);
  spec::RunSpec spec = rig.pipelined(2, "1f1b", 2);
  spec.shard.experts = "data";
  spec.mesh.tensor = 2;
  spec::resolve(spec);
  const std::vector<StepsResult> ranks = rig.on_ranks(spec, 6);
  expect_same_steps(wanted, ranks, 1e-5, 2e-3);
  EXPECT_EQ(to_string(ranks[0].parts.at("blocks.0.mlp.fc1.weight").first), "split(data=2,tensor=2,-) of (4,128,32)");
}

class ExpertStep : public testing::Test {
 protected:
  TrainingStep step(int ranks, const std::string& experts, const PipelineModel& model = model_of_experts()) const {
    const PipelineRig rig(model, kRowsOfRank * ranks, 1);
    spec::RunSpec spec = rig.spec();
    spec.mesh.data = ranks;
    spec.shard.experts = experts;
    spec::resolve(spec);
    return build_training_step(library_, spec, rig.input_of(kRowsOfRank), {.ranks = ranks});
  }
  const Library library_ = standard_library();
};

TEST_F(ExpertStep, ARankHasItsExperts) {
  const TrainingStep whole = step(4, "whole"), parts = step(4, "data");
  EXPECT_EQ(to_string(parts.shardings.at("blocks.1.mlp.fc1.weight")), "split(data=4,-,-) of (4,128,32)");
  EXPECT_EQ(to_string(parts.shardings.at("optimizer/second_moment/blocks.0.mlp.fc2.bias")),
            "split(data=4,-) of (4,32)");
  EXPECT_FALSE(parts.shardings.contains("blocks.0.mlp.router.weight"));
  // Weights and two moments of each of two layers.
  const int64_t of_experts = 2 * 3 * 4 * (4 * (128 * 32 + 128 + 32 * 128 + 32));
  EXPECT_EQ(state_bytes(whole) - state_bytes(parts), of_experts / 4 * 3);
  const State all = initial_state(whole, 7);
  for (int rank = 0; rank < 4; ++rank) {
    const State own = initial_state(parts, 7, rank);
    for (const auto& [name, sharding] : parts.shardings) {
      const Tensor wanted = part_of(all.plain(name), sharding, rank), got = own.plain(name);
      ASSERT_EQ(got.type(), wanted.type()) << name;
      EXPECT_EQ(std::memcmp(got.data(), wanted.data(), static_cast<size_t>(got.bytes())), 0) << name;
    }
  }
}

TEST_F(ExpertStep, TokensTravelForwardAndBackwardAndGradientsOfExpertsDoNot) {
  const TrainingStep parts = step(2, "data");
  int64_t exchanges = 0, reduced = 0;
  for (const Node& node : parts.graph.nodes()) {
    exchanges += node.op->name == kAllToAll ? 1 : 0;
    for (const ValueId input : node.inputs)
      if (is_all_reduce(node)) reduced = std::max(reduced, parts.graph.shape(input).rank() == 3 ? int64_t{1} : 0);
  }
  EXPECT_EQ(exchanges, 2 * 4);  // layers, each there and back, forward and backward
  EXPECT_EQ(reduced, 0) << "a gradient of experts is reduced";
}

TEST_F(ExpertStep, ExpertsThatCannotBeDividedEvenlyAreRefused) {
  EXPECT_EQ(test::error_of([&] { step(3, "data"); }, ErrorKind::usage),
            "shard.experts = 'data': the 4 experts of 'blocks.0.mlp' cannot be divided evenly among 3 ranks; choose a "
            "multiple of 3 experts, another number of ranks, or shard.experts=whole");
}

TEST_F(ExpertStep, AModelWithoutExpertsIsRefused) {
  PipelineModel model = model_of_experts();
  model.options.erase("experts");
  model.options.erase("capacity");
  EXPECT_EQ(test::error_of([&] { step(2, "data", model); }, ErrorKind::usage),
            "shard.experts = 'data': 'transformer_lm' has no layer of experts here; set model.experts (transformer_lm "
            "has it), or shard.experts=whole");
}

TEST_F(ExpertStep, WhatNeedsAllExpertsIsRefused) {
  const auto error_of = [&](const Change& change) {
    spec::RunSpec spec = divided(PipelineRig(model_of_experts(), 4, 1), 2);
    change(spec);
    return test::error_of([&] { spec::resolve(spec); }, ErrorKind::usage);
  };
  EXPECT_EQ(
      error_of([](spec::RunSpec& spec) { spec.virtual_ranks = 2; }),
      "shard.experts = 'data' with virtual_ranks = 2: the result would depend on how many ranks divide the tokens; "
      "leave one of the two away");
  EXPECT_EQ(error_of([](spec::RunSpec& spec) { spec.balance.grains = 2; }),
            "shard.experts = 'data' with balance.grains = 2: ranks would wait for the tokens of others that take more "
            "grains; leave one of the two away");
  EXPECT_EQ(
      error_of([](spec::RunSpec& spec) { spec.averaging.period = 2; }),
      "shard.experts = 'data' with averaging.period = 2: ranks that train on their own need all experts; leave one "
      "of the two away");
}

}  // namespace
}  // namespace weft::step
