// Ops, models and data that weft does not come with, through whole runs.
#include "weft/library/library.h"

#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"
#include "tests/support/own_library.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/run.h"

namespace weft {
namespace {

class LibraryTest : public FilesTest {
 protected:
  spec::RunSpec spec() const {
    spec::RunSpec spec;
    spec.model = {.name = "wave", .options = {{"width", "32"}}};
    spec.data = "wave:?samples=256";
    spec.epochs = 40;
    spec.batch = 32;
    spec.threads = 2;
    spec.optimizer.name = "adam";
    spec.optimizer.learning_rate = 0.02;
    spec::resolve(spec);
    return spec;
  }
  Library library_ = own_library();
};

TEST_F(LibraryTest, OwnOpModelAndDataLearn) {
  const run::RunOutcome outcome = run::start_run(library_, spec(), path("run"), {});
  EXPECT_TRUE(outcome.finished);
  EXPECT_GT(outcome.summary.test_metric("r2").value_or(0), 0.99);
}

TEST_F(LibraryTest, ARunOnThemIsResumedToTheSameWeights) {
  run::start_run(library_, spec(), path("whole"), {});
  int asked = 0;
  const run::RunOptions stop{.stop_requested = [&] { return ++asked > 100; }};
  EXPECT_FALSE(run::start_run(library_, spec(), path("cut"), stop).finished);
  EXPECT_TRUE(run::resume_run(library_, path("cut"), 0, {}).finished);
  const auto weights = [&](const std::string& run) {
    const State state =
        run::CheckpointStore(path(run + "/checkpoints"), 2).read_newest([](const std::string&) {})->state;
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
  spec::RunSpec wrong = spec();
  wrong.model.name = "wabe";
  expect_error([&] { run::start_run(library_, wrong, path("run"), {}); }, ErrorKind::usage, {"'wabe'", "'wave'"});
  wrong = spec();
  wrong.data = "wav:";
  expect_error([&] { run::start_run(library_, wrong, path("run"), {}); }, ErrorKind::usage, {"unknown data", "'wave'"});
}

}  // namespace
}  // namespace weft
