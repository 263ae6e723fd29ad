// Steps of ranks that divide the layers and share each of them, which here are threads: what they compute together is
// what one process computes that accumulates the same micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/pipeline_rig.h"
#include "weft/graph/collective.h"
#include "weft/passes/ranks/pipeline_schedule.h"
#include "weft/step/sharded_states.h"

namespace weft::step {
namespace {

const std::vector<PipelineModel> kSharedModels = {
    {"transformer_lm", {12}, 24, {{"layers", "4"}, {"heads", "2"}, {"width", "32"}, {"dropout", "0.1"}}, "adamw"},
    {"vit_tiny", {3, 16, 16}, 10, {{"layers", "4"}, {"width", "48"}}, "sgd"},
    {"resnet18", {3, 16, 16}, 10, {}, "sgd", /*has_statistics=*/true},
    {"alexnet", {3, 64, 64}, 10, {{"dropout", "0.5"}}, "sgd"},
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

class HybridSteps : public testing::TestWithParam<PipelineModel> {
 protected:
  /// Of weights. Behind a batch norm of few numbers a rectifier may turn by rounding, which one gradient shows.
  static double largest_difference() { return GetParam().has_statistics ? 3e-2 : 2e-3; }

  /// Batch norm over few numbers turns any rounding into large steps.
  static void slow_down(spec::RunSpec& spec) {
    if (GetParam().has_statistics) spec.optimizer.learning_rate = 1e-5;
  }

  /// `sequence`: those that share the layers also divide norms and dropout between them.
  static void expect_two_shared_stages(bool sequence) {
    PipelineRig rig(GetParam(), 2, 4);
    rig.change = slow_down;
    spec::RunSpec shared = rig.pipelined(2, "1f1b", 1, 2);
    shared.shard.sequence = sequence;
    expect_same_steps(rig.alone(3), rig.on_ranks(shared, 3), 1e-5, largest_difference());
  }

  static void expect_two_by_two_accumulate(bool sequence) {
    PipelineRig rig(GetParam(), 4, 2);
    rig.change = slow_down;
    spec::RunSpec both = rig.spec();
    both.mesh.data = 2;
    if (GetParam().has_statistics) both.batch_norm = "synchronised";
    const spec::RunSpec data_parallel = both;
    both.mesh.tensor = 2;
    both.shard.sequence = sequence;
    const StepsResult wanted = GetParam().has_statistics ? rig.on_ranks(data_parallel, 3)[0] : rig.alone(3);
    expect_same_steps(wanted, rig.on_ranks(both, 3), 1e-5, largest_difference());
  }
};
INSTANTIATE_TEST_SUITE_P(Models, HybridSteps, testing::ValuesIn(kSharedModels),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(HybridSteps, TwoStagesThatTwoRanksShareEach) { expect_two_shared_stages(false); }

TEST_P(HybridSteps, TwoStagesThatTwoRanksShareEachBySequence) { expect_two_shared_stages(true); }

TEST_P(HybridSteps, TwoByTwoByTwoRanks) {
  PipelineRig rig(GetParam(), 4, 2);
  const bool has_statistics = GetParam().has_statistics;
  rig.change = [has_statistics](spec::RunSpec& spec) {
    slow_down(spec);
    if (has_statistics) spec.batch_norm = "synchronised";
  };
  // Of batch norm over few numbers two ranks round otherwise than one, in ways that later steps make large.
  spec::RunSpec data_parallel = rig.spec();
  data_parallel.mesh.data = 2;
  const StepsResult wanted = has_statistics ? rig.on_ranks(data_parallel, 3)[0] : rig.alone(3);
  expect_same_steps(wanted, rig.on_ranks(rig.pipelined(2, "1f1b", 2, 2), 3), 1e-5, largest_difference());
}

TEST_P(HybridSteps, TwoByTwoRanksThatAccumulate) { expect_two_by_two_accumulate(false); }

TEST_P(HybridSteps, TwoByTwoRanksThatAccumulateBySequence) { expect_two_by_two_accumulate(true); }

PipelineModel transformer() { return kSharedModels.front(); }

TEST(HybridStep, EverySchedule) {
  const PipelineRig rig(transformer(), 2, 4);
  const StepsResult wanted = rig.alone(3);
  for (const std::string& schedule : passes::pipeline_schedules()) {
    SCOPED_TRACE(schedule);
    expect_same_steps(wanted, rig.on_ranks(rig.pipelined(2, schedule, 1, 2), 3), 1e-5, 2e-3);
  }
}

TEST(HybridStep, NormsOverAllStagesAndPartsBoundTheGradients) {
  PipelineRig rig(transformer(), 2, 2);
  rig.change = [](spec::RunSpec& spec) {
    spec.clip.norm = 0.5;
    spec.ema.decay = 0.9;
  };
  expect_same_steps(rig.alone(3), rig.on_ranks(rig.pipelined(2, "1f1b", 1, 2), 3), 1e-5, 2e-3);
}

std::vector<TrainingStep> steps_of_all(const PipelineRig& rig, const spec::RunSpec& spec) {
  std::vector<TrainingStep> steps;
  const auto data = static_cast<int>(std::max<int64_t>(spec.mesh.data, 1)), tensor = static_cast<int>(spec.mesh.tensor);
  for (int rank = 0; rank < spec.mesh.pipeline * data * tensor; ++rank)
    steps.push_back(build_training_step(rig.library(), spec, rig.input_of(spec.batch / data),
                                        {.ranks = data, .tensor_ranks = tensor, .rank = rank}));
  return steps;
}

TEST(HybridStep, ARankHasItsPartOfItsLayers) {
  const PipelineRig rig(transformer(), 2, 4);
  const TrainingStep alone = build_training_step(rig.library(), rig.spec(), rig.input_of(2), {});
  const std::vector<TrainingStep> steps = steps_of_all(rig, rig.pipelined(2, "1f1b", 1, 2));
  ASSERT_EQ(steps.size(), 4u);
  for (const TrainingStep& step : steps)
    EXPECT_LE(static_cast<double>(state_bytes(step)), 0.4 * static_cast<double>(state_bytes(alone)));
  EXPECT_EQ(to_string(steps[0].shardings.at("blocks.0.attn.qkv.weight")),
            "split(tensor=2,-) blocks(3) of (96,32) on ranks 0,1");
  EXPECT_EQ(to_string(steps[0].shardings.at("blocks.3.mlp.fc2.weight")), "split(-,tensor=2) of (32,128) on ranks 2,3");
  EXPECT_EQ(to_string(steps[0].shardings.at("ln_f.weight")), "replicated of (32) on ranks 2,3");
}

TEST(HybridStep, RanksOfAStageHaveTheSameGraphAndSendToTheirCounterparts) {
  const PipelineRig rig(transformer(), 4, 4);
  const std::vector<TrainingStep> steps = steps_of_all(rig, rig.pipelined(2, "zero_bubble", 2, 2));
  ASSERT_EQ(steps.size(), 8u);
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    const Graph& graph = steps[rank].graph;
    ASSERT_EQ(graph.nodes().size(), steps[rank / 4 * 4].graph.nodes().size());
    for (const Node& node : graph.nodes())
      if (is_message(node)) {
        EXPECT_EQ(node.attributes.integer("peer"), static_cast<int64_t>((rank + 4) % 8));
      }
  }
}

/// An evaluation by layer: no rank has more than its states, each message has its counterpart, and all ranks go through
/// the weights in one order, without which they would wait for each other for ever.
TEST(HybridStep, EvaluationsByLayerReadTheStatesOfTheRankAlone) {
  const PipelineRig rig(transformer(), 4, 4);
  const spec::RunSpec spec = rig.pipelined(2, "1f1b", 2, 2);
  const std::vector<TrainingStep> steps = steps_of_all(rig, spec);
  const Graph whole = build_evaluation_step(rig.library(), spec, rig.input_of(2));
  std::multiset<std::array<int64_t, 3>> sent, received;  // from, to, tag
  for (int rank = 0; rank < 8; ++rank) {
    const TrainingStep& step = steps[static_cast<size_t>(rank)];
    const Graph graph = gathering_evaluation(whole, step, rank);
    for (const GraphInput& input : graph.inputs()) {
      if (input.kind != InputKind::parameter) continue;
      const auto shared = step.shardings.find(input.name);
      ASSERT_NE(shared, step.shardings.end()) << input.name << ": each stage has some of the weights";
      EXPECT_TRUE(is_held(shared->second, rank)) << input.name;
      EXPECT_EQ(graph.shape(input.value), part_shape(shared->second)) << input.name;
    }
    std::vector<int64_t> tags;
    for (const Node& node : graph.nodes()) {
      if (!is_message(node)) continue;
      const int64_t peer = node.attributes.integer("peer");
      tags.push_back(node.attributes.integer("tag"));
      if (node.op->name == kSend)
        sent.insert({rank, peer, tags.back()});
      else
        received.insert({peer, rank, tags.back()});
    }
    EXPECT_GT(tags.size(), 20u);
    EXPECT_TRUE(std::ranges::is_sorted(tags));
  }
  EXPECT_EQ(sent, received);
}

TEST(HybridStep, AMeshThatIsNotThatOfTheRanksIsRefused) {
  const PipelineRig rig(transformer(), 2, 4);
  spec::RunSpec spec = rig.pipelined(2, "1f1b", 1, 2);
  spec.mesh.data = 0;
  EXPECT_EQ(
      test::error_of([&] { require_mesh(spec, 6); }, ErrorKind::usage),
      "mesh.tensor = 2 times mesh.pipeline = 2 are 4 ranks, and 6 ranks take part; start 4 ranks (`weft launch -n "
      "4 -- ...`), or a multiple of them, or set mesh.tensor=1 or mesh.pipeline=1");
  spec.mesh.data = 2;
  EXPECT_EQ(test::error_of([&] { require_mesh(spec, 4); }, ErrorKind::usage),
            "mesh.tensor = 2 times mesh.pipeline = 2 times mesh.data = 2 are 8 ranks, and 4 ranks take part; start 8 "
            "ranks (`weft launch -n 8 -- ...`), or set mesh.tensor=1 or mesh.pipeline=1");
}

}  // namespace
}  // namespace weft::step
