// Shares of grains decide nothing but the order of sums: losses, metrics and statistics are those of equal shares, on
// any number of processes, which here are threads.
#include "weft/step/grains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/ranks_rig.h"
#include "weft/base/files.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::step {
namespace {

using testing::ElementsAre;

constexpr int64_t kGrainSteps = 20, kGrainBatch = 64, kGrains = 16;

class Grains : public RanksTest {
 protected:
  /// An epoch is a step, so that the loss of each is recorded.
  static Library library_of(const data::DatasetInfo& info) { return drawn_library(info, kGrainBatch, 70); }

  static spec::RunSpec spec(const std::string& model, double learning_rate = 0.01) {
    spec::RunSpec spec = drawn_spec(model, kGrainSteps, kGrainBatch, learning_rate);
    spec.balance.grains = kGrains;
    spec.evaluation.every_epochs = 0;  // after the last step alone
    spec.checkpoint.every_epochs = 0;
    return spec;
  }

  static spec::RunSpec without_grains(spec::RunSpec spec) {
    spec.balance.grains = 0;
    return spec;
  }

  /// Of a run that was stopped, as its newest checkpoint records them.
  void set_shares(const std::string& run, const std::vector<int64_t>& shares) const {
    const auto file = run::CheckpointStore(path(run + "/checkpoints"), 2).list().front() / "manifest.json";
    run::Manifest manifest = run::parse_manifest(read_text(file), file.string());
    ASSERT_EQ(manifest.position.grains.size(), shares.size());
    manifest.position.grains = shares;
    write_atomically(file, run::print_manifest(manifest));
  }

  /// A run whose ranks have these shares from its second step or so on.
  void train_with_shares(const Library& library, const spec::RunSpec& spec, const std::vector<int64_t>& shares,
                         const std::string& name) {
    const Hosts hosts = one_host(static_cast<int>(shares.size()));
    on_ranks(hosts, [&](const run::RunOptions& given) {
      return run::start_run(library, spec, path(name), stopped_after(given, 1));
    });
    set_shares(name, shares);
    const run::RunOutcome outcome =
        on_ranks(hosts, [&](const run::RunOptions& given) { return run::resume_run(library, path(name), 0, given); });
    EXPECT_TRUE(outcome.finished);
    EXPECT_EQ(outcome.summary.rank_grains, shares);
  }

  /// Of each step, and what is measured after the last one.
  void expect_same_curve(const std::string& run, const std::string& wanted, double tolerance = 1e-5) const {
    const auto a = records(run, "epoch"), b = records(wanted, "epoch");
    ASSERT_EQ(a.size(), static_cast<size_t>(kGrainSteps)) << run;
    ASSERT_EQ(b.size(), a.size()) << wanted;
    for (size_t step = 0; step < a.size(); ++step)
      for (const char* key : {"train_loss", "train_accuracy", "test_loss"}) {
        if (!b[step].contains(key) || b[step][key].is_null()) continue;
        const double value = b[step][key];
        EXPECT_NEAR(a[step].at(key).get<double>(), value, tolerance * std::abs(value)) << run << " " << step << key;
      }
    EXPECT_FALSE(b.back()["test_loss"].is_null());
  }

