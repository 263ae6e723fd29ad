// Batches and images that change between epochs and within them, in the loop: against a network written by hand, across
// interruptions, and with every plan made before the first step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/fit_rig.h"
#include "weft/base/error.h"
#include "weft/data/pictures/image.h"
#include "weft/program/image_sizes.h"
#include "weft/spec/course.h"
#include "weft/step/schedules/schedule.h"

namespace weft::run {
namespace {

/// Epochs of 6 steps of 16, twice, 3 of 32, 12 of 8.
spec::RunSpec four_epochs(const std::string& model) {
  spec::RunSpec spec = spec_for(model, 4);
  spec.batch_schedule = {.boundaries = {2, -1}, .batches = {16, 32, 8}};
  spec::resolve(spec);
  return spec;
}

std::vector<step::StepMetrics> steps_of(const spec::RunSpec& spec) {
  Rig rig(spec);
  std::vector<step::StepMetrics> steps;
  train::Hooks hooks;
  hooks.on_step = [&](const step::StepMetrics& m) { steps.push_back(m); };
  EXPECT_TRUE(rig.fit_from({}, hooks).finished);
  return steps;
}

TEST(BatchSchedule, EachEpochHasItsBatch) {
  const std::vector<step::StepMetrics> steps = steps_of(four_epochs("mlp"));
  ASSERT_EQ(steps.size(), 27u);
  int64_t samples = 0;
  for (size_t at = 0; at < steps.size(); ++at) {
    const int64_t batch = at < 12 ? 16 : at < 15 ? 32 : 8;
    EXPECT_EQ(steps[at].batch, batch) << at;
    EXPECT_EQ(steps[at].samples, samples += batch) << at;
    EXPECT_EQ(steps[at].steps, 27);
    EXPECT_EQ(steps[at].epoch, at < 6 ? 0 : at < 12 ? 1 : at < 15 ? 2 : 3);
  }
}

/// 6 steps of 16; 3 of 16 and 6 of 8 in the second epoch; 12 of 8.
spec::RunSpec changes_within_the_second(const std::string& model) {
  spec::RunSpec spec = spec_for(model, 3);
  spec.batch_schedule = {.boundaries = {1.45}, .batches = {16, 8}};
  spec::resolve(spec);
  return spec;
}

TEST(BatchSchedule, BatchesMayChangeWithinAnEpoch) {
  const std::vector<step::StepMetrics> steps = steps_of(changes_within_the_second("mlp"));
  ASSERT_EQ(steps.size(), 27u);
  int64_t samples = 0;
  for (size_t at = 0; at < steps.size(); ++at) {
    const int64_t batch = at < 9 ? 16 : 8;
    EXPECT_EQ(steps[at].batch, batch) << at;
    EXPECT_EQ(steps[at].samples, samples += batch) << at;
    EXPECT_EQ(steps[at].epoch, at < 6 ? 0 : at < 15 ? 1 : 2);
  }
}

TEST(BatchSchedule, AnEpochWhoseBatchChangesShowsEachSampleOnceAtMost) {
  const Rig rig(changes_within_the_second("mlp"));
  std::set<std::vector<float>> seen;
  int64_t count = 0;
  for (int64_t step = 0; step < 9; ++step) {
    const data::Batch batch = rig.training_loader.load_batch(1, step);
    const int64_t elements = batch.samples.elements() / batch.samples.shape()[0];
    for (int64_t row = 0; row < batch.count; ++row, ++count) {
      const float* sample = batch.samples.data_as<float>() + row * elements;
      seen.insert(std::vector<float>(sample, sample + elements));
    }
  }
  EXPECT_EQ(count, 96);
  EXPECT_EQ(static_cast<int64_t>(seen.size()), count);
}

TEST(BatchSchedule, ARunThatIsCutOffAroundAChangeWithinAnEpochGoesOnBitwise) {
  const spec::RunSpec spec = changes_within_the_second("lenet5");
  Rig whole(spec);
  whole.fit_from({}, {});
  for (const int stop : {8, 9, 10, 14}) {
    Rig cut(spec);
    step::Position position;
    train::Hooks hooks;
    hooks.save = [&](const step::Position& at) { position = at; };
    hooks.stop_requested = [asked = 0, stop]() mutable { return ++asked >= stop; };
    EXPECT_FALSE(cut.fit_from({}, hooks).finished);
    cut.fit_from(position, {});
    EXPECT_EQ(cut.weights(), whole.weights()) << stop;
  }
}

TEST(BatchSchedule, AccumulatedBatchesGrowToo) {
  spec::RunSpec spec = spec_for("lenet5", 3);
  spec.batch_schedule = {.boundaries = {1, 2}, .batches = {}, .accumulate = {1, 3, 2}};
  spec::resolve(spec);
  const std::vector<step::StepMetrics> steps = steps_of(spec);
  ASSERT_EQ(steps.size(), 6u + 2 + 3);
  EXPECT_EQ(steps[5].batch, 16);
  EXPECT_EQ(steps[6].batch, 48);
  EXPECT_EQ(steps[8].batch, 32);
}

TEST(BatchSchedule, OneStageIsTheSameAsNone) {
  spec::RunSpec listed = spec_for("resnet9", 2);
  listed.batch = 32;
  listed.batch_schedule = {.boundaries = {}, .batches = {16}};
  spec::resolve(listed);
  Rig with(listed), without(spec_for("resnet9", 2));
  with.fit_from({}, {});
  without.fit_from({}, {});
  EXPECT_EQ(with.weights(), without.weights());
}

/// Softmax over relu(x W1 + b1) W2 + b2 in double, trained by SGD with momentum: nothing of weft but its batches and
/// the rates, which the schedule's own tests check.
class HandWritten {
 public:
  HandWritten(const State& state, const spec::OptimizerSpec& optimizer) : optimizer_(optimizer) {
    for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
      const Tensor tensor = state.plain(name);
      parameters_.emplace_back(tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements());
      velocities_.emplace_back(parameters_.back().size(), 0.0);
    }
    hidden_ = parameters_[1].size();
    classes_ = parameters_[3].size();
  }

