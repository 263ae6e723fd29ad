// Ranks that share the layers of a model: one step of theirs, node by node, is that of one rank; and what they keep and
// exchange is counted in graphs and plans.
#include "weft/step/tensor_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/lockstep_ranks.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/collective.h"
#include "weft/graph/verify.h"
#include "weft/library/check_op.h"
#include "weft/passes/clean/eliminate_common_subexpressions.h"
#include "weft/step/data_parallel.h"
#include "weft/step/sharded_states.h"

namespace weft::step {
namespace {

struct SplitCase {
  std::string model;
  std::vector<int64_t> input;
  std::string optimizer = "sgd";
  models::ModelOptions options = {};
  int64_t classes = 12;
  int64_t batch = 4;
  std::string suffix = "";
  std::string name() const { return model + suffix; }
};
void PrintTo(const SplitCase& one, std::ostream* stream) { *stream << one.name(); }

spec::RunSpec spec_of_case(const SplitCase& one) {
  spec::RunSpec spec;
  spec.model.name = one.model;
  spec.model.options = one.options;
  spec.optimizer.name = one.optimizer;
  spec.batch = one.batch;
  return spec;
}

TrainingStep step_of_case(const Library& library, spec::RunSpec spec, const SplitCase& one, int ranks,
                          bool sequence = false) {
  spec.mesh.tensor = ranks;
  spec.shard.sequence = sequence;
  spec::resolve(spec);
  const models::ModelInput input{.batch = one.batch, .shape = one.input, .classes = one.classes};
  return build_training_step(library, spec, input, {.tensor_ranks = ranks});
}

const SplitCase kSplitTransformer{
    "transformer_lm", {16}, "sgd", {{"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"dropout", "0.2"}}, 48};

SplitCase transformer_with(const std::string& suffix, int64_t batch, const models::ModelOptions& options = {}) {
  SplitCase one = kSplitTransformer;
  one.batch = batch;
  one.suffix = suffix;
  for (const auto& [name, value] : options) one.options[name] = value;
  return one;
}

class SplitWeights : public testing::TestWithParam<SplitCase> {
 protected:
  /// What a rank reads in one step.
  test::NamedTensors inputs_of(const TrainingStep& step, int rank) const {
    test::NamedTensors inputs;
    const State state = initial_state(step, 7, rank);
    for (const GraphInput& input : step.graph.inputs()) {
      const TensorType& type = step.graph.type(input.value);
      if (state.has(input.name))
        inputs[input.name] = state.plain(input.name);
      else if (input.kind == InputKind::batch)
        inputs[input.name] =
            draw_tensor(type, {0, type.dtype == DType::i32 ? static_cast<double>(GetParam().classes) : 1}, 5);
      else
        inputs[input.name] = scalar(input.name, type.dtype);
    }
    return inputs;
  }
  static Tensor scalar(const std::string& name, DType dtype) {
    Tensor number(dtype, Shape{});
    if (dtype == DType::i64)
      *number.data_as<int64_t>() = name == "seed" ? 11 : 3;
    else
      *number.data_as<float>() = name == kStop ? 0.0f : 0.05f;
    return number;
  }
  static void expect_near(const Tensor& one, const Tensor& other, const std::string& name) {
    ASSERT_EQ(one.type(), other.type()) << name;
    double largest = 1e-3;
    for (int64_t i = 0; i < other.elements(); ++i)
      largest = std::max(largest, std::abs(load_element(other.dtype(), other.data(), i)));
    for (int64_t i = 0; i < one.elements(); ++i)
      ASSERT_NEAR(load_element(one.dtype(), one.data(), i), load_element(other.dtype(), other.data(), i),
                  1e-4 * largest)
          << name << " at " << i;
  }

  void expect_is_step_of_one_rank(int ranks, bool sequence) const {
    SCOPED_TRACE(testing::Message() << ranks << " ranks" << (sequence ? ", by sequence" : ""));
    const TrainingStep alone = step_of_case(library_, spec_of_case(GetParam()), GetParam(), 1);
    const test::NamedTensors whole = evaluate_graph(alone.graph, inputs_of(alone, 0), backend_);
    const TrainingStep step = step_of_case(library_, spec_of_case(GetParam()), GetParam(), ranks, sequence);
    verify(step.graph, "splitting weights");
    std::vector<test::NamedTensors> inputs;
    for (int rank = 0; rank < ranks; ++rank) inputs.push_back(inputs_of(step, rank));
    const std::vector<test::NamedTensors> results = test::evaluate_on_ranks(step.graph, inputs, backend_);
    for (const auto& [name, wanted] : whole) {
      const auto sharding = step.shardings.find(name);
      Tensor got = results[0].at(name);
      if (sharding != step.shardings.end()) {
        got = Tensor(wanted.type());
        for (int rank = 0; rank < ranks; ++rank)
          put_part(got, results[static_cast<size_t>(rank)].at(name), sharding->second, rank);
      }
      expect_near(got, wanted, name);
    }
    for (const auto& [name, own] : results[0]) {
      if (step.shardings.contains(name)) continue;
      for (const test::NamedTensors& other : results)
        EXPECT_EQ(std::memcmp(own.data(), other.at(name).data(), static_cast<size_t>(own.bytes())), 0) << name;
    }
  }

  const Library library_ = standard_library();
  const CpuBackend backend_ = CpuBackend(1);
};

INSTANTIATE_TEST_SUITE_P(
    Models, SplitWeights,
    testing::Values(kSplitTransformer, transformer_with("_of_three", 3),
                    transformer_with("_experts", 4, {{"experts", "4"}}),
                    SplitCase{"vit_tiny",
                              {3, 16, 16},
                              "sgd",
                              {{"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"patch", "4"}, {"dropout", "0.1"}}},
                    SplitCase{"mlp", {1, 16, 16}}, SplitCase{"lenet5", {1, 28, 28}}, SplitCase{"resnet20", {3, 16, 16}},
                    SplitCase{"resnet9", {3, 16, 16}, "sgd", {{"width", "8"}}},
                    SplitCase{"seq2seq_attention", {12}, "sgd", {{"width", "32"}, {"dropout", "0.3"}}, 24},
                    SplitCase{"lstm_classifier", {12}, "sgd", {{"width", "32"}}, 24}),
    [](const auto& tested) { return tested.param.name(); });

TEST_P(SplitWeights, OneStepIsThatOfOneRank) {
  for (const int ranks : {2, 4}) expect_is_step_of_one_rank(ranks, false);
}

TEST_P(SplitWeights, OneStepWhoseSequenceIsSplitTooIsThatOfOneRank) {
  for (const int ranks : {2, 4}) expect_is_step_of_one_rank(ranks, true);
}

TEST_P(SplitWeights, EachRankBeginsWithItsPartOfTheWhole) {
  const TrainingStep step = step_of_case(library_, spec_of_case(GetParam()), GetParam(), 2);
  const State whole = initial_state(step_of_case(library_, spec_of_case(GetParam()), GetParam(), 1), 7);
  EXPECT_FALSE(step.shardings.empty());
  for (int rank = 0; rank < 2; ++rank) {
    const State state = initial_state(step, 7, rank);
    for (const auto& [name, sharding] : step.shardings) {
      const Tensor wanted = part_of(whole.plain(name), sharding, rank), own = state.plain(name);
      ASSERT_EQ(own.type(), wanted.type()) << name;
      EXPECT_EQ(std::memcmp(own.data(), wanted.data(), static_cast<size_t>(own.bytes())), 0) << name;
    }
  }
}

TEST_P(SplitWeights, NoWeightIsGatheredAndSlotsAreSplitAsTheirWeights) {
  const TrainingStep step = step_of_case(library_, spec_of_case(GetParam()), GetParam(), 2);
  for (const Node& node : step.graph.nodes()) {
    if (node.op->name != kAllGather) continue;
    NodeId from = step.graph.value(node.inputs[0]).producer;
    while (from.valid() && step.graph.node(from).op->name == "reshape")
      from = step.graph.value(step.graph.node(from).inputs[0]).producer;
    EXPECT_TRUE(from.valid()) << "a state is gathered: " << step.graph.value(node.outputs[0]).name;
  }
  for (const SlotSpec& slot : step.slots)
    for (const models::ParameterSpec& parameter : step.parameters) {
      if (!slot.name.ends_with("/" + parameter.name)) continue;
      EXPECT_EQ(slot.sharding.has_value(), step.shardings.contains(parameter.name)) << slot.name;
    }
}

int64_t count_exchanges(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->name == op && axis_of_exchange(node) == kTensorAxis; });
}

class TensorParallel : public testing::Test {
 protected:
  TrainingStep step(int ranks, const std::string& shard = "auto", const SplitCase& one = kSplitTransformer) const {
    spec::RunSpec spec = spec_of_case(one);
    spec.shard.tensor = shard;
    return step_of_case(library_, spec, one, ranks);
  }
  TrainingStep step_by_sequence(int ranks, const SplitCase& one = kSplitTransformer) const {
    return step_of_case(library_, spec_of_case(one), one, ranks, true);
  }
  int64_t arena_bytes(const TrainingStep& step) const {
    CompileOptions options;
    options.threads = 1;
    return compile(step.graph, backend_, options).plan.arena_bytes;
  }
  std::string refusal(int ranks, const std::string& shard, const SplitCase& one = kSplitTransformer) const {
    return test::error_of([&] { step(ranks, shard, one); }, ErrorKind::usage);
  }

  const Library library_ = standard_library();
  const CpuBackend backend_ = CpuBackend(1);
};

TEST_F(TensorParallel, ATransformerReducesOncePerPairOfLayersForwardAndOnceBackward) {
  const Graph graph = passes::eliminate_common_subexpressions(step(2).graph);
  // Attention and feed-forward network of each of two blocks, forward and backward; the embedding forward, the head
  // backward, the sums of the loss, and the wish to stop.
  EXPECT_EQ(count_exchanges(graph, kAllReduce), 2 * 2 * 2 + 4);
  EXPECT_EQ(count_exchanges(graph, kAllGather), 1) << "the largest logits";
}

/// As many bytes travel as where norms are whole: a reduce-scatter and an all-gather in the place of an all-reduce.
TEST_F(TensorParallel, NormsAndDropoutAreSplitByTheSequence) {
  const Graph graph = passes::eliminate_common_subexpressions(step_by_sequence(2).graph);
  // Attention and feed-forward network of each of two blocks, forward and backward; the embedding and the head.
  EXPECT_EQ(count_exchanges(graph, kReduceScatter), 2 * 2 * 2 + 2);
  EXPECT_EQ(count_exchanges(graph, kAllGather), 2 * 2 * 2 + 2 + 1) << "and the largest logits";
  for (const Node& node : graph.nodes()) {
    const std::string& op = node.op->name;
    const int64_t elements = graph.type(node.outputs[0]).elements();
    if (op == "layer_norm" || op == "layer_norm_backward" || op == "dropout") {
      EXPECT_EQ(elements, 4 * 16 * 32 / 2) << graph.value(node.outputs[0]).name;
    } else if (op == kAllReduce) {
      EXPECT_LT(elements, 4 * 16 * 32) << "gradients of norms and biases, and sums of losses";
    }
  }
}

/// So that batches of all sizes have the same states.
TEST_F(TensorParallel, TheBatchDoesNotDecideWhichWeightsAreSplit) {
  const Shardings usual = step(2).shardings;
  for (const int64_t batch : {1, 3, 8})
    EXPECT_EQ(step_by_sequence(2, transformer_with("", batch)).shardings, usual) << batch;
}

TEST_F(TensorParallel, AShareOfTheSequenceTakesLessMemory) {
  for (const auto& [ranks, share] : {std::pair(2, 0.92), std::pair(4, 0.82)}) {
    const auto of_sequence = static_cast<double>(arena_bytes(step_by_sequence(ranks)));
    EXPECT_LE(of_sequence, share * static_cast<double>(arena_bytes(step(ranks)))) << ranks;
  }
}

TEST_F(TensorParallel, QueriesKeysAndValuesAreSplitByHeads) {
  const TrainingStep split = step(2);
  EXPECT_EQ(to_string(split.shardings.at("blocks.0.attn.qkv.weight")), "split(tensor=2,-) blocks(3) of (96,32)");
  EXPECT_EQ(to_string(split.shardings.at("blocks.0.attn.qkv.bias")), "split(tensor=2) blocks(3) of (96)");
  EXPECT_EQ(to_string(split.shardings.at("blocks.0.attn.proj.weight")), "split(-,tensor=2) of (32,32)");
  EXPECT_EQ(to_string(split.shardings.at("blocks.1.mlp.fc1.weight")), "split(tensor=2,-) of (128,32)");
  EXPECT_EQ(to_string(split.shardings.at("blocks.1.mlp.fc2.weight")), "split(-,tensor=2) of (32,128)");
  EXPECT_EQ(to_string(split.shardings.at("tok_emb.weight")), "split(tensor=2,-) of (48,32)");
  EXPECT_EQ(to_string(split.shardings.at("head.weight")), "split(tensor=2,-) of (48,32)");
  EXPECT_FALSE(split.shardings.contains("ln_f.weight"));
}

TEST_F(TensorParallel, ARankKeepsItsShareOfStatesAndActivations) {
  const TrainingStep alone = step(1);
  for (const int ranks : {2, 4}) {
    const TrainingStep shared = step(ranks);
    EXPECT_LE(static_cast<double>(state_bytes(shared)), 1.15 * static_cast<double>(state_bytes(alone)) / ranks)
        << ranks;
    EXPECT_LE(static_cast<double>(arena_bytes(shared)), 0.75 * static_cast<double>(arena_bytes(alone))) << ranks;
  }
}

TEST_F(TensorParallel, ExpertsAreDividedAmongTheRanksAndOnlyTheirResultsTravel) {
  SplitCase experts = kSplitTransformer;
  experts.options["experts"] = "4";
  const TrainingStep split = step(2, "auto", experts);
  EXPECT_EQ(to_string(split.shardings.at("blocks.0.mlp.fc1.weight")), "split(tensor=2,-,-) of (4,128,32)");
  EXPECT_EQ(to_string(split.shardings.at("blocks.0.mlp.fc1.bias")), "split(tensor=2,-) of (4,128)");
  EXPECT_EQ(to_string(split.shardings.at("blocks.1.mlp.fc2.weight")), "split(tensor=2,-,-) of (4,32,128)");
  EXPECT_EQ(to_string(split.shardings.at("blocks.1.mlp.fc2.bias")), "split(tensor=2,-) of (4,32)");
  EXPECT_FALSE(split.shardings.contains("blocks.0.mlp.router.weight"));
  // Results forward and gradients of tokens backward of each of two blocks, and the largest logits.
  EXPECT_EQ(count_exchanges(passes::eliminate_common_subexpressions(split.graph), kAllGather), 2 * 2 + 1);
}

TEST_F(TensorParallel, PatternsSayHowWeightsAreSplit) {
  const TrainingStep split = step(2, "*.fc1.weight=outputs, *.fc2.weight=inputs, tok_emb.weight=columns");
  EXPECT_EQ(to_string(split.shardings.at("blocks.0.mlp.fc1.bias")), "split(tensor=2) of (128)") << "follows its layer";
  EXPECT_EQ(to_string(split.shardings.at("tok_emb.weight")), "split(-,tensor=2) of (48,32)");
  EXPECT_FALSE(split.shardings.contains("blocks.0.attn.qkv.weight"));
  const TrainingStep rest = step(2, "head.weight=whole, *=auto");
  EXPECT_FALSE(rest.shardings.contains("head.weight"));
  EXPECT_TRUE(rest.shardings.contains("blocks.0.attn.qkv.weight"));
}

TEST_F(TensorParallel, ALayerWhoseHeadsDoNotDivideStaysWholeOrIsNamed) {
  SplitCase three = kSplitTransformer;
  three.options["heads"] = "2";
  EXPECT_FALSE(step(4, "auto", three).shardings.contains("blocks.0.attn.qkv.weight"));
  EXPECT_EQ(refusal(4, "*.qkv.weight=outputs", three),
            "shard.tensor: the 96 outputs of 'blocks.0.attn.qkv.weight' (96,32), which are 2 heads of 16 cannot be "
            "split evenly among 4 ranks; set blocks.0.attn.qkv.weight=inputs, mesh.tensor to one of 1, 2, or "
            "blocks.0.attn.qkv.weight=whole");
}

TEST_F(TensorParallel, WhatPatternsCannotBeIsSaid) {
  EXPECT_EQ(refusal(2, "*.fc3.weight=outputs").find("shard.tensor: '*.fc3.weight' matches no weight"), 0u);
  EXPECT_EQ(refusal(2, "head.weight=output").find("shard.tensor: 'output' of 'head.weight' is not known"), 0u);
  EXPECT_EQ(refusal(2, "head.weight").find("shard.tensor: 'head.weight' is no WEIGHTS=HOW"), 0u);
  EXPECT_EQ(refusal(2, "ln_f.weight=inputs").find("shard.tensor: 'ln_f.weight' (32) has no inputs"), 0u);
  for (const char* none : {"*=whole", ""})
    EXPECT_EQ(refusal(2, none),
              fmt::format("mesh.tensor = 2: shard.tensor = '{}' leaves every weight of "
                          "'transformer_lm' whole, so that there is nothing to share; set "
                          "shard.tensor=auto, name weights there that are split, or set mesh.tensor=1",
                          none));
}

}  // namespace
}  // namespace weft::step
