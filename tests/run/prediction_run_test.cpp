// What is said of runs before they begin, and what runs say of it.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/support/ranks_rig.h"
#include "weft/base/files.h"
#include "weft/predict/noise_scale.h"
#include "weft/program/decisions.h"
#include "weft/run/earlier_runs.h"
#include "weft/run/metrics_history.h"
#include "weft/run/prediction_file.h"

namespace weft::run {
namespace {

/// Reads as fast as others until so many samples were read; then each takes longer, or leaves memory behind.
class ChangingData : public DrawnData {
 public:
  using DrawnData::DrawnData;
  static inline std::atomic<int64_t> reads = 0, changes_at = INT64_MAX, delay_microseconds = 0, leaked_bytes = 0;
  static inline std::vector<std::unique_ptr<char[]>>* leaks = nullptr;  // of the test
  static inline std::mutex leaks_mutex;
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    if (++reads > changes_at) {
      if (delay_microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_microseconds));
      if (leaked_bytes > 0 && leaks != nullptr) {
        auto leaked = std::make_unique<char[]>(static_cast<size_t>(leaked_bytes));
        std::memset(leaked.get(), 1, static_cast<size_t>(leaked_bytes));
        const std::lock_guard lock(leaks_mutex);  // several workers read samples at a time
        leaks->push_back(std::move(leaked));
      }
    }
    DrawnData::get(key, sample);
  }
};

class PredictionRun : public RanksTest {
 protected:
  PredictionRun() {
    setenv("WEFT_CACHE_DIR", path("cache").c_str(), 1);
    ChangingData::reads = 0;
    ChangingData::changes_at = INT64_MAX;
    ChangingData::delay_microseconds = ChangingData::leaked_bytes = 0;
  }
  ~PredictionRun() override { unsetenv("WEFT_CACHE_DIR"); }

  static spec::RunSpec spec(double epochs = 2) {
    spec::RunSpec spec = drawn_spec("lenet5", epochs, 32, 0.01);
    spec::resolve(spec);
    return spec;
  }
  RunOutcome train_saying(const Library& library, const spec::RunSpec& spec, const std::string& run,
                          std::vector<std::string>& lines) const {
    return start_run(library, spec, path(run), {.note = [&](const std::string& line) { lines.push_back(line); }});
  }
  static int64_t count(const std::vector<std::string>& lines, const std::string& part) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  predict::Prediction prediction(const std::string& run) const {
    return *read_prediction(RunDirectory::open(path(run)), {});
  }
  const Library library_ = drawn_library(drawn_images(), 320, 70);
};

TEST_F(PredictionRun, IsThereBeforeTheFirstStepAndSaysWhatTheRunWillTake) {
  start_run(library_, spec(), path("run"), stopped_after({}, 1));
  const predict::Prediction predicted = prediction("run");
  EXPECT_EQ(predicted.steps(), 20);
  EXPECT_EQ(predicted.strategy.batch, 32);
  EXPECT_GT(predicted.step().expected, 0);
  EXPECT_LT(predicted.step().low, predicted.step().high);
  EXPECT_NE(predicted.times_from.find("weft rates --ops"), std::string::npos) << "nothing was measured";
}

TEST_F(PredictionRun, ItsMemoryIsThatOfTheSummary) {
  const RunOutcome outcome = start_run(library_, spec(), path("run"), {});
  EXPECT_EQ(prediction("run").memory.total(), outcome.summary.planned_total_bytes);
  EXPECT_GT(prediction("run").memory.states, 0);
}

TEST_F(PredictionRun, RanksThatShareACoreTakeTurns) {
  comm::run_ranks(one_host(2), [&](comm::Communicator& ranks) {
    const auto prepared = program::prepare_run(library_, spec(), {}, {}, &ranks, "", "default");
    predict::Sources sources = sources_here(*prepared, /*loading_seconds=*/0, /*exact=*/true, {});
    const auto forward = [&](int64_t cores) {
      sources.cores = cores;
      return predict::predict_run(*prepared, sources).longest().time.of(predict::Part::forward);
    };
    const double own = forward(2);
    EXPECT_NEAR(forward(1) / own, 2, 1e-6);
  });
}

