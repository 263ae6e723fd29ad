// Loss scaling in the step and in the loop: what an overflow leaves as it is, under every optimiser.
#include "weft/step/optimizers/loss_scaling.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>

#include "tests/support/fit_rig.h"
#include "tests/support/optimizer_problem.h"
#include "tests/support/temporary_folder.h"
#include "weft/base/error.h"
#include "weft/run/checkpoint/store.h"

namespace weft::step {
namespace {

constexpr const char* kOptimizers[] = {"sgd", "adam", "adamw", "lamb", "lars", "muon", "rmsprop"};

/// Everything that carries a state along.
spec::RunSpec scaled_problem(const std::string& optimizer) {
  spec::RunSpec spec = spec_of(optimizer, 0.02, 0.1);
  spec.optimizer.centered = true;
  spec.loss_scaling = {.mode = "dynamic", .scale = 1, .growth_interval = 1000};
  spec.clip.norm = 1;
  spec.ema.decay = 0.9;
  spec.lookahead.steps = 1;
  return spec;
}

void set_scalars(Problem& problem) {
  problem.executor().set_scalar("ema_decay", 0.9);
  problem.executor().set_scalar("synchronise", 1);
  problem.executor().set_scalar("slow_share", 0.5);
}

std::map<std::string, Tensor> copy_of(const State& state) {
  std::map<std::string, Tensor> copies;
  for (const std::string& name : state.names()) copies[name] = state.plain(name);
  return copies;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

TEST(LossScaling, AStepWithAnOverflowChangesNothingButTheScale) {
  for (const char* optimizer : kOptimizers)
    for (const float poison : {INFINITY, NAN}) {
      Problem problem(scaled_problem(optimizer));
      set_scalars(problem);
      for (int step = 0; step < 3; ++step) problem.step(step, 0.02);
      const auto before = copy_of(problem.state);
      problem.step(3, 0.02, 0, poison);
      for (const auto& [name, tensor] : copy_of(problem.state)) {
        if (name.find("/loss_scale/") != std::string::npos && !name.ends_with("/updates")) continue;
        EXPECT_TRUE(same_bits(tensor, before.at(name))) << optimizer << ": " << name;
      }
      const LossScale scale(problem.state);
      EXPECT_EQ(scale.scale(), 0.5) << optimizer;
      EXPECT_EQ(scale.updates(), 3) << optimizer;
      EXPECT_EQ(scale.skipped(), 1) << optimizer;
      EXPECT_EQ(scale.skipped_in_a_row(), 1) << optimizer;
    }
}

// Step counters, too: what Adam corrects its moments by counts updates.
TEST(LossScaling, WhatFollowsAnOverflowIsAsIfItHadNotBeen) {
  for (const char* optimizer : kOptimizers) {
    spec::RunSpec spec = scaled_problem(optimizer);
    spec.loss_scaling.backoff_factor = 1;
    Problem clean(spec), interrupted(spec);
    set_scalars(clean);
    set_scalars(interrupted);
    for (int step = 0; step < 6; ++step) {
      clean.step(step, 0.02);
      interrupted.step(step, 0.02);
      if (step == 2) interrupted.step(step, 0.02, 0, INFINITY);
    }
    EXPECT_EQ(interrupted.all(), clean.all()) << optimizer;
  }
}

spec::RunSpec scaled_run(const std::string& optimizer, int64_t accumulate, const std::string& mode) {
  spec::RunSpec spec = full_spec(optimizer, accumulate, 1);
  spec.loss_scaling.mode = mode;
  spec.loss_scaling.growth_interval = 2;
  return spec;
}

std::vector<float> trained_parameters(Rig& rig) {
  std::vector<float> all;
  for (const models::ParameterSpec& parameter : rig.step.parameters) {
    const Tensor tensor = rig.state.plain(parameter.name);
    all.insert(all.end(), tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements());
  }
  return all;
}

// The scale is a power of two, so that in f32 nothing is rounded otherwise.
TEST(LossScaling, InF32EveryWeightIsTheSameBitForBit) {
  for (const char* optimizer : kOptimizers)
    for (const int64_t accumulate : {1, 4}) {
      Rig plain(scaled_run(optimizer, accumulate, "none")), scaled(scaled_run(optimizer, accumulate, "dynamic"));
      std::vector<double> losses, scaled_losses, norms, scaled_norms, scales;
      train::Hooks hooks;
      hooks.on_step = [&](const StepMetrics& m) {
        losses.push_back(m.loss);
        norms.push_back(*m.gradient_norm);
      };
      plain.fit_from({}, hooks);
      hooks.on_step = [&](const StepMetrics& m) {
        scaled_losses.push_back(m.loss);
        scaled_norms.push_back(*m.gradient_norm);
        scales.push_back(*m.loss_scale);
      };
      scaled.fit_from({}, hooks);
      EXPECT_EQ(trained_parameters(scaled), trained_parameters(plain)) << optimizer << ", " << accumulate;
      EXPECT_EQ(scaled_losses, losses) << optimizer << ", " << accumulate;
      EXPECT_EQ(scaled_norms, norms) << optimizer << ", " << accumulate;
      EXPECT_THAT(scales, testing::ElementsAre(65536, 131072, 131072, 262144, 262144, 524288));
    }
}

// From a scale with which every gradient overflows the steps find one with which none does.
TEST(LossScaling, FindsAScaleThatGradientsBear) {
  for (const int64_t accumulate : {1, 4}) {
    spec::RunSpec spec = scaled_run("sgd", accumulate, "dynamic");
    spec.epochs = 4;
    spec.loss_scaling.scale = 0x1p127;
    spec.loss_scaling.growth_interval = 2000;
    Rig rig(spec);
    Tensor& weight = rig.state.get("fc1.weight");  // gradients of what lies before it are large
    for (int64_t i = 0; i < weight.elements(); ++i) weight.data_as<float>()[i] *= 1000;
    std::vector<StepMetrics> steps;
    train::Hooks hooks;
    hooks.on_step = [&](const StepMetrics& m) { steps.push_back(m); };
    ASSERT_TRUE(rig.fit_from({}, hooks).finished);
    const LossScale scale(rig.state);
    EXPECT_GT(scale.skipped(), 0);
    EXPECT_EQ(scale.skipped() + scale.updates(), static_cast<int64_t>(steps.size()));
    EXPECT_EQ(scale.scale(), std::ldexp(1.0, 127 - static_cast<int>(scale.skipped())));
    EXPECT_EQ(steps.front().skipped_steps, 1);
    for (const float value : trained_parameters(rig)) ASSERT_TRUE(std::isfinite(value));
  }
}

// The sum of gradients that overflowed is thrown away by the next batch.
TEST(LossScaling, ACheckpointIsMadeRightAfterASkippedUpdate) {
  spec::RunSpec spec = scaled_run("adamw", 4, "dynamic");
  spec.loss_scaling.scale = 0x1p127;
  Rig rig(spec);
  Tensor& weight = rig.state.get("fc1.weight");
  for (int64_t i = 0; i < weight.elements(); ++i) weight.data_as<float>()[i] *= 1000;
  const TemporaryFolder folder;
  run::CheckpointStore store(folder.path(), 1);
  train::Hooks hooks;
  hooks.stop_requested = [] { return true; };
  hooks.save = [&](const Position& position) {
    run::Manifest manifest;
    manifest.position = position;
    store.write(rig.state, manifest);
  };
  EXPECT_FALSE(rig.fit_from({}, hooks).finished);
  EXPECT_EQ(LossScale(rig.state).skipped(), 1);
  const auto checkpoint = store.read_newest([](const std::string&) {});
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(LossScale(checkpoint->state).skipped(), 1);
}

/// The message of the error that ends the run.
std::string end_of(Rig& rig) {
  try {
    rig.fit_from({}, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    return error.what();
  }
  return "";
}

TEST(LossScaling, AWeightThatIsNotFiniteEndsTheRunAfterSoManySteps) {
  spec::RunSpec spec = scaled_run("sgd", 1, "dynamic");
  spec.schedule.name = "constant";
  spec.loss_scaling.patience = 4;
  Rig rig(spec);
  rig.state.get("fc1.weight").data_as<float>()[0] = NAN;
  EXPECT_THAT(end_of(rig), testing::HasSubstr("the gradients were not finite in 4 steps in a row, the last one step 4 "
                                              "(epoch 1, learning rate 0.05), down to a loss scale of 4096; lower"));
}

TEST(LossScaling, WithoutItALossThatIsNotFiniteEndsTheRunAtOnce) {
  Rig rig(scaled_run("sgd", 1, "none"));
  rig.state.get("fc1.weight").data_as<float>()[0] = NAN;
  EXPECT_THAT(end_of(rig), testing::HasSubstr("the loss became NaN at step 1"));
}

TEST(LossScaling, IsDynamicInF16AndElsewhereWhereAsked) {
  spec::RunSpec spec;
  const auto scales = [&](const char* precision, const char* mode) {
    spec.precision = precision;
    spec.loss_scaling.mode = mode;
    return spec::scales_loss(spec);
  };
  EXPECT_TRUE(scales("f16", "auto"));
  EXPECT_FALSE(scales("bf16", "auto"));
  EXPECT_FALSE(scales("f32", "auto"));
  EXPECT_FALSE(scales("f16", "none"));
  EXPECT_TRUE(scales("bf16", "dynamic"));
  EXPECT_TRUE(scales("f32", "fixed"));
}

}  // namespace
}  // namespace weft::step
