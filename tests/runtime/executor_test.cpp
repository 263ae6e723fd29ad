#include "weft/runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/runtime/drawn_tensor.h"
#include "weft/base/error.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/plan/make_plan.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

using test::drawn_tensor;
using testing::HasSubstr;

constexpr const char* kStep = R"(graph "step" {
  batch %x "x" : f32[4,8]
  parameter %w "w" : f32[8,8]
  state %v "v" : f32[8,8]
  scalar %learning_rate "learning_rate" : f32[]
  %y = matmul(%x, %w) : f32[4,8]
  %r = relu(%y) : f32[4,8]
  %loss = reduce_mean(%r) : f32[]
  %g = relu_backward(%x, %r) : f32[4,8]
  %dw = matmul(%x, %g) {transpose_a=true} : f32[8,8]
  %next, %next.1 = sgd_update(%w, %dw, %v, %learning_rate) {momentum=0.5} : f32[8,8], f32[8,8]
  output "loss" %loss
  output "gradient" %dw
  update "w" %next
  update "v" %next.1
})";

class ExecutorTest : public testing::Test {
 protected:
  OpRegistry registry_ = ops::make_registry();
  CpuBackend backend_{2};
  Graph graph_ = parse_graph(kStep, registry_);
  Plan plan_ = make_plan(graph_, backend_, 2);
  Tensor x_ = drawn_tensor({4, 8}, 1), w_ = drawn_tensor({8, 8}, 2);
};

TEST_F(ExecutorTest, TwoInOneArenaGiveWhatEachGivesAlone) {
  const auto trained = [&](Arena* arena) {
    Executor one(graph_, plan_, backend_, arena), other(graph_, plan_, backend_, arena);
    State state;
    state.set("w", w_.clone());
    state.set("v", Tensor(DType::f32, {8, 8}));
    for (Executor* executor : {&one, &other, &one}) {
      executor->bind_state(state);
      executor->bind_batch("x", x_.data());
      executor->set_scalar("learning_rate", 0.1);
      executor->run();
    }
    return std::pair{one.output("loss").data_as<float>()[0], state.plain("w")};
  };
  Arena shared, small;
  shared.reserve(plan_.arena_bytes);
  small.reserve(plan_.arena_bytes - 1);  // each takes memory of its own
  const auto [loss, weight] = trained(nullptr);
  for (Arena* arena : {&shared, &small}) {
    const auto [loss_there, weight_there] = trained(arena);
    EXPECT_EQ(loss_there, loss);
    for (int64_t index = 0; index < 64; ++index)
      EXPECT_EQ(weight_there.data_as<float>()[index], weight.data_as<float>()[index]);
  }
}

TEST_F(ExecutorTest, StepsAgreeWithEvaluationNodeByNode) {
  Executor executor(graph_, plan_, backend_);
  State state;
  state.set("w", w_.clone());
  state.set("v", Tensor(DType::f32, {8, 8}));
  executor.bind_state(state);
  executor.bind_batch("x", x_.data());
  executor.set_scalar("learning_rate", 0.1);
  std::map<std::string, Tensor> expected_state = {{"w", w_.clone()}, {"v", Tensor(DType::f32, {8, 8})}};
  const CpuBackend reference(1, reference_kernels());
  for (int step = 0; step < 3; ++step) {
    executor.run();
    auto inputs = expected_state;
    inputs["x"] = x_;
    inputs["learning_rate"] = Tensor::of({}, std::vector<float>{0.1f});
    const auto expected = evaluate_graph(graph_, inputs, reference);
    EXPECT_NEAR(executor.scalar_output("loss"), expected.at("loss").data_as<float>()[0], 1e-6);
    const Tensor gradient = executor.output("gradient");
    for (int64_t index = 0; index < 64; ++index) {
      EXPECT_NEAR(gradient.data_as<float>()[index], expected.at("gradient").data_as<float>()[index], 1e-5);
      EXPECT_NEAR(state.get("w").data_as<float>()[index], expected.at("w").data_as<float>()[index], 1e-5);
    }
    expected_state = {{"w", expected.at("w").clone()}, {"v", expected.at("v").clone()}};
  }
}

TEST_F(ExecutorTest, StateInAnotherLayoutIsConvertedOnceWhenBound) {
  Executor executor(graph_, plan_, backend_);
  State state;
  state.set("w", w_.with_layout(parse_layout("ba", 2)));
  state.set("v", Tensor(DType::f32, {8, 8}));
  executor.bind_state(state);
  EXPECT_TRUE(state.get("w").layout().is_plain());
  EXPECT_EQ(state.get("w").data_as<float>()[1], w_.data_as<float>()[1]);
}