  void step(const data::Batch& batch, double rate, double momentum) {
    const size_t inputs = parameters_[0].size() / hidden_;
    const auto count = static_cast<size_t>(batch.count);
    std::vector<std::vector<double>> gradients;
    for (const auto& parameter : parameters_) gradients.emplace_back(parameter.size(), 0.0);
    for (size_t row = 0; row < count; ++row) {
      const float* x = batch.samples.data_as<float>() + row * inputs;
      std::vector<double> h(hidden_), y(classes_);
      for (size_t j = 0; j < hidden_; ++j) {
        h[j] = parameters_[1][j];
        for (size_t i = 0; i < inputs; ++i) h[j] += parameters_[0][j * inputs + i] * static_cast<double>(x[i]);
        h[j] = std::max(0.0, h[j]);
      }
      double sum = 0;
      for (size_t k = 0; k < classes_; ++k) {
        y[k] = parameters_[3][k];
        for (size_t j = 0; j < hidden_; ++j) y[k] += parameters_[2][k * hidden_ + j] * h[j];
        sum += y[k] = std::exp(y[k]);
      }
      std::vector<double> dh(hidden_, 0.0);
      for (size_t k = 0; k < classes_; ++k) {
        const bool right = batch.targets.data_as<int32_t>()[row] == static_cast<int32_t>(k);
        const double dy = (y[k] / sum - (right ? 1 : 0)) / static_cast<double>(count);
        gradients[3][k] += dy;
        for (size_t j = 0; j < hidden_; ++j) {
          gradients[2][k * hidden_ + j] += dy * h[j];
          dh[j] += dy * parameters_[2][k * hidden_ + j];
        }
      }
      for (size_t j = 0; j < hidden_; ++j) {
        if (h[j] <= 0) continue;
        gradients[1][j] += dh[j];
        for (size_t i = 0; i < inputs; ++i) gradients[0][j * inputs + i] += dh[j] * static_cast<double>(x[i]);
      }
    }
    for (size_t p = 0; p < parameters_.size(); ++p)
      for (size_t at = 0; at < parameters_[p].size(); ++at) {
        const double decay = p % 2 == 0 ? optimizer_.weight_decay : 0;  // not of biases
        double& velocity = velocities_[p][at];
        velocity = momentum * velocity + gradients[p][at] + decay * parameters_[p][at];
        parameters_[p][at] -= rate * velocity;
      }
  }

