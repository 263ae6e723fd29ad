// Whole runs on several ranks, which here are threads: they are the run of one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "tests/support/ranks_rig.h"
#include "weft/base/files.h"
#include "weft/base/seal.h"
#include "weft/comm/measure/measure.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/models/builder.h"

namespace weft::run {
namespace {

constexpr int64_t kTraining = 320, kTest = 70;

Library library_of(const data::DatasetInfo& info, int64_t training = kTraining, int64_t spoiled = -1) {
  return drawn_library(info, training, kTest, spoiled);
}

data::DatasetInfo values() {
  return {.name = "drawn",
          .sample_shape = {5},
          .classes = 1,
          .task = "regression",
          .sample_dtype = DType::f32,
          .target_dtype = DType::f32,
          .target_shape = {1}};
}

class RunOnRanks : public RanksTest {
 protected:
  spec::RunSpec spec(const std::string& model, double epochs) const {
    spec::RunSpec spec = drawn_spec(model, epochs, 64, 0.01);  // 5 steps an epoch
    spec::resolve(spec);
    return spec;
  }

  /// What the ranks throw, each.
  std::vector<std::string> errors_on_ranks(const Hosts& hosts, const Body& body) const {
    std::vector<std::string> messages(hosts.size());
    comm::run_ranks(hosts, [&](comm::Communicator& ranks) {
      try {
        body({.ranks = &ranks});
      } catch (const comm::SharedError& error) {
        messages[static_cast<size_t>(ranks.rank())] = error.what();
      }
    });
    return messages;
  }

  void expect_same_curves(const std::string& run, const std::string& wanted) const {
    for (const char* kind : {"step", "epoch"}) {
      const auto a = records(run, kind), b = records(wanted, kind);
      ASSERT_EQ(a.size(), b.size()) << kind;
      for (size_t at = 0; at < a.size(); ++at)
        for (const char* key : {"loss", "train_loss", "test_loss", "test_accuracy", "test_rmse"}) {
          if (!b[at].contains(key) || b[at][key].is_null()) continue;
          const double value = b[at][key];
          EXPECT_NEAR(a[at].at(key).get<double>(), value, 1e-5 * std::abs(value) + 1e-12) << kind << " " << at << key;
        }
    }
  }
};

TEST_F(RunOnRanks, TheTestDataAreMeasuredWhicheverCheckpointIsTheBest) {
  const Library library = library_of(drawn_images());
  for (const double epochs : {1.0, 3.0}) {  // after one epoch the last checkpoint is the best
    spec::RunSpec validated = spec("mlp", epochs);
    validated.validation = "0.2";
    const std::string name = fmt::format("validated-{:g}", epochs);
    const RunOutcome outcome = train(library, validated, one_host(2), name);
    EXPECT_TRUE(outcome.finished);
    EXPECT_TRUE(std::filesystem::exists(path(name + "/summary.json")));
    EXPECT_TRUE(outcome.summary.test_loss);
  }
}

TEST_F(RunOnRanks, TheLossCurveIsThatOfOneProcess) {
  const Library library = library_of(drawn_images());
  for (const int count : {1, 2, 4}) train(library, spec("lenet5", 10), one_host(count), std::to_string(count));
  EXPECT_EQ(records("1", "epoch").back().at("step"), 50);
  expect_same_curves("2", "1");
  expect_same_curves("4", "1");
}

TEST_F(RunOnRanks, AccumulatedAndAugmentedBatchesToo) {
  const Library library = library_of(drawn_images());
  spec::RunSpec run = spec("lenet5", 3);
  run.batch = 32;
  run.accumulate = 2;
  run.augment.crop_padding = 2;
  run.augment.mixup = 0.4;
  run.ema.decay = 0.9;
  run.clip.norm = 1;
  for (const int count : {1, 2}) train(library, run, one_host(count), std::to_string(count));
  expect_same_curves("2", "1");
}

TEST_F(RunOnRanks, StepsOfMoreAndFewerBatchesToo) {
  const Library library = library_of(drawn_images());
  spec::RunSpec run = spec("lenet5", 3);
  run.batch = 32;
  run.batch_schedule = {.boundaries = {1, 2}, .batches = {}, .accumulate = {1, 4, 3}};
  run.optimizer.name = "adamw";
  run.ema.decay = 0.9;
  run.lookahead.steps = 3;
  spec::resolve(run);
  for (const int count : {1, 2}) train(library, run, one_host(count), std::to_string(count));
  expect_same_curves("2", "1");
}

TEST_F(RunOnRanks, ARankThatKeepsTheOthersWaitingIsNamed) {
  const Library usual = library_of(drawn_images());
  const Library slow = drawn_library<SlowlyDrawnData>(drawn_images(), kTraining, kTest);
  std::vector<std::string> notes;
  std::mutex mutex;
  // 64 ms per step: five times the two seconds between looks at the pace, of which three in a row must agree.
  const run::RunOutcome outcome = on_ranks(one_host(2), [&](run::RunOptions options) {
    options.note = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      notes.push_back(line);
    };
    spec::RunSpec run = spec("lenet5", 36);
    run.evaluation.every_epochs = 0;
    return run::start_run(options.ranks->rank() == 1 ? slow : usual, run, path("run"), options);
  });
  ASSERT_EQ(outcome.summary.rank_step_seconds.size(), 2u);
  EXPECT_GT(outcome.summary.rank_step_seconds[1], 2 * outcome.summary.rank_step_seconds[0]);
  const auto named = records("run", "rank_pace");
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].at("rank"), 1);
  EXPECT_EQ(named[0].at("host"), "host");
  EXPECT_EQ(named[0].at("is_slow"), true);
  EXPECT_GT(named[0].at("own_seconds").get<double>(), 0.05);
  EXPECT_GT(named[0].at("input_wait_seconds").get<double>(), 0.03);
  int said = 0;
  for (const std::string& note : notes)
    said +=
        note.starts_with("rank 1 on host 'host' takes ") && note.find(" it waits for its batches") != std::string::npos;
  EXPECT_EQ(said, 1);
}