TEST_F(ExecutorTest, MissingStateIsNamed) {
  Executor executor(graph_, plan_, backend_);
  State state;
  state.set("w", w_);
  try {
    executor.bind_state(state);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no state 'v'"));
  }
}

TEST_F(ExecutorTest, StateOfAnotherShapeIsNamed) {
  Executor executor(graph_, plan_, backend_);
  State state;
  state.set("w", Tensor(DType::f32, {8, 9}));
  state.set("v", Tensor(DType::f32, {8, 8}));
  try {
    executor.bind_state(state);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("state 'w' is f32[8,9], the graph wants f32[8,8]"));
  }
}

TEST_F(ExecutorTest, UnknownBatchInputNamesTheNearest) {
  Executor executor(graph_, plan_, backend_);
  try {
    executor.bind_batch("xx", x_.data());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'x'"));
  }
}

TEST_F(ExecutorTest, ProfileCountsEveryStep) {
  Executor executor(graph_, plan_, backend_);
  State state;
  state.set("w", w_.clone());
  state.set("v", Tensor(DType::f32, {8, 8}));
  executor.bind_state(state);
  executor.bind_batch("x", x_.data());
  Profile profile;
  executor.run(&profile);
  executor.run(&profile);
  EXPECT_EQ(profile.runs, 2);
  EXPECT_EQ(profile.seconds.size(), plan_.steps.size());
}

constexpr const char* kStepWithCopies = R"(graph "step" {
  batch %x "x" : f32[4,8]
  parameter %w "w" : f32[8,8]
  state %v "v" : f32[8,8]
  scalar %rate "learning_rate" : f32[]
  %copy = cast(%w) {dtype="bf16", kept=true} : bf16[8,8]@ba
  %rounded = cast(%copy) {dtype="f32"} : f32[8,8]
  %y = matmul(%x, %rounded) : f32[4,8]
  %dw = matmul(%x, %y) {transpose_a=true} : f32[8,8]
  %next, %next.1 = sgd_update(%w, %dw, %v, %rate) {momentum=0.5} : f32[8,8], f32[8,8]
  %anew = renew(%copy, %next) : bf16[8,8]@ba
  output "y" %y
  update "w" %next
  update "v" %next.1
})";

class KeptCopies : public ExecutorTest {
 protected:
  /// The same graph where every step casts.
  static std::string casting() {
    std::string text = kStepWithCopies;
    for (const std::string part : {", kept=true", "  %anew = renew(%copy, %next) : bf16[8,8]@ba\n"})
      text.erase(text.find(part), part.size());
    return text;
  }
  State start() {
    State state;
    state.set("w", w_.clone());
    state.set("v", Tensor(DType::f32, {8, 8}));
    return state;
  }
  void bind(Executor& executor, State& state) {
    executor.bind_state(state);
    executor.bind_batch("x", x_.data());
    executor.set_scalar("learning_rate", 0.1);
  }
  /// The weight after two steps, whatever was done between them.
  std::vector<float> train(const std::string& text, const std::function<void(Executor&, State&)>& between,
                           Arena* arena = nullptr) {
    const Graph graph = parse_graph(text, registry_);
    const Plan plan = make_plan(graph, backend_, 2);
    if (arena != nullptr) arena->reserve(plan.arena_bytes);
    Executor executor(graph, plan, backend_, arena);
    State state = start();
    bind(executor, state);
    executor.run();
    between(executor, state);
    executor.run();
    const Tensor weight = state.plain("w");
    return {weight.data_as<float>(), weight.data_as<float>() + weight.elements()};
  }
};

TEST_F(KeptCopies, AreMadeInTheFirstStepAloneAndRenewedInEach) {
  const Graph graph = parse_graph(kStepWithCopies, registry_);
  const Plan plan = make_plan(graph, backend_, 2);
  Executor executor(graph, plan, backend_);
  State state = start();
  bind(executor, state);
  const auto seconds_of = [&](const std::string& name) {
    Profile profile;
    executor.run(&profile);
    for (size_t index = 0; index < plan.steps.size(); ++index)
      if (graph.node_name(plan.steps[index].node) == name) return profile.seconds[index];
    return -1.0;
  };
  EXPECT_GT(seconds_of("copy"), 0);
  EXPECT_EQ(seconds_of("copy"), 0) << "it did not run";
  EXPECT_GT(seconds_of("anew"), 0);
}

TEST_F(KeptCopies, GiveWhatCastingInEachStepGives) {
  const auto nothing = [](Executor&, State&) {};
  EXPECT_EQ(train(kStepWithCopies, nothing), train(casting(), nothing));
}

