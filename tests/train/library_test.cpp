// Ops, models and data that weft does not come with, through whole runs.
#include "weft/train/library.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/files_for_tests.h"
#include "weft/models/builder.h"
#include "weft/ops/define.h"
#include "weft/runtime/cpu_backend.h"
#include "weft/train/checkpoint/store.h"
#include "weft/train/run.h"

namespace weft::train {
namespace {

OpDef sine_op() {
  OpDef op;
  op.name = "sine";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.infer = [](const InferContext& context) { return std::vector<TensorType>{context.inputs[0]}; };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const ValueId ahead = ops::add_scalar(context.graph, context.inputs[0], std::acos(-1.0) / 2);
    return {ops::multiply(context.graph, context.output_gradients[0], context.graph.add("sine", {ahead}))};
  };
  return op;
}

KernelBody prepare_sine(const NodeSignature& node, const KernelOptions&) {
  return [count = node.outputs[0].elements()](const KernelArguments& call) {
    for (int64_t i = 0; i < count; ++i) call.output(0)[i] = std::sin(call.input(0)[i]);
  };
}

models::Model build_wave(const OpRegistry& registry, const models::ModelInput& input,
                         const models::ModelOptions& options, models::Mode mode) {
  const auto width = options.contains("width") ? std::stoll(options.at("width")) : 16;
  models::ModelBuilder m(registry, "wave", input, mode);
  const ValueId hidden = m.linear(m.samples(), "in", {.width = width});
  return m.finish(m.linear(m.graph().add("sine", {hidden}), "out", {.width = input.classes}));
}

/// x in [-3, 3) and sin(2 x).
class Wave : public data::Dataset {
 public:
  explicit Wave(int64_t samples)
      : Dataset({.name = "wave",
                 .sample_shape = {1},
                 .classes = 1,
                 .task = data::Task::regression,
                 .sample_dtype = DType::f32,
                 .target_dtype = DType::f32,
                 .target_shape = {1}}),
        samples_(samples) {}
  int64_t size() const override { return samples_; }
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    data::view_as<float>(sample)[0] = x_of(key.index);
  }
  void get_target(const data::SampleKey& key, std::span<uint8_t> target) const override {
    data::view_as<float>(target)[0] = std::sin(2 * x_of(key.index));
  }

 private:
  float x_of(int64_t index) const { return 6 * static_cast<float>(index) / static_cast<float>(samples_) - 3; }
  int64_t samples_;
};

data::DatasetKind wave_kind() {
  return {.name = "wave",
          .form = "wave:[?samples=N]",
          .summary = "a sine",
          .open = [](const data::DataSpec& spec, data::Split split, const std::string&) {
            const int64_t samples = data::SpecOptions(spec, {"samples"}).integer("samples", 512, 1, 1 << 20);
            return std::make_unique<Wave>(split == data::Split::train ? samples : samples / 4);
          }};
}

class LibraryTest : public FilesTest {
 protected:
  LibraryTest() {
    library_.add_op(sine_op(), prepare_sine);
    library_.add_model({.name = "wave", .summary = "one layer", .options = {"width=16: hidden"}, .build = build_wave});
    library_.add_data(wave_kind());
  }
  RunSpec spec() const {
    RunSpec spec;
    spec.model = {.name = "wave", .options = {{"width", "32"}}};
    spec.data = "wave:?samples=256";
    spec.epochs = 40;
    spec.batch = 32;
    spec.threads = 2;
    spec.optimizer.name = "adam";
    spec.optimizer.learning_rate = 0.02;
    resolve(spec);
    return spec;
  }
  Library library_ = standard_library();
};

TEST_F(LibraryTest, OwnOpModelAndDataLearn) {
  const RunOutcome outcome = start_run(library_, spec(), path("run"), {});
  EXPECT_TRUE(outcome.finished);
  ASSERT_TRUE(outcome.summary.test_r2);
  EXPECT_GT(*outcome.summary.test_r2, 0.99);
}