TEST_F(RunOnRanks, MetricsAndSummaryAreGlobal) {
  const Library library = library_of(drawn_images());
  const run::RunOutcome outcome = train(library, spec("lenet5", 2), one_host(2), "run");
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.summary.ranks, 2);
  EXPECT_EQ(outcome.summary.batch, 64);
  EXPECT_EQ(outcome.summary.steps, 10);
  EXPECT_NEAR(outcome.summary.items_per_second * outcome.summary.step_seconds, 640, 1);
  EXPECT_EQ(run::parse_summary(read_text(path("run/summary.json")))->ranks, 2);
}

TEST_F(RunOnRanks, AStopOnOneRankIsThatOfAllAndARunGoesOnOnAnotherNumberOfRanks) {
  const Library library = library_of(drawn_images());
  run::start_run(library, spec("lenet5", 4), path("whole"), {});
  const auto cut = [&](const run::RunOptions& given) {
    const run::RunOptions options = given.ranks->rank() == 1 ? stopped_after(given, 7) : given;
    const run::RunOutcome outcome = run::start_run(library, spec("lenet5", 4), path("cut"), options);
    EXPECT_FALSE(outcome.finished);
    EXPECT_LT(outcome.steps_done, 12);
    return outcome;
  };
  on_ranks(one_host(2), cut);
  const auto go_on = [&](const run::RunOptions& options) { return run::resume_run(library, path("cut"), 1, options); };
  EXPECT_TRUE(on_ranks(one_host(4), go_on).finished);
  expect_same_curves("cut", "whole");
  EXPECT_TRUE(on_ranks(one_host(2), go_on).finished) << "of a finished run all get the summary";
}