  void expect_same_with_all_shares(const Library& library, const spec::RunSpec& spec) {
    run::start_run(library, spec, path("alone"), {});
    train(library, spec, one_host(2), "even");
    expect_same_curve("even", "alone");
    train_with_shares(library, spec, {3, 13}, "uneven");
    expect_same_curve("uneven", "even");
    train_with_shares(library, spec, {1, 10, 5}, "three");
    expect_same_curve("three", "even");
  }
};

TEST_F(Grains, TheMeanIsThatOfTheWholeBatch) {
  const Library library = library_of(drawn_images());
  spec::RunSpec run = spec("lenet5");
  run.clip.norm = 1;
  expect_same_with_all_shares(library, run);
  run::start_run(library, without_grains(run), path("plain"), {});
  expect_same_curve("uneven", "plain");
}

TEST_F(Grains, BatchNormEmaAndMixedImages) {
  spec::RunSpec run = spec("resnet9", 0.002);
  run.model.options = {{"width", "8"}};
  run.ema.decay = 0.9;
  run.augment.crop_padding = 2;
  run.augment.mixup = 0.4;
  run.augment.flip = "random";
  expect_same_with_all_shares(library_of(drawn_images(3)), run);
}

TEST_F(Grains, MasksOfDropoutAreThoseOfTheGrain) {
  spec::RunSpec run = spec("vit_tiny", 0.001);
  run.model.options = {{"patch", "8"}, {"width", "16"}, {"layers", "1"}, {"heads", "2"}, {"dropout", "0.2"}};
  run.optimizer.name = "adamw";
  const Library library = library_of(drawn_images());
  expect_same_with_all_shares(library, run);
  // No two grains have one mask: with a single grain, which has the seed's own, losses are others.
  run.balance.grains = 1;
  run::start_run(library, run, path("one grain"), {});
  EXPECT_NE(losses("one grain", "epoch"), losses("alone", "epoch"));
}

TEST_F(Grains, ALossOverTheLabelsThatCount) {
  const Library library = library_of(drawn_translations());
  const spec::RunSpec run = spec("seq2seq_attention");
  expect_same_with_all_shares(library, run);
  run::start_run(library, without_grains(run), path("plain"), {});
  expect_same_curve("uneven", "plain", 1e-4);
}

TEST_F(Grains, WithStatesOfTheOptimiserThatRanksShare) {
  spec::RunSpec run = spec("lenet5");
  run.optimizer.name = "adamw";
  run.optimizer.learning_rate = 0.001;
  const Library library = library_of(drawn_images());
  train(library, run, one_host(2), "whole");
  run.shard.zero = 1;
  train_with_shares(library, run, {12, 4}, "shared");
  expect_same_curve("shared", "whole");
}

TEST_F(Grains, WithALossThatIsScaled) {
  spec::RunSpec run = spec("lenet5");
  run.loss_scaling.mode = "dynamic";
  const Library library = library_of(drawn_images());
  train(library, run, one_host(2), "even");
  train_with_shares(library, run, {12, 4}, "uneven");
  expect_same_curve("uneven", "even");
}

// What is left out of a gradient depends on who has computed which grains.
TEST_F(Grains, WithGradientsThatAreCompressed) {
  spec::RunSpec run = spec("lenet5");
  run.compression.method = "bf16";
  run.compression.tensors = "all";
  const Library library = library_of(drawn_images());
  train(library, run, one_host(2), "even");
  train_with_shares(library, run, {12, 4}, "uneven");
  expect_same_curve("uneven", "even", 0.02);
}

TEST_F(Grains, AnotherNumberOfRanksGoesOnWithEqualShares) {
  const Library library = library_of(drawn_images());
  const spec::RunSpec run = spec("lenet5");
  run::start_run(library, run, path("alone"), {});
  on_ranks(one_host(2), [&](const run::RunOptions& given) {
    return run::start_run(library, run, path("cut"), stopped_after(given, 20));
  });
  set_shares("cut", {3, 13});
  const run::RunOutcome outcome = on_ranks(
      one_host(3), [&](const run::RunOptions& given) { return run::resume_run(library, path("cut"), 0, given); });
  EXPECT_THAT(outcome.summary.rank_grains, ElementsAre(5, 5, 6));
  expect_same_curve("cut", "alone");
}

// A rank whose data come late; nobody is stopped, and no sample is lost or trained twice on the way.
TEST_F(Grains, ASlowRankTakesFewerOfThem) {
  constexpr int64_t kSamples = 320;
  const Library usual = drawn_library(drawn_images(), kSamples, 70);
  const Library slow = drawn_library<SlowlyDrawnData>(drawn_images(), kSamples, 70);
  spec::RunSpec run = spec("lenet5");
  run.epochs = 28;  // of 5 steps of 64 ms
  run.loader.prefetch = 2;
  const auto train_as = [&](const spec::RunSpec& spec, const Library& second, const std::string& name) {
    return on_ranks(one_host(2), [&](const run::RunOptions& given) {
      return run::start_run(given.ranks->rank() == 1 ? second : usual, spec, path(name), given);
    });
  };
  const run::RunOutcome outcome = train_as(run, slow, "relieved");
  const auto changes = records("relieved", "shares");
  ASSERT_GE(changes.size(), 1u);
  EXPECT_EQ(changes[0].at("before"), (std::vector<int64_t>{8, 8}));
  EXPECT_LT(changes[0].at("grains")[1], 6);
  EXPECT_GT(changes[0].at("from_step"), changes[0].at("step"));
  EXPECT_LT(outcome.summary.rank_grains[1], 6);
  EXPECT_EQ(records("relieved", "rank_pace").size(), 1u) << "with its smaller share it is not as fast as the others";
  run.balance.by_speed = false;
  EXPECT_THAT(train_as(run, usual, "even").summary.rank_grains, ElementsAre(8, 8));
  const auto a = records("relieved", "epoch"), b = records("even", "epoch");
  ASSERT_EQ(a.size(), b.size());
  for (size_t epoch = 0; epoch < a.size(); ++epoch) {
    const double loss = b[epoch]["train_loss"];
    EXPECT_NEAR(a[epoch]["train_loss"].get<double>(), loss, 1e-4 * loss) << epoch;
  }
}

std::string refusal_of(spec::RunSpec spec) {
  return test::error_of([&] { spec::resolve(spec); }, ErrorKind::usage);
}

TEST_F(Grains, WhatCannotBeIsSaid) {
  spec::RunSpec run = spec("lenet5");
  run.batch = 100;
  EXPECT_EQ(refusal_of(run),
            "batch = 100 cannot be divided into 16 equal grains; set balance.grains=10, or a batch of 112");
  run = spec("lenet5");
  run.accumulate = 2;
  EXPECT_NE(refusal_of(run).find("set batch = 128, balance.grains = 32 and accumulate = 1"), std::string::npos);
  const auto expect_refused = [](const spec::RunSpec& refused, const std::string& text) {
    const std::string refusal = refusal_of(refused);
    EXPECT_NE(refusal.find("balance.grains = 16 with " + text), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("leave "), std::string::npos) << refusal;
  };
  run = spec("lenet5");
  run.virtual_ranks = 4;
  expect_refused(run, "virtual_ranks = 4");
  run = spec("lenet5");
  run.averaging.period = 4;
  expect_refused(run, "averaging.period = 4");
  run = spec("lenet5");
  run.shard.zero = 2;
  expect_refused(run, "shard.zero = 2");
  run = spec("lenet5");
  run.batch_norm = "synchronised";
  expect_refused(run, "batch_norm = 'synchronised'");
}

TEST_F(Grains, FewerOfThemThanRanksAreRefused) {
  const Library library = library_of(drawn_images());
  spec::RunSpec run = spec("lenet5");
  run.balance.grains = 2;
  std::string message;
  comm::run_ranks(one_host(3), [&](comm::Communicator& ranks) {
    const std::string error = test::error_of([&] { run::start_run(library, run, path("refused"), {.ranks = &ranks}); });
    if (ranks.rank() == 0) message = error;
  });
  EXPECT_EQ(message,
            "balance.grains = 2 for 3 ranks, each of which takes at least one; set balance.grains to 3 or more that "
            "divide the batch of 64, or start fewer ranks");
}

TEST(SharesOfGrains, ThatDoNotFitAreEqualOnes) {
  EXPECT_THAT(equal_grains(16, 3), ElementsAre(5, 5, 6));
  EXPECT_THAT(grains_to_begin_with({3, 13}, 16, 2), ElementsAre(3, 13));
  EXPECT_THAT(grains_to_begin_with({3, 12}, 16, 2), ElementsAre(8, 8));
  EXPECT_THAT(grains_to_begin_with({0, 16}, 16, 2), ElementsAre(8, 8));
  EXPECT_THAT(grains_to_begin_with({3, 13}, 16, 4), ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(first_grain({3, 4, 9}, 2), 7);
}

}  // namespace
}  // namespace weft::step
