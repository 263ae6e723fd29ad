// Steps of the ranks of a pipeline that share the states of each stage, which here are threads: those of the same
// ranks that keep them whole.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/error_of.h"
#include "tests/support/pipeline_rig.h"
#include "weft/graph/collective.h"
#include "weft/passes/ranks/pipeline_schedule.h"
#include "weft/step/sharded_states.h"

namespace weft::step {
namespace {

const std::vector<PipelineModel> kStagedModels = {
    {"transformer_lm", {12}, 24, {{"layers", "4"}, {"heads", "2"}, {"width", "32"}}, "adamw"},
    {"resnet18", {3, 16, 16}, 10, {}, "sgd", /*has_statistics=*/true},
    {"tied", {12}, 48, {}, "adamw"},
    {"seq2seq_attention",
     {14},
     24,
     {{"width", "32"}, {"layers", "2"}},
     "adamw",
     false,
     /*source=*/7,
     /*has_ignored=*/true},
};

spec::RunSpec with_zero(spec::RunSpec spec, int64_t zero) {
  spec.shard.zero = zero;
  spec::resolve(spec);
  return spec;
}

/// Losses, and all states that a rank has whole in both.
void expect_same_bits(const std::vector<StepsResult>& shared, const std::vector<StepsResult>& kept) {
  ASSERT_EQ(shared.size(), kept.size());
  for (size_t rank = 0; rank < kept.size(); ++rank) {
    EXPECT_EQ(shared[rank].losses, kept[rank].losses) << rank;
    int compared = 0;
    for (const auto& [name, values] : shared[rank].state) {
      const auto part = shared[rank].parts.find(name);
      if (part != shared[rank].parts.end() && part->second.first.flat) continue;
      EXPECT_EQ(values, kept[rank].state.at(name)) << name << " of rank " << rank;
      ++compared;
    }
    EXPECT_GT(compared, 0);
    EXPECT_LT(shared[rank].state_bytes, kept[rank].state_bytes) << rank;
  }
}

class SharedPipelineSteps : public testing::TestWithParam<PipelineModel> {};
INSTANTIATE_TEST_SUITE_P(Models, SharedPipelineSteps, testing::ValuesIn(kStagedModels),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(SharedPipelineSteps, TwoStagesOfTwoRanksThatShareTheirStatesKeepTheBits) {
  const PipelineRig rig(GetParam(), 4, 2);
  const spec::RunSpec spec = rig.pipelined(2, "1f1b", 2);
  expect_same_bits(rig.on_ranks(with_zero(spec, 1), 3), rig.on_ranks(spec, 3));
}

TEST_P(SharedPipelineSteps, SharedSumsOfMicroBatchesRoundOtherwiseAlone) {
  PipelineRig rig(GetParam(), 4, 2);
  if (GetParam().has_statistics) rig.change = [](spec::RunSpec& spec) { spec.optimizer.learning_rate = 1e-5; };
  const spec::RunSpec spec = rig.pipelined(2, "1f1b", 2);
  const std::vector<StepsResult> kept = rig.on_ranks(spec, 3), shared = rig.on_ranks(with_zero(spec, 2), 3);
  for (size_t rank = 0; rank < kept.size(); ++rank)
    for (size_t step = 0; step < 3; ++step)
      EXPECT_NEAR(shared[rank].losses[step], kept[rank].losses[step], 1e-6 * kept[rank].losses[step]) << rank;
  const std::vector<StepsResult> slots_alone = rig.on_ranks(with_zero(spec, 1), 1);
  for (size_t rank = 0; rank < kept.size(); ++rank)
    EXPECT_LT(shared[rank].state_bytes, slots_alone[rank].state_bytes) << rank;
}

PipelineModel staged_transformer() { return kStagedModels.front(); }

TEST(SharedPipelineStep, TwentyStepsAreThoseOfOneProcess) {
  const PipelineRig rig(staged_transformer(), 4, 2);
  const StepsResult wanted = rig.alone(20);
  for (const int64_t zero : {1, 2}) {
    SCOPED_TRACE(zero);
    expect_same_steps(wanted, rig.on_ranks(with_zero(rig.pipelined(2, "1f1b", 2), zero), 20), 1e-5, 5e-3);
  }
}

TEST(SharedPipelineStep, EverySchedule) {
  const PipelineRig rig(staged_transformer(), 4, 4);
  for (const std::string& schedule : passes::pipeline_schedules()) {
    SCOPED_TRACE(schedule);
    const spec::RunSpec spec = rig.pipelined(2, schedule, 2);
    const std::vector<StepsResult> kept = rig.on_ranks(spec, 3);
    expect_same_bits(rig.on_ranks(with_zero(spec, 1), 3), kept);
    expect_same_steps(rig.alone(3), rig.on_ranks(with_zero(spec, 2), 3), 1e-5, 2e-3);
  }
}

TEST(SharedPipelineStep, PartsOfLayersOfStagesAreSharedToo) {
  const PipelineRig rig(staged_transformer(), 4, 2);
  const spec::RunSpec spec = rig.pipelined(2, "1f1b", 2, 2);
  expect_same_bits(rig.on_ranks(with_zero(spec, 1), 3), rig.on_ranks(spec, 3));
}

TEST(SharedPipelineStep, NormsOverAllStagesAndPartsBoundTheGradients) {
  for (const char* optimizer : {"adamw", "lamb", "lars"}) {
    SCOPED_TRACE(optimizer);
    PipelineModel model = staged_transformer();
    model.optimizer = optimizer;
    PipelineRig rig(model, 4, 2);
    rig.change = [](spec::RunSpec& spec) {
      spec.clip.norm = 0.5;
      spec.ema.decay = 0.9;
      spec.lookahead.steps = 2;
      spec.loss_scaling.mode = "dynamic";
    };
    const StepsResult wanted = rig.alone(3);
    for (const int64_t zero : {1, 2})
      expect_same_steps(wanted, rig.on_ranks(with_zero(rig.pipelined(2, "1f1b", 2), zero), 3), 1e-5, 5e-3);
  }
}

TEST(SharedPipelineStep, ARankKeepsItsPartOfTheStatesOfItsLayers) {
  const PipelineRig rig(staged_transformer(), 4, 2);
  const auto step_of = [&](int64_t zero) {
    return build_training_step(rig.library(), with_zero(rig.pipelined(2, "1f1b", 2), zero), rig.input_of(4),
                               {.ranks = 2, .rank = 1});
  };
  const TrainingStep slots = step_of(1), sums = step_of(2);
  EXPECT_EQ(to_string(slots.shardings.at("optimizer/first_moment/blocks.0.mlp.fc1.weight")),
            "flat(data=2) of (128,32) on ranks 0,1");
  EXPECT_EQ(to_string(slots.shardings.at("blocks.3.mlp.fc1.weight")), "replicated of (128,32) on ranks 2,3");
  EXPECT_EQ(to_string(sums.shardings.at("optimizer/micro_sum/blocks.3.mlp.fc1.weight")),
            "flat(data=2) of (128,32) on ranks 2,3");
  const auto count = [](const TrainingStep& step, const char* op) {
    return std::count_if(step.graph.nodes().begin(), step.graph.nodes().end(),
                         [&](const Node& node) { return node.op->name == op; });
  };
  // Once a step, or in each of two micro-batches.
  EXPECT_GT(count(slots, kReduceScatter), 0);
  EXPECT_EQ(count(sums, kReduceScatter), 2 * count(slots, kReduceScatter));
  EXPECT_EQ(count(sums, kAllGather), count(slots, kAllGather));
}

TEST(SharedPipelineStep, SharedWeightsAreRefused) {
  const PipelineRig rig(staged_transformer(), 4, 2);
  EXPECT_EQ(test::error_of([&] { with_zero(rig.pipelined(2, "1f1b", 2), 3); }, ErrorKind::usage),
            "mesh.pipeline = 2 with shard.zero = 3: each micro-batch would gather the weights of its layers anew; set "
            "shard.zero=2, with which the ranks of a stage share the optimiser's states and the sums of gradients");
}

TEST(SharedPipelineStep, StagesOfOneRankHaveNobodyToShareWith) {
  const PipelineRig rig(staged_transformer(), 4, 2);
  EXPECT_EQ(test::error_of([&] { require_sharers(with_zero(rig.pipelined(2, "1f1b", 1), 1), 2); }, ErrorKind::usage),
            "shard.zero = 1 with mesh.pipeline = 2 on 2 ranks: states are shared along mesh.data, and one rank is left "
            "there; start 4 ranks (`weft launch -n 4 -- ...`), or a multiple of them, or set shard.zero=0");
}

}  // namespace
}  // namespace weft::step