/// Between two hosts, over links that take that long for what a step exchanges.
class RunOnSlowLinks : public RunOnRanks {
 protected:
  spec::RunSpec spec_over(double bytes_per_second, const std::string& model) {
    spec::RunSpec run = spec(model, 3);
    run.optimizer.name = "adamw";
    run.ema.decay = 0.9;
    run.checkpoint.every_steps = 4;
    run.cluster = path(fmt::format("{:g}.toml", bytes_per_second));
    comm::LocalGroup group({"a", "b"});
    comm::ClusterCosts costs;
    costs.between_hosts.bytes_per_second = bytes_per_second;
    write_atomically(run.cluster, comm::cluster_text(group.communicator(0), costs));
    return run;
  }
  void train_over(const spec::RunSpec& run, const std::string& name, int steps = 1000) {
    const Library library = library_of(drawn_images());
    on_ranks({"a", "b"}, [&](const run::RunOptions& options) {
      return run::start_run(library, run, path(name), stopped_after(options, steps));
    });
  }
  bool defers(const std::string& name) {
    return read_text(path(name + "/plan.json")).find("deferred_before") != std::string::npos;
  }
  /// Stopped in the middle and resumed, beside the same run in one go.
  void expect_going_on_with_the_same_bits(const spec::RunSpec& run) {
    train_over(run, "whole");
    train_over(run, "cut", 7);
    const Library library = library_of(drawn_images());
    on_ranks({"a", "b"},
             [&](const run::RunOptions& options) { return run::resume_run(library, path("cut"), 1, options); });
    EXPECT_TRUE(defers("cut"));
    expect_same_bits("cut", "whole");
  }
};

/// Of a network of convolutions: large layers would gather rows over slow links, and round otherwise.
TEST_F(RunOnSlowLinks, UpdatesThatTheNextStepDoesGiveTheSameBits) {
  train_over(spec_over(1e14, "resnet9"), "fast");
  train_over(spec_over(1e6, "resnet9"), "slow");
  EXPECT_FALSE(defers("fast"));
  EXPECT_TRUE(defers("slow"));
  expect_same_bits("slow", "fast");
}

/// 20 batches of 16: two of an epoch fill no step.
TEST_F(RunOnSlowLinks, AccumulatedStepsToo) {
  for (const char* variant : {"", "synchronised", "one_bit"}) {
    const auto run_over = [&](double bytes_per_second) {
      spec::RunSpec run = spec_over(bytes_per_second, "resnet9");
      run.batch = 16;
      run.accumulate = 3;
      if (variant == std::string("synchronised")) run.batch_norm = variant;
      if (variant == std::string("one_bit")) run.compression = {.method = variant, .tensors = "all"};
      return run;
    };
    const std::string fast = fmt::format("fast {}", variant), slow = fmt::format("slow {}", variant);
    train_over(run_over(1e14), fast);
    train_over(run_over(1e6), slow);
    EXPECT_FALSE(defers(fast));
    EXPECT_TRUE(defers(slow)) << variant;
    expect_same_bits(slow, fast);
  }
}

TEST_F(RunOnSlowLinks, AccumulatedStepsThatWereStoppedGoOnWithTheSameBits) {
  spec::RunSpec run = spec_over(1e6, "lenet5");
  run.batch = 16;
  run.accumulate = 3;
  expect_going_on_with_the_same_bits(run);
}

/// What clips by the norm of all gradients, or scales the loss, waits for all of them.
TEST_F(RunOnSlowLinks, AccumulatedStepsThatReadAllGradientsAtOnceDeferNothing) {
  spec::RunSpec run = spec_over(1e6, "lenet5");
  run.batch = 16;
  run.accumulate = 3;
  run.clip.norm = 1;
  train_over(run, "clipped");
  run.clip.norm = 0;
  run.loss_scaling.mode = "dynamic";
  train_over(run, "scaled");
  EXPECT_FALSE(defers("clipped"));
  EXPECT_FALSE(defers("scaled"));
}

TEST_F(RunOnSlowLinks, ARunThatWasStoppedGoesOnWithTheSameBits) {
  expect_going_on_with_the_same_bits(spec_over(1e6, "lenet5"));
}

TEST_F(RunOnSlowLinks, ARunGoesOnBySameLinksAsItBeganOnTheSameHosts) {
  spec::RunSpec run = spec_over(1e14, "lenet5");
  const std::string slow = read_text(spec_over(1e6, "lenet5").cluster);
  run.cluster = "";
  train_over(run, "cut", 5);
  const std::string measured = read_text(path("cut/cluster.toml"));
  EXPECT_NE(measured.find("megabytes_per_second"), std::string::npos);
  const Library library = library_of(drawn_images());
  const auto go_on = [&](const std::vector<std::string>& hosts, int steps) {
    on_ranks(hosts, [&](const run::RunOptions& options) {
      return run::resume_run(library, path("cut"), 1, stopped_after(options, steps));
    });
  };
  write_atomically(path("cut/cluster.toml"), slow);
  go_on({"a", "b"}, 2);
  EXPECT_TRUE(defers("cut"));
  EXPECT_EQ(without_seal(read_text(path("cut/cluster.toml"))), slow);
  go_on({"a", "c"}, 2);
  EXPECT_NE(read_text(path("cut/cluster.toml")), slow) << "of other hosts: measured anew";
}

