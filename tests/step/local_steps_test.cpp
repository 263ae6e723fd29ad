// Ranks, which here are threads, that train on their own and then average what they have become.
#include "weft/step/local_steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "tests/support/ranks_rig.h"
#include "weft/base/error.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/step/step.h"

namespace weft::step {
namespace {

class LocalSteps : public RanksTest {
 protected:
  static Library library() { return drawn_library(drawn_images(), 320, 40); }
  static spec::RunSpec spec(int64_t period, double epochs = 2) {
    spec::RunSpec spec = drawn_spec("lenet5", epochs, 32, 0.02);  // 10 steps an epoch
    spec.averaging.period = period;
    spec::resolve(spec);
    return spec;
  }
  void train(const spec::RunSpec& spec, int ranks, const std::string& name) const {
    RanksTest::train(library(), spec, one_host(ranks), name);
  }
  /// Of steps and epochs.
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> found = RanksTest::losses(run, "step");
    for (const double loss : RanksTest::losses(run, "epoch")) found.push_back(loss);
    return found;
  }
};

TEST_F(LocalSteps, AMeanAfterEachStepOfPlainDescentIsTheMeanOfTheGradients) {
  spec::RunSpec apart = spec(1), together = spec(0);
  for (spec::RunSpec* run : {&apart, &together}) run->optimizer.momentum = 0;
  train(apart, 2, "apart");
  train(together, 2, "together");
  const auto a = losses("apart"), b = losses("together");
  ASSERT_EQ(a.size(), 3u);
  for (size_t step = 0; step < b.size(); ++step) EXPECT_NEAR(a[step], b[step], 1e-4 * b[step]) << step;
}

TEST_F(LocalSteps, LossesAreThoseOfAllRanksAndFall) {
  train(spec(4, 4), 4, "apart");
  train(spec(0, 4), 4, "together");
  const auto a = losses("apart"), b = losses("together");
  ASSERT_EQ(a.size(), 6u);
  EXPECT_NE(a[0], b[0]) << "each goes its way";
  for (size_t at = 0; at < b.size(); ++at) EXPECT_NEAR(a[at], b[at], 0.3 * b[at] + 0.05) << at;
  EXPECT_LT(a.back(), a.front());
}

/// Slow, and counts what is read of it.
class CountedData : public SlowlyDrawnData {
 public:
  CountedData(const data::DatasetInfo& info, int64_t samples, std::atomic<int64_t>& samples_read)
      : SlowlyDrawnData(info, samples), samples_read_(samples_read) {}
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    SlowlyDrawnData::get(key, sample);
    ++samples_read_;
  }

 private:
  std::atomic<int64_t>& samples_read_;
};

TEST_F(LocalSteps, ARankThatIsLostIsMissedLongBeforeTheNextMean) {
  std::atomic<int64_t> samples_read = 0;
  Library library = standard_library();
  library.add_data({.name = "drawn",
                    .form = "drawn:",
                    .summary = "",
                    .open = [&](const data::DataSpec&, data::Split split, const std::string&) {
                      const int64_t samples = split == data::Split::train ? 12000 : 40;  // twelve seconds of training
                      return std::make_unique<CountedData>(drawn_images(), samples, samples_read);
                    }});
  spec::RunSpec run = spec(1'000'000, 1);
  run.augment.normalise = false;
  comm::LocalGroup group({"a", "b"});
  const std::jthread loss([&](const std::stop_token& over) {
    while (!over.stop_requested() && samples_read < 2000)  // more than are read ahead of the first step
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    group.silence(1);
  });
  const auto errors = comm::errors_of_ranks(
      group, [&](comm::Communicator& ranks) { run::start_run(library, run, path("run"), {.ranks = &ranks}); });
  EXPECT_EQ(errors[0].substr(0, 18), "[training] at step") << errors[0];
  EXPECT_NE(errors[0].find(" of epoch 1: rank 1 on host 'b' has given no sign of life for 5"), std::string::npos)
      << errors[0];
}

TEST_F(LocalSteps, ARunThatWasCutGoesOnFromAMean) {
  const Library data = library();
  spec::RunSpec run = spec(3, 3);
  run.averaging.slow_momentum = 0.5;
  run.averaging.adaptive = true;
  train(run, 2, "whole");
  const run::RunOutcome cut = on_ranks(one_host(2), [&](const run::RunOptions& given) {
    return run::start_run(data, run, path("cut"), given.ranks->rank() == 1 ? stopped_after(given, 5) : given);
  });
  EXPECT_FALSE(cut.finished);
  const auto go_on = [&](const run::RunOptions& options) { return run::resume_run(data, path("cut"), 1, options); };
  EXPECT_TRUE(on_ranks(one_host(2), go_on).finished);
  expect_same_bits("cut", "whole");
}