TEST_F(KeptCopies, ShowAStateThatWasChangedAndBoundAgain) {
  const auto change = [&](Executor& executor, State& state) {
    state.set("w", drawn_tensor({8, 8}, 7));
    executor.bind_state(state);
  };
  EXPECT_EQ(train(kStepWithCopies, change), train(casting(), change));
}

TEST_F(KeptCopies, AreMadeAgainWhereAnotherExecutorHasUsedTheArena) {
  Arena arena;
  arena.reserve(1 << 16);
  const auto run_another = [&](Executor&, State&) {
    Executor other(graph_, plan_, backend_, &arena);
    State state = start();
    bind(other, state);
    other.run();
  };
  EXPECT_EQ(train(kStepWithCopies, run_another, &arena), train(casting(), [](Executor&, State&) {}));
}

constexpr const char* kTwoLayers = R"(graph "step" {
  batch %x "x" : f32[4,8]
  parameter %w "w" : f32[4,8]
  parameter %u "u" : f32[4,8]
  scalar %rate "rate" : f32[]
  %a = multiply(%x, %w) : f32[4,8]
  %b = multiply(%a, %u) : f32[4,8]
  %loss = reduce_mean(%b) : f32[]
  %du = multiply(%a, %b) : f32[4,8]
  %du.start = all_reduce_start(%du) {number=0, tensors="du", in_place=[0,0]} : f32[4,8]
  %da = multiply(%u, %b) : f32[4,8]
  %dw = multiply(%x, %da) : f32[4,8]
  %dw.start = all_reduce_start(%dw) {number=1, tensors="dw", in_place=[0,0]} : f32[4,8]
  %du.mean = all_reduce_wait(%du.start) {number=0, tensors="du", in_place=[0,0]DEFERRED} : f32[4,8]
  %dw.mean = all_reduce_wait(%dw.start) {number=1, tensors="dw", in_place=[0,0]DEFERRED} : f32[4,8]
  %u2 = blend_update(%u, %du.mean, %rate, %rate) : f32[4,8]
  %w2 = blend_update(%w, %dw.mean, %rate, %rate) : f32[4,8]
  output "loss" %loss
  update "u" %u2
  update "w" %w2
})";

class DeferredSteps : public ExecutorTest {
 protected:
  struct Trained {
    State state;
    std::vector<float> losses;
  };
  /// Four steps, each with another batch and rate; finished after every `finish_every` of them and in the end.
  Trained train(const std::string& deferred, int finish_every) {
    std::string text = kTwoLayers;
    for (size_t at = 0; (at = text.find("DEFERRED")) != std::string::npos;) text.replace(at, 8, deferred);
    const Graph graph = parse_graph(text, registry_);
    const Plan plan = make_plan(graph, backend_, 1);
    EXPECT_EQ(plan.deferred_from < static_cast<int>(plan.steps.size()), !deferred.empty());
    Executor executor(graph, plan, backend_);
    Trained trained;
    trained.state.set("w", drawn_tensor({4, 8}, 3));
    trained.state.set("u", drawn_tensor({4, 8}, 4));
    executor.bind_state(trained.state);
    std::vector<Tensor> batches;
    for (int step = 0; step < 4; ++step) {
      batches.push_back(drawn_tensor({4, 8}, static_cast<uint64_t>(10 + step)));
      executor.bind_batch("x", batches.back().data());
      executor.set_scalar("rate", 0.1 * (step + 1));
      executor.run();
      trained.losses.push_back(executor.scalar_output("loss"));
      if ((step + 1) % finish_every == 0) executor.finish();
    }
    executor.finish();
    return trained;
  }
  void expect_same(const Trained& a, const Trained& b) {
    EXPECT_EQ(a.losses, b.losses);
    for (const char* name : {"w", "u"}) {
      const Tensor &one = a.state.get(name), &other = b.state.get(name);
      for (int64_t i = 0; i < one.elements(); ++i)
        ASSERT_EQ(one.data_as<float>()[i], other.data_as<float>()[i]) << name << " " << i;
    }
  }
};

TEST_F(DeferredSteps, GiveWhatStepsGiveThatFinishAtOnce) { expect_same(train(", deferred=true", 100), train("", 1)); }

TEST_F(DeferredSteps, MayBeFinishedAtAnyTime) {
  expect_same(train(", deferred=true", 2), train("", 1));
  expect_same(train(", deferred=true", 1), train("", 1));
}