TEST_F(RunOnRanks, NotANumberNamesItsRank) {
  const Library library = library_of(values(), kTraining, 100);
  const std::vector<std::string> errors = errors_on_ranks({"a", "a", "b", "b"}, [&](const run::RunOptions& options) {
    return run::start_run(library, spec("mlp", 1), path("run"), options);
  });
  EXPECT_NE(errors[0].find("the loss became NaN on rank "), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find(" on host '"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("no checkpoint had been made yet"), std::string::npos) << errors[0];
  for (const std::string& error : errors) EXPECT_EQ(error.substr(0, 40), errors[0].substr(0, 40));
}

/// Of zeros alone.
class DataWithAnEmptySample : public DrawnData {
 public:
  DataWithAnEmptySample(const data::DatasetInfo& info, int64_t samples, int64_t empty)
      : DrawnData(info, samples), empty_(empty) {}
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    DrawnData::get(key, sample);
    if (key.index == empty_) std::fill(sample.begin(), sample.end(), uint8_t{0});
  }

 private:
  int64_t empty_;
};

/// The magnitude of a product that is 0 for a sample of zeros, where its derivative is 0 / 0.
models::Model build_magnitude(const OpRegistry& registry, const models::ModelInput& input, const models::ModelOptions&,
                              models::Mode mode) {
  models::ModelBuilder m(registry, "magnitude", input, mode);
  const ValueId samples = m.samples();
  const auto square = [&](ValueId x) { return ops::multiply(m.graph(), x, x); };
  const ValueId size = ops::reduce_sum(m.graph(), square(samples), {1}, true);
  const ValueId x = m.linear(samples, "fc", {.width = input.classes});
  return m.finish(ops::sqrt(m.graph(), ops::multiply(m.graph(), size, square(x))));
}

/// One sample's gradient is not finite, its loss is.
class GradientOnRanks : public RunOnRanks {
 protected:
  static Library spoiled_library(int64_t samples, int64_t empty) {
    Library library = drawn_library<DataWithAnEmptySample>(values(), samples, kTest, empty);
    library.add_model({.name = "magnitude", .summary = "of one product", .build = build_magnitude});
    return library;
  }
};

