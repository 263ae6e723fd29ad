#include "weft/engine/engine.h"

#include <gmock/gmock.h>

#include "tests/engine/small_model.h"
#include "tests/support/error_of.h"
#include "weft/base/rng.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/cpu/inference_kernels.h"
#include "weft/deploy/compile_model.h"
#include "weft/engine/stream_pool.h"
#include "weft/graph/constant_node.h"

namespace weft::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using weft::test::error_of;

class EngineTest : public testing::Test {
 protected:
  std::unique_ptr<Device> device(int threads) const {
    return library_.device.make({.threads = threads, .kernels = library_.kernels});
  }
  static std::vector<float> values_of(const Tensor& tensor) {
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements()};
  }
  DeployedModel zoo(const std::string& name, const deploy::CompileModelOptions& options = {}) const {
    return deploy::compile_zoo_model(library_, name, 3, options);
  }
  static Tensor samples(const TensorType& type) {
    Tensor tensor(type);
    RandomStream stream(mix(7, hash_name("samples")));
    for (int64_t index = 0; index < tensor.elements(); ++index)
      tensor.data_as<float>()[index] = static_cast<float>(2 * stream.uniform() - 1);
    return tensor;
  }
  static size_t count(const Graph& graph, const std::string& op) {
    return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                             [&](const Node& node) { return node.op->name == op; }));
  }

  const Library library_ = standard_library();
};

TEST_F(EngineTest, RunsAnyBatchOverTheSameWeights) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model(), library_.ops, *cpu);
  Stream stream(engine);
  const std::vector<float> one = {1, 2}, two = {1, 0, 0, 1};
  stream.set_input(0, one.data());
  stream.run(1);
  EXPECT_THAT(values_of(stream.output(0)), ElementsAre(1, 5, 4));
  stream.set_input(0, two.data());
  stream.run(2);
  EXPECT_THAT(values_of(stream.output(0)), ElementsAre(1, 0, 2, 0, 3, 1));
  stream.set_input(0, one.data());
  stream.run(1);  // after a larger one
  EXPECT_THAT(values_of(stream.output(0)), ElementsAre(1, 5, 4));
  EXPECT_EQ(engine.input_type(0, 5), (TensorType{DType::f32, {5, 2}, {}}));
}

TEST_F(EngineTest, AModelOfFixedBatchesNamesThem) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model({1, 4}), library_.ops, *cpu);
  EXPECT_THAT(engine.batches(), ElementsAre(1, 4));
  EXPECT_THAT(error_of([&] { engine.plan(3); }, ErrorKind::usage), HasSubstr("is for a batch of 1, 4, not of 3"));
}

TEST_F(EngineTest, AnInputThatIsNotSetIsNamed) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model(), library_.ops, *cpu);
  Stream stream(engine);
  EXPECT_THAT(error_of([&] { stream.run(1); }, ErrorKind::usage), HasSubstr("the input 'x' (f32[N,2]) is not set"));
  EXPECT_THAT(error_of([&] { stream.output(0); }, ErrorKind::usage), HasSubstr("run first"));
}

TEST_F(EngineTest, AGraphThatIsNotForInferenceIsRefused) {
  const auto cpu = device(1);
  DeployedModel model = weft::test::small_model();
  model.graphs[0].text.replace(model.graphs[0].text.find("batch"), 5, "state");
  EXPECT_THAT(error_of([&] { Engine(model, library_.ops, *cpu); }, ErrorKind::data),
              HasSubstr("'x' is a state, and inference has none"));
}

TEST_F(EngineTest, AGraphWithOtherTypesThanTheFileSaysIsRefused) {
  const auto cpu = device(1);
  DeployedModel model = weft::test::small_model();
  model.outputs[0].type = "f32[N,4]";
  EXPECT_THAT(error_of([&] { Engine(model, library_.ops, *cpu); }, ErrorKind::data),
              HasSubstr("its inputs or outputs have other types than it says"));
}

TEST_F(EngineTest, AnOutputWithTheNameOfAnInputIsRefused) {
  const auto cpu = device(1);
  DeployedModel model = weft::test::small_model();
  model.outputs[0].name = "x";
  std::string& text = model.graphs[0].text;
  text.replace(text.find("output \"y\""), 10, "output \"x\"");
  EXPECT_THAT(error_of([&] { Engine(model, library_.ops, *cpu); }, ErrorKind::data),
              HasSubstr("two of its inputs and outputs are called 'x'"));
}