TEST_F(LibraryTest, ARunOnThemIsResumedToTheSameWeights) {
  start_run(library_, spec(), path("whole"), {});
  int asked = 0;
  const RunOptions stop{.stop_requested = [&] { return ++asked > 100; }};
  EXPECT_FALSE(start_run(library_, spec(), path("cut"), stop).finished);
  EXPECT_TRUE(resume_run(library_, path("cut"), 0, {}).finished);
  const auto weights = [&](const std::string& run) {
    const State state = CheckpointStore(path(run + "/checkpoints"), 2).read_newest([](const std::string&) {})->state;
    std::vector<float> all;
    for (const std::string& name : state.names()) {
      const Tensor tensor = state.plain(name);
      all.insert(all.end(), tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements());
    }
    return all;
  };
  EXPECT_GT(weights("whole").size(), 96u);  // 32 + 32 + 32 + 1 weights and their moments
  EXPECT_EQ(weights("whole"), weights("cut"));
}

TEST_F(LibraryTest, AFasterKernelOfOnesOwnIsChosenFirst) {
  library_.kernels.add_first("sine", {"mine", function_kernel("mine:sine", prepare_sine)});
  const CpuBackend backend(1, library_.kernels);
  Graph graph(library_.ops);
  const ValueId x = graph.add_input(InputKind::batch, "x", ops::f32({4}));
  graph.add_output("y", graph.add("sine", {x}));
  EXPECT_EQ(backend.choose_kernel(signature_of(graph, {0})).kernel, "mine:sine");
}

TEST_F(LibraryTest, NamesAreTakenOnce) {
  expect_error([&] { library_.add_op(sine_op(), prepare_sine); }, ErrorKind::usage, {"op 'sine' already"});
  expect_error([&] { library_.add_model({.name = "resnet50", .summary = "", .build = build_wave}); }, ErrorKind::usage,
               {"model 'resnet50' already"});
  expect_error([&] { library_.add_data(wave_kind()); }, ErrorKind::usage, {"kind of data 'wave' already"});
}

TEST_F(LibraryTest, WhatIsIncompleteIsRefused) {
  OpDef op = sine_op();
  op.name = "cosine";
  expect_error([&] { library_.add_op(op, nullptr); }, ErrorKind::usage, {"'cosine' is not complete", "a kernel"});
  expect_error([&] { library_.add_model({.name = "empty", .summary = "", .build = nullptr}); }, ErrorKind::usage,
               {"'empty'", "a build function"});
  expect_error([&] { library_.add_data({.name = "none", .form = "", .summary = "", .open = nullptr}); },
               ErrorKind::usage, {"'none'", "an open function"});
}

TEST_F(LibraryTest, AnOpWithoutAKernelIsNamed) {
  OpDef op = sine_op();
  op.name = "cosine";
  library_.ops.add(op);
  Graph graph(library_.ops);
  graph.add("cosine", {graph.add_input(InputKind::batch, "x", ops::f32({4}))}, {}, "wave");
  const CpuBackend backend(1, library_.kernels);
  expect_error([&] { backend.choose_kernel(signature_of(graph, {0})); }, ErrorKind::usage,
               {"[cosine] 'wave'", "add one to the kernel table"});
}

TEST_F(LibraryTest, AnUnknownModelIsAnErrorWithTheNearestOfOnesOwn) {
  RunSpec wrong = spec();
  wrong.model.name = "wabe";
  expect_error([&] { start_run(library_, wrong, path("run"), {}); }, ErrorKind::usage, {"'wabe'", "'wave'"});
  wrong = spec();
  wrong.data = "wav:";
  expect_error([&] { start_run(library_, wrong, path("run"), {}); }, ErrorKind::usage, {"unknown data", "'wave'"});
}

}  // namespace
}  // namespace weft::train