TEST_F(GradientOnRanks, OfTheLastStepNamesItsRankToo) {
  const Library library = spoiled_library(64, 10);
  spec::RunSpec run = spec("magnitude", 1);  // of one step
  run.augment.normalise = false;
  comm::LocalGroup group({"a", "b"});
  const std::vector<std::string> errors = comm::errors_of_ranks(
      group, [&](comm::Communicator& ranks) { run::start_run(library, run, path("run"), {.ranks = &ranks}); });
  EXPECT_NE(errors[0].find("no checkpoint of it was made"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("; the gradients were not finite on rank "), std::string::npos) << errors[0];
}

class GradientOnRanksWith : public GradientOnRanks, public testing::WithParamInterface<const char*> {};

TEST_P(GradientOnRanksWith, ThatIsNotANumberNamesItsRank) {
  const Library library = spoiled_library(kTraining, 100);
  spec::RunSpec run = spec("magnitude", 2);
  run.augment.normalise = false;
  const std::string setting = GetParam();
  if (setting == "saved each step") run.checkpoint.every_steps = 1;
  if (setting == "accumulated") run.accumulate = 2;
  if (setting == "virtual ranks") run.virtual_ranks = 4;
  if (setting == "bf16") {
    if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
    run.precision = "bf16";
  }
  const std::vector<std::string> errors = errors_on_ranks(
      {"a", "b"}, [&](const run::RunOptions& options) { return run::start_run(library, run, path("run"), options); });
  EXPECT_NE(errors[0].find("the loss became NaN on all ranks, after a gradient that was not finite on rank "),
            std::string::npos)
      << errors[0];
  EXPECT_EQ(errors[1].substr(0, 90), errors[0].substr(0, 90));
}

INSTANTIATE_TEST_SUITE_P(Settings, GradientOnRanksWith,
                         testing::Values("plain", "saved each step", "accumulated", "virtual ranks", "bf16"));

TEST_F(RunOnRanks, ABatchThatCannotBeDividedIsAUsersError) {
  const Library library = library_of(drawn_images());
  const std::vector<std::string> errors = errors_on_ranks({"a", "b", "c"}, [&](const run::RunOptions& options) {
    return run::start_run(library, spec("lenet5", 1), path("run"), options);
  });
  EXPECT_EQ(errors[2], "batch = 64 cannot be divided among 3 ranks; choose 63 or 66, or another number of ranks");
  EXPECT_EQ(errors[0], errors[2]) << "of all alike, so that no rank is named";
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

/// The same targets, but other pixels.
class OtherwiseDrawnData : public DrawnData {
 public:
  using DrawnData::DrawnData;
  void get(const data::SampleKey& key, std::span<uint8_t> sample) const override {
    DrawnData::get(key, sample);
    sample[0] ^= 1;
  }
};

TEST_F(RunOnRanks, SamplesOfOtherContentOnOneRankAreNamed) {
  const Library library = library_of(drawn_images()),
                other = drawn_library<OtherwiseDrawnData>(drawn_images(), kTraining, 64);
  spec::RunSpec run = spec("lenet5", 1);
  run.augment.normalise = false;
  const std::vector<std::string> errors = errors_on_ranks({"a", "b"}, [&](const run::RunOptions& options) {
    return run::start_run(options.ranks->rank() == 1 ? other : library, run, path("run"), options);
  });
  EXPECT_EQ(errors[0].substr(0, 36), "the content of the training data is ") << errors[0];
  EXPECT_NE(errors[0].find(" on rank 1 on host 'b', but "), std::string::npos) << errors[0];
  EXPECT_EQ(errors[1], errors[0]);
}

TEST_F(RunOnRanks, OtherDataOnOneRankAreNamed) {
  const Library library = library_of(drawn_images()), other = library_of(drawn_images(), kTraining - 1);
  const std::vector<std::string> errors = errors_on_ranks({"a", "b"}, [&](const run::RunOptions& options) {
    return run::start_run(options.ranks->rank() == 1 ? other : library, spec("lenet5", 1), path("run"), options);
  });
  EXPECT_EQ(errors[0],
            "the number of samples of the training data is 319 on rank 1 on host 'b', but 320 on rank 0; give all "
            "hosts the same files, in the same order");
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_FALSE(std::filesystem::exists(path("run"))) << "nothing is left behind";
}

TEST_F(RunOnRanks, DataMissingOnOneRankEndAll) {
  const Library library = library_of(drawn_images()), without = standard_library();
  const std::vector<std::string> errors = errors_on_ranks({"a", "b"}, [&](const run::RunOptions& options) {
    return run::start_run(options.ranks->rank() == 1 ? without : library, spec("lenet5", 1), path("run"), options);
  });
  EXPECT_EQ(errors[0].find("rank 1 on host 'b': unknown data 'drawn"), 0u) << errors[0];
  EXPECT_EQ(errors[1], errors[0]);
}

TEST_F(RunOnRanks, AnotherRecipeOnOneRankIsNamed) {
  const Library library = library_of(drawn_images());
  const std::vector<std::string> errors = errors_on_ranks({"a", "b"}, [&](const run::RunOptions& options) {
    spec::RunSpec own = spec("lenet5", 1);
    own.seed = 1 + options.ranks->rank();
    return run::start_run(library, own, path("run"), options);
  });
  EXPECT_EQ(errors[0].substr(0, 14), "the recipe is ") << errors[0];
}

TEST_F(RunOnRanks, WhatIsDecidedByMeasuringIsTheSameOnAll) {
  const Library library = library_of(drawn_images());
  spec::RunSpec automatic = spec("lenet5", 1);
  automatic.precision = "auto";
  const run::RunOutcome outcome = train(library, automatic, one_host(2), "run");
  EXPECT_TRUE(outcome.finished);
  EXPECT_NE(outcome.summary.precision, "auto");
}

}  // namespace
}  // namespace weft::run