TEST_F(EngineTest, AGraphThatReadsNothingIsRefused) {
  const auto cpu = device(1);
  DeployedModel model;
  model.name = "nothing";
  model.outputs = {{"y", "f32[1]"}};
  model.graphs = {
      {1, "graph \"nothing\" {\n  %y = constant() {shape=[1], value=3.0} : f32[1]\n  output \"y\" %y\n}\n"}};
  EXPECT_THAT(error_of([&] { Engine(model, library_.ops, *cpu); }, ErrorKind::data), HasSubstr("reads nothing"));
}

TEST_F(EngineTest, PicturesOfOtherSizesThanTheFirstInputAreRefused) {
  const auto cpu = device(1);
  DeployedModel model = weft::test::small_model();
  model.pictures = PictureInput{.channels = 1, .height = 4, .width = 4, .resize = 0, .mean = {0}, .deviation = {1}};
  EXPECT_THAT(error_of([&] { Engine(model, library_.ops, *cpu); }, ErrorKind::data),
              HasSubstr("its pictures are f32[N,1,4,4], but its first input 'x' is f32[N,2]"));
}

TEST_F(EngineTest, NoBatchNormIsLeftBehindConvolutions) {
  const auto cpu = device(1);
  for (const char* name : {"resnet18", "mobilenet_v2"}) {
    Engine engine(zoo(name), library_.ops, *cpu);
    const Graph& graph = engine.plan(1).graph;
    EXPECT_GT(count(graph, "conv2d") + count(graph, "fused_conv2d"), 10U) << name;
    EXPECT_EQ(count(graph, "batch_norm_inference"), 0U) << name;
  }
}

TEST_F(EngineTest, ResidualsAndActivationsArePartOfConvolutions) {
  const auto cpu = device(1);
  CompileOptions direct;
  direct.grants_workspace = false;  // Winograd's convolutions do without
  for (const char* name : {"resnet18", "mobilenet_v2"}) {
    Engine engine(zoo(name), library_.ops, *cpu, {.compile = direct});
    const Graph& graph = engine.plan(1).graph;
    EXPECT_GT(count(graph, "fused_conv2d"), 10U) << name;
    // The stem's stands behind the pooling.
    EXPECT_LE(count(graph, "relu") + count(graph, "clip"), 1U) << name;
  }
}

TEST_F(EngineTest, AModelOfIntegersRunsKernelsOnIntegers) {
  const OpRegistry ops = ops::make_inference_registry();
  const CpuBackend cpu(1, inference_kernels(ops));
  Engine engine(weft::test::integer_model(), ops, cpu);
  const CompiledStep& step = engine.plan(2);
  std::vector<std::string> kernels;
  for (const PlannedNode& planned : step.plan.steps) {
    const Node& node = step.graph.node(planned.node);
    const bool computes = node.op->name != "constant" && node.op->name != "reorder";
    if (node.op->is_view || is_constant_tensor(node) || !computes) continue;
    kernels.push_back(planned.kernel);
  }
  std::sort(kernels.begin(), kernels.end());
  ASSERT_EQ(kernels.size(), 5U) << testing::PrintToString(kernels);
  EXPECT_EQ(kernels[0], "native:dequantize_linear");
  EXPECT_THAT(kernels[1], HasSubstr("native:integer_convolution"));
  EXPECT_EQ(kernels[2], "native:integer_depthwise");
  EXPECT_EQ(kernels[3], "native:quantize_linear");
  EXPECT_EQ(kernels[4], "native:quantized_add");
}

TEST_F(EngineTest, NothingIsComputedOfConstantsAloneInARun) {
  const auto cpu = device(1);
  for (const DType precision : {DType::f32, DType::bf16}) {
    if (precision != DType::f32 && !cpu->computes_fast(precision)) continue;
    Engine engine(zoo("resnet18"), library_.ops, *cpu, {.precision = precision});
    const Graph& graph = engine.plan(2).graph;
    std::vector<bool> is_constant(graph.values().size(), false);
    for (const Node& node : graph.nodes()) {
      const bool of_constants =
          !node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(),
                                              [&](ValueId v) { return is_constant[static_cast<size_t>(v.index)]; });
      EXPECT_FALSE(of_constants) << node.op->name << " of '" << graph.value(node.outputs[0]).name << "'";
      if (is_constant_tensor(node)) is_constant[static_cast<size_t>(node.outputs[0].index)] = true;
    }
  }
}