TEST_F(PredictionRun, GoesOnWithItAndItsStrategy) {
  start_run(library_, spec(), path("run"), stopped_after({}, 2));
  const std::string before = read_text(path("run/prediction.json"));
  EXPECT_TRUE(resume_run(library_, path("run"), 1, {}).finished);
  EXPECT_EQ(read_text(path("run/prediction.json")), before);
}

TEST_F(PredictionRun, OnOtherRanksItIsPredictedAnew) {
  start_run(library_, spec(), path("run"), stopped_after({}, 2));
  on_ranks(one_host(2), [&](const RunOptions& options) { return resume_run(library_, path("run"), 1, options); });
  EXPECT_EQ(prediction("run").strategy.ranks, 2);
  EXPECT_GT(prediction("run").longest().time.of(predict::Part::exchange), 0);
}

TEST_F(PredictionRun, ADamagedPredictionIsNamedAndTheRunGoesOn) {
  start_run(library_, spec(), path("run"), stopped_after({}, 2));
  std::string text = read_text(path("run/prediction.json"));
  text[text.find("expected") + 12] ^= 1;
  write_atomically(path("run/prediction.json"), text);
  std::vector<std::string> lines;
  resume_run(library_, path("run"), 1, {.note = [&](const std::string& line) { lines.push_back(line); }});
  EXPECT_TRUE(std::filesystem::exists(path("run/summary.json")));
}

TEST_F(PredictionRun, APlantedSlowdownIsSaidOnceWhileItRuns) {
  const Library library = drawn_library<ChangingData>(drawn_images(), 320, 70);
  ChangingData::changes_at = 32 * 90;
  ChangingData::delay_microseconds = 1500;  // of each of 32 samples
  std::vector<std::string> lines;
  train_saying(library, spec(20), "run", lines);
  EXPECT_EQ(count(lines, "steps take "), 1) << testing::PrintToString(lines);
}

TEST_F(PredictionRun, APlantedLeakIsSaidOnceWhileItRuns) {
  std::vector<std::unique_ptr<char[]>> leaks;
  ChangingData::leaks = &leaks;
  const Library library = drawn_library<ChangingData>(drawn_images(), 320, 70);
  ChangingData::changes_at = 32 * 20;
  ChangingData::leaked_bytes = 200'000;
  std::vector<std::string> lines;
  train_saying(library, spec(6), "run", lines);
  ChangingData::leaks = nullptr;
  EXPECT_EQ(count(lines, "of memory, more than the"), 1) << testing::PrintToString(lines);
}

TEST_F(PredictionRun, SaysNothingWhereAllIsAsPredicted) {
  std::vector<std::string> lines;
  train_saying(library_, spec(4), "run", lines);
  EXPECT_EQ(count(lines, "of memory, more than the"), 0) << testing::PrintToString(lines);
}

TEST_F(PredictionRun, EarlierRunsTellWhenATargetIsReached) {
  spec::RunSpec first = spec(4);
  for (int64_t seed = 1; seed <= 3; ++seed) {
    first.seed = seed;
    start_run(library_, first, path("earlier-" + std::to_string(seed)), {});
  }
  spec::RunSpec aiming = spec(4);
  aiming.seed = 9;
  aiming.stop.monitor = "test_loss";
  aiming.stop.target = "100";  // which every run reaches at its first evaluation
  spec::resolve(aiming);
  start_run(library_, aiming, path("run"), stopped_after({}, 1));
  const auto target = prediction("run").to_target;
  ASSERT_TRUE(target);
  EXPECT_EQ(target->runs, 3);
  EXPECT_EQ(target->reached, 3);
  EXPECT_NEAR(target->share.expected, 0.25, 0.01);
  EXPECT_LT(target->seconds.low, target->seconds.high);
  EXPECT_GT(target->pace_spread, 0);
}

TEST_F(PredictionRun, ATenthIntoTheRunATargetIsSaidAnew) {
  start_run(library_, spec(4), path("earlier"), {});
  spec::RunSpec aiming = spec(40);
  aiming.stop.monitor = "test_loss";
  aiming.stop.target = "100";
  aiming.evaluation.every_epochs = 8;  // it reaches that at once, but does not look before a tenth has gone by
  spec::resolve(aiming);
  std::vector<std::string> lines;
  train_saying(library_, aiming, "run", lines);
  const nlohmann::json root = nlohmann::json::parse(read_text(path("run/prediction.json")));
  ASSERT_TRUE(root.contains("to_target_at_a_tenth"));
  const nlohmann::json& seconds = root["to_target_at_a_tenth"]["seconds"];
  EXPECT_LT(seconds["low"], seconds["high"]);
  EXPECT_TRUE(read_prediction(RunDirectory::open(path("run")), {})) << "it is whole";
}