constexpr const char* kSums = R"(graph "step" {
  batch %x "x" : f32[4,8]
  parameter %w "w" : f32[4,8]
  state %sum "sum" : f32[4,8]
  scalar %rate "rate" : f32[]
  scalar %keep "keep" : f32[]
  scalar %take "take" : f32[]
  scalar %complete "complete" : f32[]
  %a = multiply(%x, %w) : f32[4,8]
  %loss = reduce_mean(%a) : f32[]
  %dw = multiply(%a, %x) : f32[4,8]
  %sum2 = accumulate_update(%sum, %dw, %keep, %take, %complete) : f32[4,8]
  %start = all_reduce_start(%sum2) {number=0, tensors="sum"} : f32[4,8]
  %mean = all_reduce_wait(%start) {number=0, tensors="sum", in_place=[0,0]DEFERRED} : f32[4,8]
  %w2 = blend_update(%w, %mean, %rate, %rate) : f32[4,8]
  output "loss" %loss
  update "sum" %sum2
  update "w" %w2
})";

/// Steps of three runs each.
class SumsOverRuns : public ExecutorTest {
 protected:
  struct Trained {
    std::vector<float> losses;
    std::vector<std::vector<float>> weights, sums;  // after each run
  };
  static std::vector<float> numbers(const State& state, const char* name) {
    const Tensor& tensor = state.get(name);
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements()};
  }
  static float rate_of(int run) { return 0.25f * static_cast<float>(run + 1); }
  Trained train(const std::string& deferred, bool finishes) {
    std::string text = kSums;
    text.replace(text.find("DEFERRED"), 8, deferred);
    const Graph graph = parse_graph(text, registry_);
    const Plan plan = make_plan(graph, backend_, 1);
    EXPECT_EQ(plan.deferred_from < static_cast<int>(plan.steps.size()), !deferred.empty());
    Executor executor(graph, plan, backend_);
    State state;
    state.set("w", drawn_tensor({4, 8}, 3));
    state.set("sum", drawn_tensor({4, 8}, 4));
    executor.bind_state(state);
    Trained trained;
    std::vector<Tensor> batches;
    for (int run = 0; run < 9; ++run) {
      batches.push_back(drawn_tensor({4, 8}, static_cast<uint64_t>(10 + run)));
      executor.bind_batch("x", batches.back().data());
      executor.set_scalar("rate", static_cast<double>(rate_of(run)));
      executor.set_scalar("keep", run % 3 == 0 ? 0 : 1);
      executor.set_scalar("take", 0.5);
      executor.set_scalar("complete", run % 3 == 2 ? 1 : 0);
      executor.run();
      if (finishes) executor.finish();
      trained.losses.push_back(executor.scalar_output("loss"));
      if (run == 8) executor.finish();
      trained.weights.push_back(numbers(state, "w"));
      trained.sums.push_back(numbers(state, "sum"));
    }
    return trained;
  }
};

TEST_F(SumsOverRuns, WhatDependsOnThemWaitsUntilTheyAreComplete) {
  const Trained trained = train("", true);
  for (size_t run = 1; run < trained.weights.size(); ++run) {
    EXPECT_NE(trained.sums[run], trained.sums[run - 1]) << "in each run";
    if (run % 3 != 2) {
      EXPECT_EQ(trained.weights[run], trained.weights[run - 1]);
      continue;
    }
    for (size_t i = 0; i < 32; ++i)
      EXPECT_NEAR(trained.weights[run][i],
                  rate_of(static_cast<int>(run)) * (trained.weights[run - 1][i] + trained.sums[run][i]), 1e-6);
  }
}

TEST_F(SumsOverRuns, MayLeaveTheUpdateToTheNextRun) {
  const Trained at_once = train("", true);
  for (const bool finishes : {false, true}) {
    const Trained later = train(", deferred=true", finishes);
    EXPECT_EQ(later.losses, at_once.losses);
    EXPECT_EQ(later.sums, at_once.sums);
    EXPECT_EQ(later.weights.back(), at_once.weights.back());
    EXPECT_EQ(later.weights[2] == at_once.weights[2], finishes) << "done in the next run";
    EXPECT_EQ(later.weights[3], at_once.weights[3]);
  }
}

TEST_F(DeferredSteps, StatesAreNotBoundBeforeTheyAreFinished) {
  std::string text = kTwoLayers;
  for (size_t at = 0; (at = text.find("DEFERRED")) != std::string::npos;) text.replace(at, 8, ", deferred=true");
  const Graph graph = parse_graph(text, registry_);
  const Plan plan = make_plan(graph, backend_, 1);
  Executor executor(graph, plan, backend_);
  State state;
  state.set("w", drawn_tensor({4, 8}, 3));
  state.set("u", drawn_tensor({4, 8}, 4));
  executor.bind_state(state);
  const Tensor x = drawn_tensor({4, 8}, 5);
  executor.bind_batch("x", x.data());
  executor.run();
  EXPECT_THROW(executor.bind_state(state), Error);
  executor.finish();
  executor.bind_state(state);
}

}  // namespace
}  // namespace weft
