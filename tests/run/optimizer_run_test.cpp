// Optimisers in the loop: accumulation is one large batch, checkpoints go on bitwise, averages are what is evaluated
// and saved.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/support/fit_rig.h"
#include "tests/support/temporary_folder.h"
#include "weft/base/error.h"
#include "weft/base/isa.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/kept.h"
#include "weft/plan/storage.h"
#include "weft/run/checkpoint/store.h"
#include "weft/step/optimizers/ema.h"
#include "weft/train/evaluate.h"

namespace weft::run {
namespace {

namespace fs = std::filesystem;

void expect_bitwise_resume(const spec::RunSpec& spec) {
  Rig straight(spec);
  straight.fit_from({}, {});
  const TemporaryFolder directory;
  run::CheckpointStore store(directory.path(), 3);
  Rig first(spec);
  int64_t steps = 0;
  train::Hooks hooks;
  hooks.on_step = [&](const step::StepMetrics&) { ++steps; };
  hooks.stop_requested = [&] { return steps == 8; };  // in the second epoch
  hooks.save = [&](const step::Position& position) {
    run::Manifest manifest;
    manifest.position = position;
    store.write(first.state, manifest);
  };
  ASSERT_FALSE(first.fit_from({}, hooks).finished);
  std::optional<run::Checkpoint> checkpoint = store.read_newest([](const std::string&) {});
  ASSERT_TRUE(checkpoint);
  Rig second(spec);
  second.state = std::move(checkpoint->state);
  EXPECT_TRUE(second.fit_from(checkpoint->manifest.position, {}).finished);
  EXPECT_EQ(second.state.names(), straight.state.names());
  EXPECT_EQ(second.weights(), straight.weights()) << spec.optimizer.name << ", " << spec.accumulate;
}

TEST(OptimizerRun, ContinuedFromACheckpointIsBitwiseTheSame) {
  for (const char* optimizer : {"sgd", "adam", "adamw", "lamb", "lars", "muon", "rmsprop"})
    for (const int64_t accumulate : {1, 4}) expect_bitwise_resume(full_spec(optimizer, accumulate, 2));
}

TEST(OptimizerRun, ContinuedWithAScaledLossIsBitwiseTheSame) {
  for (const int64_t accumulate : {1, 4}) {
    spec::RunSpec spec = full_spec("adamw", accumulate, 2);
    spec.loss_scaling.mode = "dynamic";
    spec.loss_scaling.growth_interval = 3;  // the scale changes on the way
    expect_bitwise_resume(spec);
  }
}

TEST(OptimizerRun, ContinuedInBf16IsBitwiseTheSame) {
  if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  for (const int64_t accumulate : {1, 4}) {
    spec::RunSpec spec = full_spec("sgd", accumulate, 2);
    spec.precision = "bf16";
    expect_bitwise_resume(spec);
  }
}

TEST(OptimizerRun, PlateauGoesOnFromItsStateInTheManifest) {
  spec::RunSpec spec = spec_for("mlp", 6);
  spec.schedule.name = "plateau";
  spec.schedule.monitor = "test_loss";
  spec.schedule.patience = 0;
  spec.schedule.threshold = 1;  // nothing is an improvement
  spec.schedule.factor = 0.5;
  std::vector<double> rates, resumed_rates;
  const auto note_into = [](std::vector<double>& all) {
    return [&all](const step::StepMetrics& m) { all.push_back(m.learning_rate); };
  };
  Rig straight(spec);
  train::Hooks hooks;
  hooks.on_step = note_into(rates);
  straight.fit_from({}, hooks);
  EXPECT_EQ(rates.front(), spec.optimizer.learning_rate);
  EXPECT_LT(rates.back(), rates.front());
  Rig first(spec), second(spec);
  hooks.on_step = note_into(resumed_rates);
  hooks.stop_requested = [&] { return resumed_rates.size() == 20; };
  run::Manifest manifest;
  hooks.save = [&](const step::Position& position) { manifest.position = position; };
  first.fit_from({}, hooks);
  for (const std::string& name : first.state.names()) second.state.set(name, first.state.plain(name));
  hooks.stop_requested = {};
  second.fit_from(run::parse_manifest(run::print_manifest(manifest), "m.json").position, hooks);
  EXPECT_EQ(resumed_rates, rates);
  EXPECT_EQ(second.weights(), straight.weights());
}

/// Losses and weights after three epochs.
std::pair<std::vector<double>, Tensor> trained_with(spec::RunSpec spec, int64_t batch, int64_t accumulate) {
  spec.batch = batch;
  spec.accumulate = accumulate;
  Rig rig(spec);
  std::vector<double> losses;
  train::Hooks hooks;
  hooks.on_step = [&](const step::StepMetrics& m) { losses.push_back(m.loss); };
  rig.fit_from({}, hooks);
  return {losses, rig.state.plain(rig.state.has("fc1.weight") ? "fc1.weight" : rig.state.names().front())};
}

TEST(OptimizerRun, AccumulatedBatchesAreOneLargeBatch) {
  for (const char* optimizer : {"sgd", "adamw", "muon"}) {
    spec::RunSpec spec = spec_for("lenet5", 3);
    spec.optimizer.name = optimizer;
    spec.optimizer.learning_rate = 0;
    spec::resolve(spec);
    spec.clip.norm = 1;
    const auto [large, large_weight] = trained_with(spec, 32, 1);
    const auto [small, small_weight] = trained_with(spec, 8, 4);
    ASSERT_EQ(small.size(), large.size());
    for (size_t step = 0; step < large.size(); ++step)
      EXPECT_NEAR(small[step], large[step], 2e-4 * large[step]) << optimizer << " " << step;
    for (int64_t i = 0; i < large_weight.elements(); ++i)
      ASSERT_NEAR(small_weight.data_as<float>()[i], large_weight.data_as<float>()[i], 2e-3) << optimizer << " " << i;
  }
}

/// On older processors gradients of convolutions come in another layout than the weights have.
bool gradients_share_the_layout_of_weights() { return detect_isa() == Isa::avx512; }

TEST(OptimizerRun, AccumulationTakesTheMemoryOfOneBatch) {
  if (!gradients_share_the_layout_of_weights()) GTEST_SKIP() << "reorders take memory too on this processor";
  spec::RunSpec large = spec_for("resnet9", 1), small = large;
  large.batch = 32;
  small.batch = 8;
  small.accumulate = 4;
  Rig one(large), four(small);
  const int64_t large_bytes = one.training.compiled(32).plan.arena_bytes;
  const int64_t small_bytes =
      four.training.compiled(8).plan.arena_bytes + four.training.compiled(8, program::Phase::update).plan.arena_bytes;
  EXPECT_LT(small_bytes, large_bytes / 2);
}

TEST(OptimizerRun, AccumulatedUpdateConvertsNoLayouts) {
  if (!gradients_share_the_layout_of_weights()) GTEST_SKIP() << "gradients are converted on this processor";
  spec::RunSpec spec = spec_for("resnet9", 1);
  spec.batch = 8;
  spec.accumulate = 2;
  for (const char* optimizer : {"sgd", "adam", "lamb", "lars", "rmsprop"}) {
    spec.optimizer.name = optimizer;
    spec.optimizer.momentum = 0.9;
    Rig rig(spec);
    for (const Node& node : rig.training.compiled(8, program::Phase::update).graph.nodes())
      EXPECT_NE(node.op->name, "reorder") << optimizer;
  }
}

TEST(OptimizerRun, BatchesAndUpdateHaveOneLayoutOfEachStateInBf16) {
  if (!gradients_share_the_layout_of_weights()) GTEST_SKIP() << "gradients are converted on this processor";
  if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  spec::RunSpec spec = spec_for("resnet9", 1);
  spec.precision = "bf16";
  spec.batch = 8;
  spec.accumulate = 2;
  Rig rig(spec);
  const Graph &batch = rig.training.compiled(8).graph, &update = rig.training.compiled(8, program::Phase::update).graph;
  for (const GraphInput& input : update.inputs()) {
    const GraphInput* there = batch.find_input(input.name);
    if (there == nullptr || input.kind == InputKind::scalar) continue;
    EXPECT_EQ(to_string(update.type(input.value)), to_string(batch.type(there->value))) << input.name;
  }
}

// After each step the copies are those of the new weights, also behind evaluations in the same arena and on the same
// states, and where another plan updates the weights.
TEST(OptimizerRun, KeptCopiesGiveTheWeightsOfCopiesThatAreMadeInEachStep) {
  if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  for (const char* model : {"resnet9", "lenet5"})
    for (const int64_t accumulate : {1, 2}) {
      spec::RunSpec spec = spec_for(model, 2.5);
      spec.precision = "bf16";
      spec.batch = 16 / accumulate;
      spec.accumulate = accumulate;
      Rig keeping(spec), casting(spec, 100, {"keep_copies"});
      const auto kept = [](Rig& rig) {
        const Graph& graph = rig.training.compiled(rig.spec.batch).graph;
        return std::count_if(graph.nodes().begin(), graph.nodes().end(), is_kept);
      };
      EXPECT_GT(kept(keeping), 0);
      EXPECT_EQ(kept(casting), 0);
      keeping.fit_from({}, {});
      casting.fit_from({}, {});
      EXPECT_EQ(keeping.weights(), casting.weights()) << model << ", " << accumulate;
    }
}

TEST(OptimizerRun, StatesAreReplacedInPlace) {
  for (const char* optimizer : {"sgd", "adam", "adamw", "lamb", "lars", "muon", "rmsprop"})
    for (const int64_t accumulate : {1, 2}) {
      spec::RunSpec spec = spec_for("resnet9", 1);
      spec.optimizer.name = optimizer;
      spec.optimizer.momentum = 0.9;
      spec.ema.decay = 0.9;
      spec.clip.norm = 1;
      spec.batch = 8;
      spec.accumulate = accumulate;
      Rig rig(spec);
      EXPECT_TRUE(map_storage(rig.training.compiled(8).graph).copied_updates.empty()) << optimizer;
      if (accumulate == 1) continue;
      EXPECT_TRUE(map_storage(rig.training.compiled(8, program::Phase::update).graph).copied_updates.empty())
          << optimizer;
    }
}

TEST(OptimizerRun, AveragesAreEvaluatedAndSaved) {
  spec::RunSpec spec = spec_for("mlp", 2);
  spec.ema.decay = 0.9;
  Rig rig(spec);
  double test_loss = 0;
  train::Hooks hooks;
  hooks.on_epoch = [&](const step::EpochMetrics& m) { test_loss = *m.test_loss; };
  rig.fit_from({}, hooks);
  const TemporaryFolder directory;
  const fs::path path = run::CheckpointStore(directory.path(), 1).write(rig.state, {});
  State saved = run::read_checkpoint(path, /*with_optimizer=*/false).state;
  const std::string name = saved.names().front();
  EXPECT_EQ(saved.get(name).data_as<float>()[0],
            rig.state.plain(step::slot_name(step::kEmaSlot, name)).data_as<float>()[0]);
  EXPECT_NE(saved.get(name).data_as<float>()[0], rig.state.plain(name).data_as<float>()[0]);
  EXPECT_EQ(train::evaluate(rig.evaluation, saved, rig.test_loader).loss, test_loss);
  EXPECT_NE(train::evaluate(rig.evaluation, rig.state, rig.test_loader).loss, test_loss);
}

TEST(OptimizerRun, GradientNormIsReportedWhereItIsBounded) {
  for (const int64_t accumulate : {1, 2}) {
    spec::RunSpec spec = spec_for("mlp", 1);
    spec.batch = 8;
    spec.accumulate = accumulate;
    std::optional<double> norm;
    train::Hooks hooks;
    hooks.on_step = [&](const step::StepMetrics& m) { norm = m.gradient_norm; };
    Rig(spec).fit_from({}, hooks);
    EXPECT_FALSE(norm);
    spec.clip.norm = 1;
    Rig(spec).fit_from({}, hooks);
    ASSERT_TRUE(norm);
    EXPECT_GT(*norm, 0);
  }
}

TEST(OptimizerRun, RecordingTheGradientNormChangesNothingElse) {
  const auto norms_and_weights = [](bool records, double bound) {
    spec::RunSpec spec = spec_for("mlp", 1);
    spec.metrics.gradient_norm = records;
    spec.clip.norm = bound;
    Rig rig(spec);
    std::vector<double> norms;
    train::Hooks hooks;
    hooks.on_step = [&](const step::StepMetrics& m) { norms.push_back(m.gradient_norm.value_or(-1)); };
    rig.fit_from({}, hooks);
    return std::pair(norms, rig.weights());
  };
  const auto plain = norms_and_weights(false, 0), recorded = norms_and_weights(true, 0);
  EXPECT_EQ(plain.second, recorded.second);
  EXPECT_EQ(recorded.first, norms_and_weights(false, 1e6).first) << "the same as a bound that never acts sees";
  EXPECT_EQ(plain.first, std::vector<double>(6, -1));
}

TEST(OptimizerRun, WhatIsFrozenStaysAndCostsNoGradient) {
  for (const int64_t accumulate : {1, 2})
    for (const bool everything : {false, true}) {
      spec::RunSpec spec = spec_for("mlp", 1);
      spec.batch = 16 / accumulate;
      spec.accumulate = accumulate;
      spec.clip.norm = 1;
      spec.ema.decay = 0.9;
      const std::string first = Rig(spec).step.parameters.front().name, last = Rig(spec).step.parameters.back().name;
      const size_t all_nodes = Rig(spec).step.graph.nodes().size();
      spec.optimizer.groups["frozen"] = {
          .match = everything ? "*" : first, .learning_rate_factor = 0, .weight_decay = -1, .schedule = ""};
      Rig rig(spec);
      EXPECT_LT(rig.step.graph.nodes().size(), all_nodes);
      const Tensor before = rig.state.plain(first).clone(), moving = rig.state.plain(last).clone();
      EXPECT_TRUE(rig.fit_from({}, {}).finished);
      const auto same = [&](const std::string& name, const Tensor& then) {
        const Tensor now = rig.state.plain(name);
        return std::equal(then.data_as<float>(), then.data_as<float>() + then.elements(), now.data_as<float>());
      };
      EXPECT_TRUE(same(first, before));
      EXPECT_EQ(same(last, moving), everything);
    }
}

TEST(OptimizerRun, GroupsMayBeTrainedInTheFirstEpochsOnly) {
  spec::RunSpec spec = spec_for("mlp", 3);
  const std::string first = Rig(spec).step.parameters.front().name, last = Rig(spec).step.parameters.back().name;
  spec.optimizer.groups["early"] = {
      .match = first, .learning_rate_factor = 2, .weight_decay = -1, .schedule = "", .epochs = 1.5};
  Rig rig(spec);
  std::vector<std::vector<float>> values;  // of either parameter, after each step
  const auto note = [&](const std::string& name) {
    const Tensor now = rig.state.plain(name);
    values.emplace_back(now.data_as<float>(), now.data_as<float>() + now.elements());
  };
  train::Hooks hooks;
  hooks.on_step = [&](const step::StepMetrics&) {
    note(first);
    note(last);
  };
  rig.fit_from({}, hooks);
  ASSERT_EQ(values.size(), 36u);
  for (size_t step = 1; step < 18; ++step) {  // 6 steps an epoch
    EXPECT_EQ(values[2 * step] == values[2 * step - 2], step >= 9) << step;
    EXPECT_NE(values[2 * step + 1], values[2 * step - 1]);
  }
}

TEST(OptimizerRun, LookaheadEndsOnTheSlowWeights) {
  spec::RunSpec spec = spec_for("mlp", 1);  // 6 steps
  spec.lookahead = {.steps = 4, .alpha = 0.5};
  Rig rig(spec);
  const std::string name = rig.step.parameters.front().name;
  rig.fit_from({}, {});
  const Tensor fast = rig.state.plain(name), slow = rig.state.plain(step::slot_name("slow", name));
  EXPECT_TRUE(std::equal(fast.data_as<float>(), fast.data_as<float>() + fast.elements(), slow.data_as<float>()));
}

TEST(OptimizerRun, SlotsBeginFromTheParametersInTheState) {
  spec::RunSpec spec = spec_for("mlp", 1);
  spec.lookahead.steps = 5;
  Rig rig(spec);
  const std::string name = rig.step.parameters.front().name;
  rig.state.get(name).data_as<float>()[0] = 7;
  step::start_slots(rig.step, rig.state);
  EXPECT_EQ(rig.state.get(step::slot_name("slow", name)).data_as<float>()[0], 7);
  rig.state.get(name).data_as<float>()[0] = 8;
  EXPECT_EQ(rig.state.get(step::slot_name("slow", name)).data_as<float>()[0], 7) << "a copy";
}

}  // namespace
}  // namespace weft::run