TEST_F(PredictionRun, RunsOfAnotherModelSayNothing) {
  spec::RunSpec other = spec(1);
  other.model.name = "mlp";
  start_run(library_, other, path("earlier"), {});
  EXPECT_TRUE(earlier_curves(library_, folder_, path("none"), spec(), "test_loss").empty());
  spec::RunSpec alike = spec(1);
  alike.optimizer.learning_rate = 0.02;
  start_run(library_, alike, path("alike"), {});
  const auto curves = earlier_curves(library_, folder_, path("none"), spec(), "test_loss");
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_LT(curves[0].likeness, 1);
  EXPECT_EQ(curves[0].seconds.size(), curves[0].values.size());
}

class GradientNoise : public PredictionRun {
 protected:
  static spec::RunSpec measuring(int64_t every, int64_t accumulate = 1) {
    spec::RunSpec spec = PredictionRun::spec();
    spec.metrics.noise_every = every;
    spec.metrics.gradient_norm = true;
    spec.batch = 32 / accumulate;
    spec.accumulate = accumulate;
    spec::resolve(spec);
    return spec;
  }
  std::vector<predict::GradientNorms> norms(const std::string& run) const {
    std::vector<predict::GradientNorms> found;
    for (const nlohmann::json& record : records(run, "noise"))
      found.push_back({record.at("step"), record.at("small_batch"), record.at("small_square"), record.at("large_batch"),
                       record.at("large_square")});
    return found;
  }
};

TEST_F(GradientNoise, MeasuringItChangesNoWeight) {
  start_run(library_, measuring(0), path("without"), {});
  start_run(library_, measuring(3), path("with"), {});
  const Checkpoint one = newest("with"), other = newest("without");
  for (const std::string& name : other.state.names()) {
    const Tensor a = one.state.plain(name), b = other.state.plain(name);
    ASSERT_EQ(a.bytes(), b.bytes()) << name;
    EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())), 0) << name;
  }
  EXPECT_EQ(norms("with").size(), 6u);
  EXPECT_TRUE(norms("without").empty());
}

TEST_F(GradientNoise, OfOneProcessComparesHalfABatchWithTheWhole) {
  start_run(library_, measuring(4), path("run"), {});
  for (const predict::GradientNorms& of : norms("run")) {
    EXPECT_EQ(of.small_batch, 16);
    EXPECT_EQ(of.large_batch, 32);
    EXPECT_GT(of.small_square, 0);
  }
}

TEST_F(GradientNoise, OfAccumulatedBatchesComparesOneWithAll) {
  start_run(library_, measuring(4, 4), path("run"), {});
  ASSERT_FALSE(norms("run").empty());
  EXPECT_EQ(norms("run")[0].small_batch, 8);
  EXPECT_EQ(norms("run")[0].large_batch, 32);
}

TEST_F(GradientNoise, OfRanksComparesAPartWithTheMean) {
  train(library_, measuring(4), one_host(2), "run");
  ASSERT_FALSE(norms("run").empty());
  EXPECT_EQ(norms("run")[0].small_batch, 16);
  EXPECT_EQ(norms("run")[0].large_batch, 32);
}

TEST_F(GradientNoise, SmallBatchesHaveTheLargerGradients) {
  // Of drawn pixels and labels: nearly all noise.
  start_run(library_, measuring(1, 4), path("run"), {});
  const auto found = predict::estimate_noise_scale(norms("run"));
  ASSERT_TRUE(found);
  EXPECT_GT(found->noise, 0);
  EXPECT_GT(found->scale.expected, 32);
}

TEST_F(GradientNoise, WithWeightsThatRanksShareIsRefused) {
  spec::RunSpec spec = PredictionRun::spec();
  spec.metrics.noise_every = 5;
  spec.shard.zero = 3;
  expect_error([&] { spec::resolve(spec); }, ErrorKind::usage, {"metrics.noise_every = 5", "shard.zero"});
}

}  // namespace
}  // namespace weft::run