TEST_F(LocalSteps, BetweenMeansOfAllStatesOnlyWeightsAreSent) {
  spec::RunSpec run = spec(2);
  run.averaging.states_every = 5;
  const TrainingStep step =
      build_training_step(standard_library(), run, {.batch = 16, .shape = {1, 28, 28}, .classes = 10}, {.ranks = 2});
  const auto sent = [](const Graph& mean) {
    int64_t numbers = 0;
    for (const StateUpdate& update : mean.updates()) numbers += mean.shape(update.value).elements();
    return numbers;
  };
  int64_t weights = 0;
  for (const auto& parameter : step.parameters) weights += parameter.shape.elements();
  ASSERT_TRUE(step.weight_averaging);
  EXPECT_EQ(sent(*step.weight_averaging), weights);
  EXPECT_EQ(sent(*step.averaging), 2 * weights) << "momenta, too";
  run.averaging.states_every = 1;
  EXPECT_FALSE(
      build_training_step(standard_library(), run, {.batch = 16, .shape = {1, 28, 28}, .classes = 10}, {.ranks = 2})
          .weight_averaging);
}

TEST_F(LocalSteps, WhereAllMeansAreOfWeightsAndNothingElseIsKeptTheyAreOfAllStates) {
  spec::RunSpec of_weights = spec(2), of_states = spec(2);
  for (spec::RunSpec* run : {&of_weights, &of_states}) run->optimizer.momentum = 0;
  of_weights.averaging.states_every = 5;
  train(of_weights, 2, "weights");
  train(of_states, 2, "states");
  EXPECT_EQ(losses("weights"), losses("states"));
}

TEST_F(LocalSteps, RanksKeepTheirMomentaBetweenMeansOfAllStates) {
  spec::RunSpec of_weights = spec(2), of_states = spec(2);
  of_weights.averaging.states_every = 5;
  train(of_weights, 2, "weights");
  train(of_states, 2, "states");
  const auto a = losses("weights"), b = losses("states");
  EXPECT_NE(a, b);
  for (size_t at = 0; at < b.size(); ++at) EXPECT_NEAR(a[at], b[at], 0.05 * b[at]) << at;
}

/// It is asked to stop at the first mean, which is of the weights alone.
TEST_F(LocalSteps, ARunWhoseMeansAreOfWeightsEndsAtOneOfAllStatesAndGoesOnThere) {
  const Library data = library();
  spec::RunSpec run = spec(2, 3);
  run.averaging.slow_momentum = 0.5;
  run.averaging.states_every = 2;
  train(run, 2, "whole");
  const run::RunOutcome cut = on_ranks(one_host(2), [&](const run::RunOptions& given) {
    return run::start_run(data, run, path("cut"), stopped_after(given, 0));
  });
  EXPECT_FALSE(cut.finished);
  EXPECT_EQ(cut.summary.steps, 4);
  const auto go_on = [&](const run::RunOptions& options) { return run::resume_run(data, path("cut"), 1, options); };
  EXPECT_TRUE(on_ranks(one_host(2), go_on).finished);
  expect_same_bits("cut", "whole");
}

/// Every third step, of means every fourth.
TEST_F(LocalSteps, AValidationThatIsDueWaitsForAMean) {
  spec::RunSpec run = spec(4);
  run.validation = "0.1";  // 288 samples are left, nine steps an epoch
  run.evaluation.every_steps = 3;
  train(run, 2, "run");
  std::vector<int64_t> at;
  for (const auto& record : records("run", "validation")) at.push_back(record.at("step"));
  EXPECT_EQ(at, (std::vector<int64_t>{4, 8, 13, 17}));
}

