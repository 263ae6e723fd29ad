// What a run chooses for itself before its first step: rules on curves, and whole runs.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/ranks_rig.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/run/policies/noise_policy.h"
#include "weft/run/policies/policy_file.h"
#include "weft/run/run_directory.h"

namespace weft::run {
namespace {

/// A loss that falls around the rate 0.1, is lowest at 1 and rises behind it.
std::vector<RatedLoss> valley(int steps = 100) {
  std::vector<RatedLoss> losses;
  for (int step = 0; step < steps; ++step) {
    const double exponent = -4 + 6.0 * step / (steps - 1);
    losses.push_back({std::pow(10, exponent),
                      2 - 1 / (1 + std::exp(-6 * (exponent + 1))) + 0.3 * std::pow(std::max(0.0, exponent), 2)});
  }
  return losses;
}

TEST(RangeTest, TheChoiceLiesBetweenTheSteepestFallAndTheLowestLoss) {
  const RangeTest test = judge_range(valley());
  ASSERT_TRUE(test.chosen);
  EXPECT_NEAR(std::log10(*test.steepest), -1, 0.1);
  EXPECT_NEAR(std::log10(*test.lowest), 0, 0.3);
  EXPECT_NEAR(std::log10(*test.chosen), (std::log10(*test.steepest) + std::log10(*test.lowest)) / 2, 0.01);
}

TEST(RangeTest, NoiseOfTheStepsMovesTheChoiceLittle) {
  std::vector<RatedLoss> noisy = valley();
  for (size_t at = 0; at < noisy.size(); ++at) noisy[at].loss += at % 2 == 0 ? 0.1 : -0.1;
  EXPECT_NEAR(std::log10(*judge_range(noisy).chosen), std::log10(*judge_range(valley()).chosen), 0.25);
}

TEST(RangeTest, AFallAtTheVeryEndDoesNotDecide) {
  std::vector<RatedLoss> losses = valley(20);
  losses.back().loss = -5;
  EXPECT_LT(*judge_range(losses).chosen, 2);
}

TEST(RangeTest, ALossThatNeverFallsGivesNoRate) {
  std::vector<RatedLoss> rising;
  for (int step = 0; step < 30; ++step) rising.push_back({std::pow(10, step / 10.0), 1 + 0.1 * step});
  EXPECT_FALSE(judge_range(rising).chosen);
  EXPECT_FALSE(judge_range({}).chosen);
}

TEST(RangeTest, LossesThatAreNoNumbersAreLeftOut) {
  std::vector<RatedLoss> losses = valley();
  losses.push_back({200, std::nan("")});
  EXPECT_EQ(judge_range(losses).steps.size(), losses.size() - 1);
}

TEST(RangeTest, EndsWhereTheLossIsFarAboveItsBeginning) {
  EXPECT_FALSE(has_diverged(valley()));
  EXPECT_TRUE(has_diverged({{1, 2.0}, {2, 1.5}, {3, 3.1}}));
  EXPECT_TRUE(has_diverged({{1, 2.0}, {2, std::nan("")}}));
  EXPECT_FALSE(has_diverged({{1, 2.0}, {2, 2.4}}));
}

TEST(NoisePolicy, TheBatchIsThePowerOfTwoBelowTheNoiseScale) {
  const auto batch = [](double scale) { return batch_of_noise(predict::Interval{scale, scale, scale}, {}, 128); };
  EXPECT_EQ(batch(300), 256);
  EXPECT_EQ(batch(256), 256);
  EXPECT_EQ(batch(1), 16);
  EXPECT_EQ(batch(1e9), 1024);
  EXPECT_EQ(batch(std::numeric_limits<double>::infinity()), 1024);
}

TEST(NoisePolicy, TheBatchCanBeDividedAmongTheRanks) {
  EXPECT_EQ(batch_of_noise(predict::Interval{300, 300, 300}, {.multiple_of = 3}, 96), 192);
}

TEST(NoisePolicy, WhereNothingWasMeasuredTheBatchStays) {
  EXPECT_EQ(batch_of_noise(std::nullopt, {}, 128), 128);
  EXPECT_EQ(warmup_of_noise(std::nullopt, 128, 100), 0);
}

TEST(NoisePolicy, TheWarmUpSeesTwiceTheNoiseScale) {
  EXPECT_EQ(warmup_of_noise(predict::Interval{900, 1000, 1100}, 100, 50), 20);
  EXPECT_EQ(warmup_of_noise(predict::Interval{900, 1000, 1100}, 100, 5), 5);
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(warmup_of_noise(predict::Interval{1, infinite, infinite}, 100, 50), 50);
}

/// Labels that follow from the samples, so that there is something to learn.
class LearnableData : public DrawnData {
 public:
  using DrawnData::DrawnData;
  void get_target(const data::SampleKey& key, std::span<uint8_t> target) const override {
    std::vector<float> sample(static_cast<size_t>(info().sample_shape.elements()));
    get(key, {reinterpret_cast<uint8_t*>(sample.data()), sample.size() * sizeof(float)});
    if (info().target_dtype == DType::f32)
      data::view_as<float>(target)[0] = sample[0] + sample[1];
    else
      data::view_as<int32_t>(target)[0] = (sample[0] > 0 ? 1 : 0) + (sample[1] > 0 ? 1 : 0);
  }
};

class PolicyRun : public RanksTest {
 protected:
  static Library library(const std::string& task = "classification") {
    data::DatasetInfo info{.name = "drawn",
                           .sample_shape = {5},
                           .classes = task == "regression" ? 1 : 3,
                           .task = task,
                           .sample_dtype = DType::f32,
                           .target_dtype = task == "regression" ? DType::f32 : DType::i32};
    if (task == "regression") info.target_shape = {1};
    return drawn_library<LearnableData>(info, 640, 64);
  }
  /// 40 steps an epoch.
  static spec::RunSpec open_spec(double epochs = 12, const std::string& optimizer = "sgd") {
    spec::RunSpec spec = drawn_spec("mlp", epochs, 16, 0);
    spec.optimizer.name = optimizer;
    spec.measured.learning_rate = true;
    return spec;
  }
  spec::RunSpec kept(const std::string& run) const { return RunDirectory::open(path(run)).read_spec(); }
  Policies policies(const std::string& run) const { return *read_policies(RunDirectory::open(path(run)).policy()); }
};

TEST_F(PolicyRun, TheRateIsMeasuredAndKeptInTheRecipeOfTheRun) {
  ASSERT_TRUE(train(library(), open_spec(), {}, "run").finished);
  const Policies found = policies("run");
  ASSERT_TRUE(found.range);
  ASSERT_TRUE(found.range->chosen);
  EXPECT_EQ(kept("run").optimizer.learning_rate, *found.range->chosen);
  EXPECT_FALSE(kept("run").measured.any());
  EXPECT_GE(found.range->steps.size(), 3U);
}

TEST_F(PolicyRun, TheMeasurementTakesLessThanATwentiethOfTheRun) {
  spec::RunSpec spec = open_spec(30);
  spec.measured = {.learning_rate = true, .batch = true, .warmup_steps = true};
  ASSERT_TRUE(train(library(), spec, {}, "run").finished);
  const Policies found = policies("run");
  EXPECT_EQ(found.run_samples, 30 * 640);
  EXPECT_GT(found.measured_samples, 0);
  EXPECT_LT(found.measured_samples, found.run_samples / 20);
}

TEST_F(PolicyRun, TheRunIsBitwiseThatOfTheRateAsANumber) {
  ASSERT_TRUE(train(library(), open_spec(), {}, "run").finished);
  spec::RunSpec given = open_spec();
  given.measured = {};
  given.optimizer.learning_rate = kept("run").optimizer.learning_rate;
  ASSERT_TRUE(train(library(), given, {}, "given").finished);
  expect_same_bits("run", "given");
}

TEST_F(PolicyRun, TheChoiceFollowsFromTheSeed) {
  ASSERT_TRUE(train(library(), open_spec(), {}, "run").finished);
  ASSERT_TRUE(train(library(), open_spec(), {}, "again").finished);
  EXPECT_EQ(read_text(path("run/policy.json")), read_text(path("again/policy.json")));
}

TEST_F(PolicyRun, EachOptimizerFindsARate) {
  for (const char* optimizer : {"sgd", "adam", "adamw", "lamb", "lars", "muon", "rmsprop"}) {
    const std::string run = std::string("run-") + optimizer;
    ASSERT_TRUE(train(library(), open_spec(12, optimizer), {}, run).finished) << optimizer;
    EXPECT_TRUE(policies(run).range->chosen) << optimizer;
  }
}

TEST_F(PolicyRun, ARegressionFindsARate) {
  ASSERT_TRUE(train(library("regression"), open_spec(), {}, "run").finished);
  EXPECT_TRUE(policies("run").range->chosen);
}

TEST_F(PolicyRun, AShortRunTakesTheOptimizersRateAndSaysSo) {
  std::string told;
  start_run(library(), open_spec(2), path("run"), {.note = [&](const std::string& line) { told += line + "\n"; }});
  EXPECT_NE(told.find("too short for a range test"), std::string::npos) << told;
  EXPECT_EQ(kept("run").optimizer.learning_rate, 0.05);
}

TEST_F(PolicyRun, BatchAndWarmUpFollowTheGradientNoise) {
  spec::RunSpec spec = open_spec(40);
  spec.measured = {.batch = true, .warmup_steps = true};
  ASSERT_TRUE(train(library(), spec, {}, "run").finished);
  const Policies found = policies("run");
  ASSERT_TRUE(found.noise);
  EXPECT_EQ(found.batch, kept("run").batch);
  EXPECT_EQ(found.batch & (found.batch - 1), 0);
  EXPECT_LE(found.batch, 40 * 640 / 200);
  EXPECT_EQ(found.warmup_steps, kept("run").schedule.warmup_steps);
  EXPECT_GT(found.warmup_steps, 0);
}

TEST_F(PolicyRun, RanksTakeOneRate) {
  ASSERT_TRUE(train(library(), open_spec(), one_host(2), "run").finished);
  spec::RunSpec given = open_spec();
  given.measured = {};
  given.optimizer.learning_rate = kept("run").optimizer.learning_rate;
  ASSERT_TRUE(train(library(), given, one_host(2), "given").finished);
  expect_same_bits("run", "given");
}

TEST_F(PolicyRun, RanksTakeOneBatch) {
  spec::RunSpec spec = open_spec(40);
  spec.measured = {.learning_rate = true, .batch = true, .warmup_steps = true};
  ASSERT_TRUE(train(library(), spec, one_host(2), "run").finished);
  EXPECT_EQ(policies("run").batch, kept("run").batch);
}

TEST_F(PolicyRun, RanksThatShareStatesMeasureTheRateTogether) {
  spec::RunSpec spec = open_spec(12, "adamw");
  spec.shard.zero = 2;
  ASSERT_TRUE(train(library(), spec, one_host(2), "run").finished);
  EXPECT_TRUE(policies("run").range->chosen);
}

TEST_F(PolicyRun, AStopDuringTheMeasurementLeavesNothing) {
  const RunOutcome outcome = start_run(library(), open_spec(), path("run"), stopped_after({}, 3));
  EXPECT_FALSE(outcome.finished);
  EXPECT_TRUE(outcome.directory.empty());
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(PolicyRun, AResumedRunKeepsItsRate) {
  spec::RunSpec spec = open_spec();
  start_run(library(), spec, path("run"), {.pause_epochs = 3});
  const double rate = kept("run").optimizer.learning_rate;
  ASSERT_TRUE(resume_run(library(), path("run"), 0, {}).finished);
  EXPECT_EQ(kept("run").optimizer.learning_rate, rate);
  ASSERT_TRUE(train(library(), spec, {}, "straight").finished);
  expect_same_bits("run", "straight");
}

TEST_F(PolicyRun, ARunThatHasBegunMeasuresNothing) {
  start_run(library(), open_spec(), path("run"), {.pause_epochs = 3});
  expect_error([&] { resume_run(library(), path("run"), 0, {}, {"optimizer.learning_rate=auto"}); }, ErrorKind::usage,
               {"'auto' is measured before the first step", "give a number"});
}

TEST_F(PolicyRun, ADamagedFileIsNamed) {
  ASSERT_TRUE(train(library(), open_spec(), {}, "run").finished);
  std::string text = read_text(path("run/policy.json"));
  text.replace(text.find("learning_rate\": ") + 16, 1, "9");
  write_atomically(path("run/policy.json"), text);
  expect_error([&] { read_policies(path("run/policy.json")); }, ErrorKind::data, {"policy.json"});
}

TEST(MeasuredKeys, GradientsOfOneRankCannotBeMeasuredWithEverything) {
  spec::RunSpec spec;
  spec.model.name = "mlp";
  spec.measured.batch = true;
  spec.mesh.tensor = 2;
  expect_error([&] { spec::resolve(spec); }, ErrorKind::usage, {"batch = 'auto'", "mesh.tensor=1"});
}

TEST(MeasuredKeys, OneCycleWarmsUpByItself) {
  spec::RunSpec spec;
  spec.model.name = "mlp";
  spec.measured.warmup_steps = true;
  spec.schedule.name = "one_cycle";
  expect_error([&] { spec::resolve(spec); }, ErrorKind::usage, {"schedule.warmup_steps = 'auto'", "one_cycle"});
}

TEST(MeasuredKeys, ABatchScheduleSaysEachBatch) {
  spec::RunSpec spec;
  spec.model.name = "mlp";
  spec.measured.batch = true;
  spec.batch_schedule = {.boundaries = {1}, .batches = {16, 32}};
  expect_error([&] { spec::resolve(spec); }, ErrorKind::usage, {"batch = 'auto'", "batch_schedule.batches"});
}

}  // namespace
}  // namespace weft::run