  const std::vector<double>& parameter(size_t index) const { return parameters_[index]; }

 private:
  const spec::OptimizerSpec optimizer_;
  std::vector<std::vector<double>> parameters_, velocities_;
  size_t hidden_ = 0, classes_ = 0;
};

TEST(BatchSchedule, TrainsAsANetworkWrittenByHand) {
  for (const std::string scaling : {"none", "linear", "square_root"}) {
    spec::RunSpec spec = four_epochs("mlp");
    if (scaling == "linear") spec.optimizer.momentum_schedule = {.name = "one_cycle", .low = 0.7, .high = 0.95};
    const auto momentum = step::make_momentum_schedule(spec, spec::Course(spec, 100));
    spec.model.options["hidden"] = "9";
    spec.schedule.name = "one_cycle";
    spec.batch_schedule.rate_scaling = scaling;
    Rig rig(spec);
    HandWritten reference(rig.state, spec.optimizer);
    std::vector<double> rates;
    train::Hooks hooks;
    hooks.on_step = [&](const step::StepMetrics& m) { rates.push_back(m.learning_rate); };
    ASSERT_TRUE(rig.fit_from({}, hooks).finished);
    ASSERT_EQ(rates.size(), 27u);
    const int64_t batches[] = {16, 16, 32, 8}, steps[] = {6, 6, 3, 12};
    size_t at = 0;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      const double ratio = static_cast<double>(batches[epoch]) / 16;
      const double factor = scaling == "linear" ? ratio : scaling == "square_root" ? std::sqrt(ratio) : 1;
      data::LoaderOptions options = program::training_loader_options(spec, rig.description);
      options.stages.clear();  // a loader of this batch alone
      options.batch = batches[epoch];
      const data::Loader loader(rig.training_set, options);
      for (int64_t step = 0; step < steps[epoch]; ++step, ++at) {
        const double rate = step::one_cycle(static_cast<int64_t>(at), 27, spec.optimizer.learning_rate, {}) * factor;
        EXPECT_NEAR(rates[at], rate, 1e-12) << at;
        reference.step(loader.load_batch(epoch, step), rate, momentum(static_cast<int64_t>(at)));
      }
    }
    const char* names[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    for (size_t index = 0; index < 4; ++index) {
      const Tensor trained = rig.state.plain(names[index]);
      for (int64_t element = 0; element < trained.elements(); ++element)
        ASSERT_NEAR(static_cast<double>(trained.data_as<float>()[element]),
                    reference.parameter(index)[static_cast<size_t>(element)], 2e-5)
            << scaling << " " << names[index] << " " << element;
    }
  }
}

void expect_same_wherever_stopped(const spec::RunSpec& spec, const std::vector<int64_t>& stops) {
  Rig straight(spec);
  const int64_t all = straight.fit_from({}, {}).position.step;
  for (const int64_t stop_after : stops) {
    Rig first(spec), second(spec);
    int64_t steps = 0;
    train::Hooks hooks;
    hooks.on_step = [&](const step::StepMetrics&) { ++steps; };
    hooks.stop_requested = [&] { return steps == stop_after; };
    const train::FitResult stopped = first.fit_from({}, hooks);
    ASSERT_EQ(stopped.position.step, stop_after);
    for (const std::string& name : first.state.names()) second.state.set(name, first.state.plain(name));
    const train::FitResult result = second.fit_from(stopped.position, {});
    EXPECT_EQ(result.position.step, all);
    EXPECT_EQ(second.weights(), straight.weights()) << "stopped after step " << stop_after;
  }
}

TEST(BatchSchedule, StoppedAnywhereAndContinuedIsBitwiseTheSame) {
  spec::RunSpec spec = four_epochs("resnet9");
  spec.schedule.name = "one_cycle";
  spec.batch_schedule.rate_scaling = "linear";
  spec.augment.flip = "random";
  expect_same_wherever_stopped(spec, {6, 11, 13, 15, 26});
}

TEST(BatchSchedule, StoppedAmongAccumulatedStepsIsTheSameToo) {
  spec::RunSpec spec = spec_for("lenet5", 3);
  spec.optimizer.name = "lamb";
  spec.optimizer.learning_rate = 0.01;
  spec.batch_schedule = {.boundaries = {1, 2}, .batches = {16, 8, 32}, .accumulate = {1, 4, 1}};
  spec.lookahead.steps = 3;
  spec::resolve(spec);
  expect_same_wherever_stopped(spec, {6, 7, 10});
}

TEST(BatchSchedule, NothingIsCompiledAtASwitch) {
  const spec::RunSpec spec = four_epochs("lenet5");
  Rig rig(spec);
  for (const spec::StepShape& shape : spec::shapes_of(spec)) rig.training.compiled(shape);
  for (const spec::StepShape& shape : spec::shapes_of(spec)) rig.training.executor(shape);
  const int builds = rig.builds;
  EXPECT_EQ(builds, 3);
  EXPECT_EQ(rig.training.steps().executors(), 3);
  EXPECT_EQ(rig.training.arena_bytes(), rig.training.compiled(32).plan.arena_bytes) << "one arena, of the largest";
  EXPECT_TRUE(rig.fit_from({}, {}).finished);
  EXPECT_EQ(rig.builds, builds);
  EXPECT_EQ(rig.training.steps().executors(), 3);
}

/// Names and types of what a plan keeps between steps.
std::vector<std::pair<std::string, TensorType>> kept_by(const CompiledStep& step) {
  std::vector<std::pair<std::string, TensorType>> kept;
  for (const GraphInput& input : step.graph.inputs())
    if (input.kind == InputKind::parameter || input.kind == InputKind::state)
      kept.emplace_back(input.name, step.graph.type(input.value));
  return kept;
}

TEST(BatchSchedule, NoWeightIsConvertedAtASwitch) {
  spec::RunSpec spec = spec_for("resnet18", 3);
  spec.model.options["stem"] = "small";
  spec.batch_schedule = {.boundaries = {1, 2}, .batches = {16, 32, 8}};
  spec::resolve(spec);
  Rig rig(spec);
  const auto wanted = kept_by(rig.training.compiled(16));
  EXPECT_GT(wanted.size(), 60u);
  for (const int64_t batch : {32, 8}) EXPECT_EQ(kept_by(rig.training.compiled(batch)), wanted) << batch;
}

TEST(BatchSchedule, ThirtyTwoThousandSamplesAStepAreOneBatch) {
  // 128 batches of 256 against one of 32768, with LARS, whose steps depend on the norms of whole gradients.
  spec::RunSpec spec = spec_for("mlp", 2);
  spec.model.options["hidden"] = "16";
  spec.optimizer.name = "lars";
  spec.optimizer.learning_rate = 5;
  spec.evaluation.batch = 40;
  const auto trained = [&](int64_t batch, int64_t accumulate) {
    spec::RunSpec one = spec;
    one.batch = batch;
    one.accumulate = accumulate;
    Rig rig(one, 32768);
    const train::FitResult result = rig.fit_from({}, {});
    EXPECT_EQ(result.position.step, 2) << "one step an epoch";
    return rig.state.plain("fc1.weight");
  };
  const Tensor many = trained(256, 128), one = trained(32768, 1);
  const Rig untrained(spec);
  const Tensor before = untrained.state.plain("fc1.weight");
  double moved = 0, apart = 0;
  for (int64_t at = 0; at < one.elements(); ++at) {
    moved = std::max(moved, static_cast<double>(std::abs(one.data_as<float>()[at] - before.data_as<float>()[at])));
    apart = std::max(apart, static_cast<double>(std::abs(one.data_as<float>()[at] - many.data_as<float>()[at])));
  }
  EXPECT_GT(moved, 1e-4);
  EXPECT_LT(apart, 1e-3 * moved);
}

spec::RunSpec growing_images(const std::string& model) {
  spec::RunSpec spec = spec_for(model, 3);
  spec.image_schedule = {.boundaries = {1, 2}, .sizes = {8, 12, 16}};
  spec::resolve(spec);
  return spec;
}

TEST(ImageSchedule, EachEpochHasItsSizeAndParametersAreShared) {
  for (const std::string model : {"resnet9", "resnet18"}) {
    const spec::RunSpec spec = growing_images(model);
    Rig rig(spec);
    std::vector<int64_t> heights;
    std::optional<step::EpochMetrics> last;
    train::Hooks hooks;
    hooks.on_step = [&](const step::StepMetrics& m) {
      if (heights.empty() || heights.back() != m.image_height) heights.push_back(m.image_height);
    };
    hooks.on_epoch = [&](const step::EpochMetrics& m) { last = m; };
    EXPECT_TRUE(rig.fit_from({}, hooks).finished);
    EXPECT_EQ(heights, (std::vector<int64_t>{8, 12, 16}));
    ASSERT_TRUE(last && last->test_loss) << "evaluated at the full size";
    EXPECT_EQ(rig.training.steps().executors(), 3);
  }
}

TEST(ImageSchedule, ImagesOfTheFullSizeAreThoseOfNoSchedule) {
  spec::RunSpec spec = spec_for("resnet9", 2);
  Rig without(spec);
  spec.image_schedule = {.boundaries = {}, .sizes = {kSize}};
  spec::resolve(spec);
  Rig with(spec);
  without.fit_from({}, {});
  with.fit_from({}, {});
  EXPECT_EQ(with.weights(), without.weights());
}

TEST(ImageSchedule, StoppedAnywhereAndContinuedIsBitwiseTheSame) {
  spec::RunSpec spec = growing_images("resnet9");
  spec.batch_schedule = {.boundaries = {-1}, .batches = {16, 8}};
  spec.augment.crop_padding = 2;
  spec.augment.mixup = 0.2;
  spec.augment.resized_crop = 0.5;
  expect_same_wherever_stopped(spec, {5, 6, 12});
}

TEST(ImageSchedule, BatchesHoldResizedImages) {
  spec::RunSpec spec = growing_images("resnet9");
  spec.batch_schedule = {.boundaries = {1}, .batches = {32, 16}};
  spec.loader.workers = 2;
  Rig rig(spec);
  rig.training_loader.start();
  const auto expect_images = [&](const data::Batch& batch, int64_t size) {
    for (int64_t row = 0; row < batch.count; ++row) {
      const int32_t label = batch.targets.data_as<int32_t>()[row];
      const float* pixels = batch.samples.data_as<float>() + row * size * size;
      bool found = false;  // among the images of its class, resized by the library
      for (int64_t index = label; index < 100 && !found; index += 3) {
        data::Image whole{1, kSize, kSize, std::vector<uint8_t>(kSize * kSize)};
        rig.training_set.get({.index = index}, whole.pixels);
        const data::Image small = data::resize(whole, size, size);
        const data::Normalization normalization(rig.description.statistics, 1);
        found = std::equal(small.pixels.begin(), small.pixels.end(), pixels,
                           [&](uint8_t pixel, float value) { return normalization.table(0)[pixel] == value; });
      }
      EXPECT_TRUE(found) << size << " " << row;
    }
  };
  for (int step = 0; step < 3; ++step) expect_images(rig.training_loader.next(), 8);
  for (int step = 0; step < 6; ++step) expect_images(rig.training_loader.next(), 12);
  for (int step = 0; step < 6; ++step) expect_images(rig.training_loader.next(), 16);
}

TEST(ImageSchedule, StatisticsCountThePixelsThatThereAre) {
  // The unbiased variance of n values is n / (n - 1) of theirs: n is batch * height * width of each size.
  const spec::RunSpec spec = growing_images("resnet9");
  const Rig rig(spec);
  for (const auto& [height, values] : {std::pair(8, 16 * 8 * 8), {12, 16 * 12 * 12}, {16, 16 * 16 * 16}}) {
    const step::TrainingStep step =
        step::build_training_step(rig.library, spec, program::model_input(rig.description, {16, height}));
    double largest = 0;
    double factor = 0;
    for (const Node& node : step.graph.nodes()) {
      if (node.op->name != "running_average") continue;
      const double now = node.attributes.real("sample_factor");
      if (now <= 1) continue;  // of a mean
      const double count = now / (now - 1);
      if (count > largest) largest = count, factor = now;
    }
    EXPECT_NEAR(factor, static_cast<double>(values) / (values - 1), 1e-9) << height;
  }
}

TEST(ImageSchedule, ModelsWithAWeightPerPixelAreRefused) {
  for (const std::string model : {"mlp", "lenet5"}) {
    spec::RunSpec spec = growing_images(model);
    spec.image_schedule.sizes = {12, 14, 16};
    const Rig rig(spec_for("resnet9", 1));
    try {
      program::usable_shapes(rig.library, spec, rig.description);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      const std::string text = error.what();
      EXPECT_NE(text.find("[" + model + "] cannot train on images of several sizes: 'fc1.weight' is ("),
                std::string::npos)
          << text;
      EXPECT_NE(text.find("for 16x16"), std::string::npos) << text;
      EXPECT_NE(text.find("for 12x12"), std::string::npos) << text;
    }
  }
}

TEST(ImageSchedule, ImagesTooSmallForTheModelAreRefused) {
  const spec::RunSpec spec = growing_images("lenet5");
  const Rig rig(spec_for("resnet9", 1));
  try {
    program::usable_shapes(rig.library, spec, rig.description);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("image_schedule.sizes: images of height 8 are too small for the model: "),
              std::string::npos)
        << error.what();
  }
}