/// One mean of one rank, whose weights are the mean: what is left is the slow momentum.
TEST_F(LocalSteps, SlowMomentumFollowsItsFormula) {
  const Library library = standard_library();
  spec::RunSpec run = spec(4);
  run.model.name = "mlp";
  run.averaging.slow_momentum = 0.5;
  run.averaging.slow_learning_rate = 0.8;
  const TrainingStep step = build_training_step(library, run, {.batch = 4, .shape = {3}, .classes = 2});
  const CpuBackend backend(1);
  const CompiledStep compiled = compile(*step.averaging, backend, {});
  Executor executor(compiled.graph, compiled.plan, backend);
  State state = initial_state(step, 3);
  const std::string name = step.parameters.front().name;
  float* weight = state.get(name).data_as<float>();
  double anchor = static_cast<double>(*weight), momentum = 0;
  for (int round = 0; round < 3; ++round) {
    const double rate = 0.1 / (round + 1);
    weight = state.get(name).data_as<float>();
    *weight += 0.25f;  // what the steps have made of it
    const double mean = static_cast<double>(*weight);
    executor.bind_state(state);
    executor.set_scalar(kRoundRate, rate);
    executor.set_scalar(kInverseRoundRate, 1 / rate);
    executor.run();
    momentum = 0.5 * momentum + (anchor - mean) / rate;
    anchor -= 0.8 * rate * momentum;
    EXPECT_NEAR(static_cast<double>(state.plain(name).data_as<float>()[0]), anchor, 1e-5) << round;
  }
}

TEST_F(LocalSteps, AnAdaptivePeriodShrinksWithTheLoss) {
  const spec::AveragingSpec spec{.period = 16, .adaptive = true};
  EXPECT_EQ(adapted_period(spec, {.first_loss = 2, .period = 16}, 0.5), 8) << "sqrt(1/4) of 16";
  EXPECT_EQ(adapted_period(spec, {.first_loss = 2, .period = 10}, 0.5), 8);
  EXPECT_EQ(adapted_period(spec, {.first_loss = 2, .period = 8}, 0.5), 4) << "no less than before: half of it";
  EXPECT_EQ(adapted_period(spec, {.first_loss = 2, .period = 1}, 0.5), 1);
  EXPECT_EQ(adapted_period({.period = 16}, {.first_loss = 2, .period = 16}, 0.1), 16) << "not adaptive";
}

TEST_F(LocalSteps, ARankThatKeepsTheOthersWaitingIsNamedAndItsTimeCounts) {
  const Library usual = library(), slow = drawn_library<SlowlyDrawnData>(drawn_images(), 320, 40);
  spec::RunSpec run = spec(8, 30);
  run.evaluation.every_epochs = 0;
  const run::RunOutcome outcome = on_ranks(one_host(2), [&](const run::RunOptions& options) {
    return run::start_run(options.ranks->rank() == 1 ? slow : usual, run, path("run"), options);
  });
  const auto named = records("run", "rank_pace");
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].at("rank"), 1);
  EXPECT_EQ(named[0].at("is_slow"), true);
  const std::vector<double>& means = outcome.summary.rank_step_seconds;
  ASSERT_EQ(means.size(), 2u);
  EXPECT_GT(means[1], 2 * means[0]);
  // The first rank's steps, with its waits at each mean, take as long as the other's.
  EXPECT_GT(outcome.summary.step_seconds / static_cast<double>(outcome.summary.steps), 0.8 * means[1]);
}

void expect_refused(spec::RunSpec spec, const std::string& message) {
  try {
    spec::resolve(spec);
    FAIL() << "not refused: " << message;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST_F(LocalSteps, WhatCannotBeIsSaid) {
  spec::RunSpec run = spec(0);
  run.averaging.slow_momentum = 0.5;
  expect_refused(run, "[averaging] without averaging.period");
  run = spec(4);
  run.virtual_ranks = 2;
  expect_refused(run, "averaging.period = 4 with virtual_ranks = 2");
  run = spec(4);
  run.batch_norm = "synchronised";
  expect_refused(run, "between two means ranks exchange nothing");
  run = spec(4);
  run.precision = "f16";
  expect_refused(run, "with a loss that is scaled");
}

TEST_F(LocalSteps, ALossThatIsNotFiniteEndsAllRanksAtTheNextMean) {
  const Library data = library();
  spec::RunSpec run = spec(4);
  run.optimizer.learning_rate = 1e6;
  std::vector<std::string> messages(2);
  comm::run_ranks(one_host(2), [&](comm::Communicator& ranks) {
    try {
      run::start_run(data, run, path("run"), {.ranks = &ranks});
    } catch (const Error& error) {
      messages[static_cast<size_t>(ranks.rank())] = error.what();
    }
  });
  EXPECT_EQ(messages[0].find("the loss became "), 0u) << messages[0];
  EXPECT_EQ(messages[1].substr(0, 30), messages[0].substr(0, 30));
}

}  // namespace
}  // namespace weft::step