TEST_F(EngineTest, ASecondBatchAddsHardlyAnyWeights) {
  const auto cpu = device(1);
  Engine engine(zoo("resnet18"), library_.ops, *cpu);
  engine.plan(2);
  const int64_t one = engine.constant_bytes();
  engine.plan(4);
  EXPECT_LT(engine.constant_bytes(), one + one / 10);
}

TEST_F(EngineTest, FusedConvolutionsComputeWhatSingleOpsCompute) {
  const auto cpu = device(2);
  DeployedModel model = zoo("resnet18");
  CompileOptions plain;
  plain.passes.disabled = {"fuse_conv_epilogue", "fuse_elementwise", "fuse_bias"};
  Engine engine(model, library_.ops, *cpu), unfolded(model, library_.ops, *cpu, {.compile = plain});
  const Tensor images = samples(engine.input_type(0, 2));
  std::vector<std::vector<float>> results;
  for (Engine* each : {&engine, &unfolded}) {
    Stream stream(*each);
    stream.set_input(0, images.data());
    stream.run(2);
    results.push_back(values_of(stream.output(0)));
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t at = 0; at < results[0].size(); ++at) EXPECT_NEAR(results[0][at], results[1][at], 1e-4);
}

TEST_F(EngineTest, StreamsRunAtTheSameTimeAndAgree) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model(), library_.ops, *cpu);
  StreamPool pool(engine, 3);
  std::vector<std::future<Answer>> answers;
  for (int row = 0; row < 50; ++row)
    answers.push_back(pool.submit({Tensor::of({1, 2}, std::vector<float>{1, static_cast<float>(row)})}));
  for (int row = 0; row < 50; ++row) {
    const Answer answer = answers[static_cast<size_t>(row)].get();
    ASSERT_EQ(answer.error, nullptr);
    EXPECT_EQ(values_of(answer.outputs[0])[1], static_cast<float>(std::max(0, 3 * row - 1)));
  }
}

TEST_F(EngineTest, AStreamThatRunsSeveralTimesAnswersOnceWithTheTimeOfEach) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model(), library_.ops, *cpu);
  StreamPool pool(engine, 1);
  const std::vector<Tensor> input{Tensor::of({1, 2}, std::vector<float>{1, 4})};
  const Answer once = pool.submit(input).get(), often = pool.submit(input, 5).get();
  EXPECT_EQ(once.seconds.size(), 1);
  EXPECT_EQ(often.seconds.size(), 5);
  EXPECT_EQ(values_of(often.outputs[0]), values_of(once.outputs[0]));
}

TEST_F(EngineTest, RowsAreCutIntoBatchesAndComeBackInOrder) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model(), library_.ops, *cpu);
  StreamPool pool(engine, 2);
  std::vector<float> rows;
  for (int row = 0; row < 7; ++row) rows.insert(rows.end(), {static_cast<float>(row), 0});
  const std::vector<Tensor> outputs = pool.run_rows({Tensor::of({7, 2}, rows)}, 3);
  ASSERT_EQ(outputs[0].shape(), (Shape{7, 3}));
  for (int row = 0; row < 7; ++row) EXPECT_EQ(outputs[0].data_as<float>()[row * 3], static_cast<float>(row));
}

TEST_F(EngineTest, AnInputOfAnotherTypeIsAnAnswerAndNoEnd) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model(), library_.ops, *cpu);
  StreamPool pool(engine, 1);
  const Answer answer = pool.submit({Tensor(DType::f32, {1, 3})}).get();
  EXPECT_THAT(error_of([&] { answer.check(); }, ErrorKind::shape),
              HasSubstr("the model reads 'x' f32[N,2], not f32[1,3]"));
  EXPECT_EQ(pool.submit({Tensor(DType::f32, {1, 2})}).get().error, nullptr);
}

TEST_F(EngineTest, WhatARunFailsWithKeepsItsKind) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model(), library_.ops, *cpu,
                {.on_plan = [](int64_t, const CompiledStep&) { fail(ErrorKind::io, "no memory"); }});
  StreamPool pool(engine, 1);
  EXPECT_EQ(error_of([&] { pool.run_rows({Tensor(DType::f32, {2, 2})}, 2); }, ErrorKind::io), "no memory");
}

TEST_F(EngineTest, MoreThreadsThanAnyMachineRunsAreRefused) {
  const auto cpu = device(1);
  Engine engine(weft::test::small_model(), library_.ops, *cpu);
  EXPECT_THAT(error_of([&] { StreamPool(engine, StreamPool::kMostThreads + 1, false); }, ErrorKind::usage),
              HasSubstr("streams of 1 thread"));
}

}  // namespace
}  // namespace weft::engine