std::string error_of(spec::RunSpec spec) {
  try {
    spec::resolve(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(BatchSchedule, SaysWhatIsWrong) {
  const auto with = [](spec::BatchScheduleSpec schedule) {
    spec::RunSpec spec = spec_for("mlp", 6);
    spec.batch_schedule = std::move(schedule);
    return error_of(spec);
  };
  EXPECT_EQ(with({.boundaries = {2}, .batches = {16}}),
            "batch_schedule.batches wants 2 numbers for 1 boundaries, one before and one after each, got 1");
  EXPECT_EQ(with({.boundaries = {4, 2}, .batches = {16, 32, 64}}),
            "batch_schedule.boundaries = [4, 2] must rise from each to the next");
  EXPECT_EQ(with({.boundaries = {5, -2}, .batches = {16, 32, 64}}),
            "batch_schedule.boundaries = [5, -2] must rise from each to the next: -2 is epoch 4 of a run of 6");
  EXPECT_EQ(with({.boundaries = {0}, .batches = {16, 32}}).substr(0, 56),
            "batch_schedule.boundaries: 0 is the beginning of the run");
  EXPECT_EQ(with({.boundaries = {2}, .batches = {16, 32.5}}), "batch_schedule.batches: 32.5 is no whole number");
  EXPECT_EQ(with({.boundaries = {2}}).substr(0, 62), "batch_schedule.boundaries without batch_schedule.batches: give");
  EXPECT_EQ(with({.boundaries = {2, -1}, .batches = {16, 32, 8}}), "no error");
}

TEST(BatchSchedule, WhatHasNoEffectIsNamed) {
  spec::RunSpec spec = spec_for("mlp", 2);
  spec.batch_schedule = {.boundaries = {1, 5}, .batches = {32, 64, 128}};
  const std::vector<std::string> keys = spec::keys_without_effect(spec, data::TargetKind::sample_class);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0], "batch = 16 beside batch_schedule.batches = [32, 64, 128]");
  EXPECT_EQ(keys[1], "batch_schedule.boundaries: 5 in a run of 2 epochs");
}

}  // namespace
}  // namespace weft::run
