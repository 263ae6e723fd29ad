// Steps of the ranks of a pipeline, which here are threads: what they compute together is what one process computes
// that accumulates the same micro-batches.
#include "weft/step/pipeline_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/pipeline_rig.h"
#include "weft/base/isa.h"
#include "weft/compile/compile.h"
#include "weft/graph/collective.h"
#include "weft/graph/verify.h"
#include "weft/step/sharded_states.h"

namespace weft::step {
namespace {

const std::vector<PipelineModel> kModels = {
    {"transformer_lm", {12}, 23, {{"layers", "4"}, {"heads", "2"}, {"width", "32"}, {"dropout", "0.1"}}, "adamw"},
    {"vit_tiny", {3, 16, 16}, 10, {{"layers", "4"}, {"width", "48"}}, "adamw"},
    {"resnet18", {3, 16, 16}, 10, {}, "sgd", /*has_statistics=*/true},
    {"alexnet", {3, 64, 64}, 10, {{"dropout", "0.5"}}, "sgd"},
    {"tied", {12}, 23, {}, "adamw"},
    {"seq2seq_attention",
     {14},
     23,
     {{"width", "32"}, {"layers", "2"}},
     "adamw",
     false,
     /*source=*/7,
     /*has_ignored=*/true},
};

const PipelineModel& model(const std::string& name) {
  return *std::find_if(kModels.begin(), kModels.end(), [&](const PipelineModel& one) { return one.name == name; });
}

class PipelineSteps : public testing::TestWithParam<PipelineModel> {};
INSTANTIATE_TEST_SUITE_P(Models, PipelineSteps, testing::ValuesIn(kModels),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(PipelineSteps, EverySchedule) {
  const PipelineRig rig(GetParam(), 2, 4);
  const StepsResult wanted = rig.alone(3);
  for (const std::string& schedule : passes::pipeline_schedules()) {
    SCOPED_TRACE(schedule);
    expect_same_steps(wanted, rig.on_ranks(rig.pipelined(2, schedule), 3), 1e-5, 2e-3);
  }
}

TEST_P(PipelineSteps, FourRanks) {
  const PipelineRig rig(GetParam(), 2, 4);
  expect_same_steps(rig.alone(3), rig.on_ranks(rig.pipelined(4, "1f1b"), 3), 1e-5, 2e-3);
}

TEST_P(PipelineSteps, TwoByTwoRanks) {
  PipelineRig rig(GetParam(), 4, 2);
  const bool has_statistics = GetParam().has_statistics;
  rig.change = [has_statistics](spec::RunSpec& spec) {
    if (has_statistics) spec.batch_norm = "synchronised";
  };
  // Of batch norm over few numbers two ranks round otherwise than one, in ways that later steps make large.
  spec::RunSpec data_parallel = rig.spec();
  data_parallel.mesh.data = 2;
  const StepsResult wanted = has_statistics ? rig.on_ranks(data_parallel, 3)[0] : rig.alone(3);
  expect_same_steps(wanted, rig.on_ranks(rig.pipelined(2, "1f1b", 2), 3), 1e-5, 2e-3);
}

TEST(PipelineStep, OneMicroBatchAndAnOddNumberOfThem) {
  for (const int64_t micro_batches : {1, 3}) {
    const PipelineRig rig(model("transformer_lm"), 2, micro_batches);
    for (const std::string& schedule : passes::pipeline_schedules())
      expect_same_steps(rig.alone(2), rig.on_ranks(rig.pipelined(2, schedule), 2), 1e-5, 2e-3);
  }
}

TEST(PipelineStep, NormsOverAllStagesBoundTheGradients) {
  PipelineRig rig(model("transformer_lm"), 2, 2);
  rig.change = [](spec::RunSpec& spec) { spec.clip.norm = 0.5; };
  expect_same_steps(rig.alone(3), rig.on_ranks(rig.pipelined(4, "1f1b"), 3), 1e-5, 2e-3);
}

TEST(PipelineStep, LarsLambAveragesAndAScaledLossAreAsInOneProcess) {
  for (const char* optimizer : {"lars", "lamb"}) {
    PipelineModel one = model("resnet18");
    one.optimizer = optimizer;
    PipelineRig rig(one, 2, 2);
    rig.change = [](spec::RunSpec& spec) {
      spec.ema.decay = 0.9;
      spec.lookahead.steps = 2;
      spec.loss_scaling.mode = "dynamic";
    };
    expect_same_steps(rig.alone(3), rig.on_ranks(rig.pipelined(2, "1f1b"), 3), 1e-5, 5e-3);
  }
}

/// The step of each rank, which nobody runs.
/// Of the first rank of each stage.
std::vector<TrainingStep> steps_of(const PipelineRig& rig, const spec::RunSpec& spec) {
  std::vector<TrainingStep> steps;
  const int data = static_cast<int>(spec.mesh.data);
  for (int stage = 0; stage < spec.mesh.pipeline; ++stage)
    steps.push_back(build_training_step(rig.library(), spec, rig.input_of(spec.batch / data),
                                        {.ranks = data, .rank = stage * data}));
  return steps;
}

/// Of what is sent or received: the other rank and the tag.
using Ends = std::multiset<std::pair<int64_t, int64_t>>;

TEST_P(PipelineSteps, WhatOneRankSendsAnotherReceives) {
  const PipelineRig rig(GetParam(), 2, 2);
  for (const std::string& schedule : passes::pipeline_schedules()) {
    const std::vector<TrainingStep> steps = steps_of(rig, rig.pipelined(2, schedule));
    std::map<int64_t, Ends> sent, received;  // by sender
    for (size_t rank = 0; rank < steps.size(); ++rank) {
      verify(steps[rank].graph, "building a pipeline");
      for (const Node& node : steps[rank].graph.nodes()) {
        const bool receives = node.op->name == kReceive || node.op->name == kReceiveStart;
        if (!receives && node.op->name != kSendStart) continue;
        const int64_t peer = node.attributes.integer("peer"), tag = node.attributes.integer("tag");
        if (receives)
          received[peer].insert({static_cast<int64_t>(rank), tag});
        else
          sent[static_cast<int64_t>(rank)].insert({peer, tag});
      }
    }
    EXPECT_EQ(sent, received) << schedule;
    for (const auto& [from, ends] : sent)
      for (const auto& end : ends) EXPECT_EQ(ends.count(end), 1u) << "tag " << end.second;
  }
}

TEST_P(PipelineSteps, EachStateIsOnTheRanksThatReadItAndIsThere) {
  const PipelineRig rig(GetParam(), 2, 2);
  const spec::RunSpec spec = rig.pipelined(2, "1f1b");
  const std::vector<TrainingStep> steps = steps_of(rig, spec);
  const TrainingStep whole = build_training_step(rig.library(), rig.spec(), rig.input_of(2), {});
  int64_t bytes = 0;
  for (size_t rank = 0; rank < 2; ++rank) {
    const State state = initial_state(steps[rank], 7, static_cast<int>(rank));
    const State all = initial_state(whole, 7);
    for (const GraphInput& input : steps[rank].graph.inputs()) {
      if (input.kind != InputKind::parameter && input.kind != InputKind::state) continue;
      ASSERT_TRUE(state.has(input.name)) << input.name;
      if (all.has(input.name)) {
        EXPECT_EQ(std::memcmp(state.plain(input.name).data(), all.plain(input.name).data(),
                              static_cast<size_t>(all.plain(input.name).bytes())),
                  0)
            << input.name;
      }
    }
    EXPECT_LT(state_bytes(steps[rank]), state_bytes(whole)) << rank;
    bytes += state_bytes(steps[rank]);
  }
  EXPECT_GE(bytes, state_bytes(whole) - 4096);
}

int most_alive_of_stage(const CompiledStep& step) {
  int now = 0, most = 0;
  for (const PlannedNode& planned : step.plan.steps) {
    const std::string& op = step.graph.node(planned.node).op->name;
    now += op == kReceiveStart ? 1 : op == kReceiveWait ? -1 : 0;
    most = std::max(most, now);
  }
  return most;
}

CompiledStep compiled(const Graph& graph, int data_ranks = 1) {
  const CpuBackend backend(1);
  CompileOptions options;
  options.threads = 1;
  options.ranks.count = data_ranks;
  return compile(graph, backend, options);
}

TEST(PipelineStep, RoomForWhatComesIsMadeOneSlotBeforeItIsRead) {
  const PipelineRig rig(model("resnet18"), 2, 8);
  for (const TrainingStep& step : steps_of(rig, rig.pipelined(2, "1f1b")))
    EXPECT_LE(most_alive_of_stage(compiled(step.graph)), 4);
}

TEST(PipelineStep, FewerMicroBatchesWaitWithOneForwardOneBackwardThanWithGpipe) {
  const PipelineRig rig(model("resnet18"), 32, 8);
  const std::vector<TrainingStep> gpipe = steps_of(rig, rig.pipelined(2, "gpipe"));
  const std::vector<TrainingStep> alternate = steps_of(rig, rig.pipelined(2, "1f1b"));
  // Without AVX-512 oneDNN unrolls the images of convolutions, which takes a workspace beside the activations.
  const double share = detect_isa() == Isa::avx512 ? 0.6 : 0.7;
  for (size_t rank = 0; rank < 2; ++rank) {
    const int64_t all = compiled(gpipe[rank].graph).plan.arena_bytes;
    EXPECT_LT(compiled(alternate[rank].graph).plan.arena_bytes, share * static_cast<double>(all)) << rank;
  }
}

TEST(PipelineStep, GradientsOfWeightsWaitUntilTheirSlot) {
  const PipelineRig rig(model("transformer_lm"), 2, 8);
  const CompiledStep last = compiled(steps_of(rig, rig.pipelined(4, "zero_bubble"))[3].graph);
  // The last rank has sent the gradients of three micro-batches before it adds up the first one's of its weights.
  int sent = 0, before_first_sum = -1;
  for (const PlannedNode& planned : last.plan.steps) {
    const Node& node = last.graph.node(planned.node);
    if (node.op->name == kSendStart && last.graph.type(node.outputs[0]).elements() > 1) ++sent;
    const bool is_matrix = node.op->name == "blend_update" && last.graph.shape(node.outputs[0]).rank() == 2;
    if (is_matrix && before_first_sum < 0) before_first_sum = sent;
  }
  EXPECT_GE(before_first_sum, 3);
}

/// Lets every rank go through its planned messages as far as it can, where what is sent arrives once there is room for
/// it. Of the ranks of a stage, which do the same and are there when they exchange, one is looked at. Empty where all
/// come to their end, else where they stand.
std::string where_ranks_wait(const std::vector<TrainingStep>& steps, int data_ranks = 1) {
  struct Halves {
    bool sent = false, expected = false;
  };
  std::map<std::pair<int64_t, int64_t>, Halves> messages;  // by receiver and tag
  std::vector<CompiledStep> plans;
  std::vector<size_t> at(steps.size(), 0);
  for (const TrainingStep& step : steps) plans.push_back(compiled(step.graph, data_ranks));
  const auto passes = [&](size_t rank, const Node& node) {
    const std::string& op = node.op->name;
    const bool sends = op == kSendStart || op == kSendWait;
    const int64_t peer = node.attributes.integer("peer"), tag = node.attributes.integer("tag");
    Halves& halves = messages[{sends ? peer : steps[rank].rank, tag}];
    if (op == kSendStart) halves.sent = true;
    if (op == kReceiveStart || op == kReceive) halves.expected = true;
    return op == kSendWait ? halves.expected : op == kReceiveWait || op == kReceive ? halves.sent : true;
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t rank = 0; rank < plans.size(); ++rank)
      while (at[rank] < plans[rank].plan.steps.size()) {
        const Node& node = plans[rank].graph.node(plans[rank].plan.steps[at[rank]].node);
        if (is_message(node) && !passes(rank, node)) break;
        ++at[rank];
        moves = true;
      }
  }
  std::string stands;
  for (size_t rank = 0; rank < plans.size(); ++rank)
    if (at[rank] < plans[rank].plan.steps.size())
      stands +=
          fmt::format("rank {} at {} of {}; ", rank, plans[rank].graph.node_name(plans[rank].plan.steps[at[rank]].node),
                      plans[rank].plan.steps.size());
  return stands;
}

TEST_P(PipelineSteps, NoPlanLetsRanksWaitForEachOther) {
  PipelineRig rig(GetParam(), 2, 4);
  rig.change = [](spec::RunSpec& spec) { spec.clip.norm = 1; };
  for (const std::string& schedule : passes::pipeline_schedules())
    for (const int ranks : {2, 4}) {
      if (ranks == 4 && passes::chunks_of(schedule, 2) > 1) continue;  // of small models
      EXPECT_EQ(where_ranks_wait(steps_of(rig, rig.pipelined(ranks, schedule))), "") << schedule << " " << ranks;
    }
}

/// Whose norms travel between the stages while their states are scattered and gathered.
TEST_P(PipelineSteps, NoPlanOfSharedStatesLetsStagesWaitForEachOther) {
  PipelineRig rig(GetParam(), 4, 4);
  rig.change = [](spec::RunSpec& spec) {
    spec.clip.norm = 1;
    spec.ema.decay = 0.9;
  };
  for (const int64_t zero : {0, 1, 2}) {
    for (const std::string& schedule : passes::pipeline_schedules()) {
      spec::RunSpec spec = rig.pipelined(2, schedule, 2);
      spec.shard.zero = zero;
      spec::resolve(spec);
      EXPECT_EQ(where_ranks_wait(steps_of(rig, spec), 2), "") << schedule << ", zero " << zero;
    }
  }
}

TEST(PipelineStep, PassesKeepTheOrderOfMessages) {
  const PipelineRig rig(model("transformer_lm"), 2, 4);
  spec::RunSpec spec = rig.pipelined(4, "zero_bubble");
  spec.clip.norm = 1;
  for (const TrainingStep& step : steps_of(rig, spec)) {
    const CompiledStep after = compiled(step.graph);
    const auto tags_of = [](const Graph& graph, const std::vector<NodeId>& order) {
      std::vector<std::string> tags;
      for (const NodeId id : order)
        if (const Node& node = graph.node(id); is_message(node))
          tags.push_back(fmt::format("{} {}", node.op->name, node.attributes.integer("tag")));
      return tags;
    };
    std::vector<NodeId> before, planned;
    for (size_t index = 0; index < step.graph.nodes().size(); ++index)
      before.push_back(NodeId{static_cast<int32_t>(index)});
    for (const PlannedNode& one : after.plan.steps) planned.push_back(one.node);
    EXPECT_EQ(tags_of(after.graph, planned), tags_of(step.graph, before));
  }
}

TEST(PipelineStep, TiedWeightsAreOnBothRanksAndTheirGradientsTravelOnceAStep) {
  constexpr int64_t kMicroBatches = 4;
  const PipelineRig rig(model("tied"), 2, kMicroBatches);
  const std::vector<TrainingStep> steps = steps_of(rig, rig.pipelined(4, "1f1b"));
  EXPECT_EQ(steps[0].shardings.at("words.weight").on, (std::vector<int>{0, 3}));
  for (const size_t rank : {size_t{0}, size_t{3}}) {
    const Graph& graph = steps[rank].graph;
    const Shape& shape = graph.shape(graph.find_input("words.weight")->value);
    EXPECT_EQ(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                            [&](const Node& node) {
                              return is_message(node) && is_collective_start(node) &&
                                     graph.shape(node.outputs[0]) == shape;
                            }),
              1)
        << rank;
  }
}

TEST(PipelineStep, WhatCannotBeIsRefusedWithTheNextStep) {
  const PipelineRig rig(model("alexnet"), 2, 4);
  spec::RunSpec spec = rig.pipelined(2, "1f1b");
  spec.pipeline.micro_batches = 3;
  EXPECT_EQ(test::error_of([&] { steps_of(rig, spec); }, ErrorKind::usage),
            "pipeline.micro_batches = 3 do not divide the 8 samples that a rank takes of a batch; choose a batch with "
            "6 or 9 samples for each rank along mesh.data, or another number of micro-batches");
  spec = rig.pipelined(2, "1f1b");
  spec.mesh.pipeline = 200;
  const std::string message = test::error_of([&] { steps_of(rig, spec); }, ErrorKind::usage);
  EXPECT_NE(message.find("200 stages want"), std::string::npos) << message;
  EXPECT_NE(message.find("mesh.pipeline"), std::string::npos) << message;
  spec = rig.pipelined(2, "1f1b");
  EXPECT_EQ(
      test::error_of([&] { require_mesh(spec, 3); }, ErrorKind::usage),
      "mesh.pipeline = 2 with mesh.data = 1, and 3 ranks take part; start 2 ranks (`weft launch -n 2 -- ...`), or "
      "set mesh.pipeline=1");
}

TEST(PipelineStep, OtherRanksAreStartedAsTheCommandSays) {
  spec::RunSpec spec;
  spec.mesh.pipeline = 4;
  EXPECT_EQ(test::error_of([&] { require_mesh(spec, 1, {.command = "weft explain r", .sets_keys = false}); },
                           ErrorKind::usage),
            "mesh.pipeline = 4, and 1 rank takes part; start 4 ranks (`mpirun -n 4 weft explain r`), or a multiple of "
            "them");
  spec.mesh = {.data = 1};
  EXPECT_EQ(test::error_of([&] { require_mesh(spec, 2); }, ErrorKind::usage),
            "mesh.data = 1, and 2 ranks take part; start one process, without a launcher, or set mesh.data=0 for as "
            "many as there are");
}

TEST(PipelineStep, ARankWithNothingToComputeIsRefused) {
  const PipelineRig rig({"mlp", {3, 32, 32}, 10, {}, "sgd"}, 2, 4);
  spec::RunSpec spec = rig.pipelined(2, "1f1b");
  spec.mesh.pipeline = 8;
  EXPECT_EQ(test::error_of([&] { steps_of(rig, spec); }, ErrorKind::usage),
            "[mlp training] cannot be cut for mesh.pipeline = 8: ranks 2, 4, 5, 6, 7 of the pipeline would have "
            "next to nothing to compute; 3 ranks along the pipeline are the most that all have work: set "
            "mesh.pipeline=3");
  spec.mesh.pipeline = 3;
  EXPECT_EQ(steps_of(rig, spec).size(), 3u);
}

TEST(PipelineStep, WhatAPipelineCannotBeCombinedWithIsRefused) {
  const PipelineRig rig(model("alexnet"), 2, 4);
  spec::RunSpec spec = rig.pipelined(2, "1f1b");
  spec.virtual_ranks = 2;
  EXPECT_EQ(test::error_of([&] { spec::resolve(spec); }, ErrorKind::usage),
            "mesh.pipeline = 2 with virtual_ranks = 2: micro-batches take the place of shards; leave one of the two "
            "away");
}

}  // namespace
}  // namespace weft::step
