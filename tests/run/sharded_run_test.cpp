// Runs on ranks, which here are threads, that share their states: they are the run of ranks that keep all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/ranks_rig.h"
#include "weft/base/files.h"
#include "weft/comm/measure/measure.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/run/checkpoint/tensor_files.h"
#include "weft/run/checkpoint/write_parts.h"
#include "weft/step/sharded_states.h"

namespace weft::run {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kSamples = 320, kTestSamples = 70;

data::DatasetInfo drawn_texts() {
  return {.name = "drawn",
          .sample_shape = {16},
          .classes = 23,
          .task = "language_model",
          .sample_dtype = DType::i32,
          .target_shape = {16}};
}

class ShardedRun : public RanksTest {
 protected:
  /// 5 steps an epoch. Without what rounds otherwise than sums of gradients.
  static spec::RunSpec spec(const std::string& model, double epochs = 4) {
    spec::RunSpec spec = drawn_spec(model, epochs, 64, 0.01);
    spec.late_multiply = false;
    if (model == "resnet9") spec.model.options = {{"width", "8"}};
    if (model == "transformer_lm") spec.model.options = {{"layers", "2"}, {"heads", "2"}, {"width", "32"}};
    return spec;
  }
  static Library library_of(const spec::RunSpec& spec) {
    return drawn_library(spec.model.name == "transformer_lm" ? drawn_texts() : drawn_images(), kSamples, kTestSamples);
  }
  static spec::RunSpec shared(spec::RunSpec spec, int64_t zero) {
    spec.shard.zero = zero;
    return spec;
  }

  /// Of 2 and of 4 ranks.
  void expect_same_as_data_parallel(spec::RunSpec run, const std::string& what,
                                    const std::vector<int64_t>& levels = {1, 2, 3}) {
    spec::resolve(run);
    const Library library = library_of(run);
    for (const int ranks : {2, 4}) {
      const std::string name = fmt::format("{}-{}", what, ranks), plain = name + "-plain";
      train(library, run, one_host(ranks), plain);
      for (const int64_t zero : levels) {
        const std::string of_level = fmt::format("{}-zero{}", name, zero);
        train(library, shared(run, zero), one_host(ranks), of_level);
        expect_same_bits(of_level, plain);
      }
    }
  }
  static std::vector<int64_t> levels() { return {1, 2, 3}; }

  /// The same within some rounding.
  void expect_nearly_data_parallel(spec::RunSpec run, const std::string& what, double tolerance) {
    spec::resolve(run);
    const Library library = library_of(run);
    train(library, run, one_host(2), what);
    for (const int64_t zero : levels()) {
      const std::string of_level = fmt::format("{}-zero{}", what, zero);
      train(library, shared(run, zero), one_host(2), of_level);
      expect_near_losses(of_level, what, tolerance);
    }
  }
};

TEST_F(ShardedRun, SgdOfAConvolutionalNetworkWithBatchNormGivesTheSameBits) {
  expect_same_as_data_parallel(spec("resnet9"), "resnet9");
}

TEST_F(ShardedRun, AdamWOfALanguageModelGivesTheSameBits) {
  spec::RunSpec run = spec("transformer_lm");
  run.optimizer.name = "adamw";
  expect_same_as_data_parallel(run, "transformer_lm");
}

TEST_F(ShardedRun, AdamAndSgdWithoutMomentumGiveTheSameBits) {
  spec::RunSpec run = spec("lenet5", 1);
  run.optimizer.momentum = 0;
  expect_same_as_data_parallel(run, "plain-sgd");
  run = spec("lenet5", 1);
  run.optimizer.name = "adam";
  run.optimizer.weight_decay = 0.01;
  expect_same_as_data_parallel(run, "adam");
}

TEST_F(ShardedRun, SumsOfSeveralBatchesGiveTheSameBits) {
  spec::RunSpec run = spec("lenet5", 2);
  run.batch = 32;
  run.accumulate = 2;
  expect_same_as_data_parallel(run, "accumulated", {1});
  expect_nearly_data_parallel(run, "accumulated-parts", 1e-6);
}

TEST_F(ShardedRun, AveragesLookAheadAndAMomentumScheduleGiveTheSameBits) {
  spec::RunSpec run = spec("lenet5", 2);
  run.ema.decay = 0.9;
  run.lookahead.steps = 3;
  run.optimizer.momentum_schedule.name = "one_cycle";
  expect_same_as_data_parallel(run, "averaged");
}

TEST_F(ShardedRun, SynchronisedBatchNormGivesTheSameBits) {
  spec::RunSpec run = spec("resnet9", 1);
  run.batch_norm = "synchronised";
  expect_same_as_data_parallel(run, "synchronised");
}

TEST_F(ShardedRun, AScaledLossGivesTheSameBits) {
  spec::RunSpec run = spec("lenet5", 2);
  run.loss_scaling.mode = "dynamic";
  expect_same_as_data_parallel(run, "scaled");
}

TEST_F(ShardedRun, VirtualRanksGiveTheSameBitsOnAnyHosts) {
  spec::RunSpec run = spec("lenet5", 2);
  run.virtual_ranks = 4;
  spec::resolve(run);
  const Library library = library_of(run);
  run::start_run(library, run, path("alone"), {});
  int number = 0;
  for (const Hosts& hosts : {Hosts{"a", "a"}, Hosts{"a", "b"}, Hosts{"a", "a", "b", "b"}, Hosts{"a", "b", "c", "d"}})
    for (const int64_t zero : levels()) {
      const std::string name = fmt::format("virtual{}", number++);
      train(library, shared(run, zero), hosts, name);
      expect_same_bits(name, "alone");
    }
}

/// Of two hosts, whose sums are of two numbers; over slow links small gradients are left to the next step.
TEST_F(ShardedRun, TwoHostsWithFastAndSlowLinksGiveTheSameBits) {
  spec::RunSpec run = spec("resnet9", 2);
  run.optimizer.name = "adamw";
  run.optimizer.learning_rate = 0.001;
  run.ema.decay = 0.9;
  run.checkpoint.every_steps = 4;
  spec::resolve(run);
  const Library library = library_of(run);
  for (const double bytes_per_second : {1e14, 1e6}) {
    run.cluster = path(fmt::format("{:g}.toml", bytes_per_second));
    comm::LocalGroup group({"a", "b"});
    comm::ClusterCosts costs;
    costs.between_hosts.bytes_per_second = bytes_per_second;
    write_atomically(run.cluster, comm::cluster_text(group.communicator(0), costs));
    const std::string plain = fmt::format("plain{:g}", bytes_per_second);
    train(library, run, {"a", "b"}, plain);
    for (const int64_t zero : levels()) {
      const std::string name = fmt::format("zero{}-{:g}", zero, bytes_per_second);
      train(library, shared(run, zero), {"a", "b"}, name);
      expect_same_bits(name, plain);
    }
  }
}

TEST_F(ShardedRun, FourRanksOnTwoHostsTrainAlikeUpToRounding) {
  spec::RunSpec run = spec("lenet5", 2);
  spec::resolve(run);
  const Library library = library_of(run);
  train(library, run, {"a", "a", "b", "b"}, "plain");
  for (const int64_t zero : levels()) {
    const std::string name = fmt::format("zero{}", zero);
    train(library, shared(run, zero), {"a", "b", "a", "b"}, name);
    expect_near_losses(name, "plain", 1e-5);
  }
}

TEST_F(ShardedRun, ANumberThatIsNotFiniteInOnePartMakesNoCheckpoint) {
  spec::RunSpec run = spec("lenet5", 1);
  spec::resolve(run);
  const Library library = library_of(run);
  std::vector<std::string> errors(2);
  comm::run_ranks(one_host(2), [&](comm::Communicator& ranks) {
    Manifest manifest;
    manifest.position.step = 3;
    CheckpointStore store(path("checkpoints"), 2);
    State state;
    state.set("weight", Tensor(DType::f32, {4}));
    Tensor part(DType::f32, {512});
    if (ranks.rank() == 1) part.data_as<float>()[7] = std::nanf("");
    state.set("optimizer/velocity/weight", std::move(part));
    errors[static_cast<size_t>(ranks.rank())] = test::error_of(
        [&] {
          write_in_parts(ranks, ranks.rank() == 0 ? &store : nullptr, state, manifest,
                         {{"optimizer/velocity/weight", Sharding{.whole = {1024}, .flat = MeshAxis{"data", 2}}}},
                         Mesh({{"data", 2}}));
        },
        ErrorKind::numeric);
  });
  for (const std::string& error : errors)
    EXPECT_EQ(error.find("rank 1 on host 'host': 'optimizer/velocity/weight' holds nan after step 3; no checkpoint"),
              0u)
        << error;
  EXPECT_TRUE(fs::is_empty(path("checkpoints")));
}

TEST_F(ShardedRun, NormsOfSharedTensorsAreThoseOfTheWholeUpToRounding) {
  spec::RunSpec run = spec("lenet5", 2);
  run.clip.norm = 0.5;
  expect_nearly_data_parallel(run, "clipped", 1e-6);
  for (const char* optimizer : {"lars", "lamb", "rmsprop"}) {
    run = spec("lenet5", 2);
    run.optimizer.name = optimizer;
    run.optimizer.learning_rate = 0.001;
    expect_nearly_data_parallel(run, optimizer, 1e-6);
  }
}

TEST_F(ShardedRun, WhatWantsWholeMatricesGathersThem) {
  spec::RunSpec run = spec("lenet5", 1);
  run.optimizer.name = "muon";
  run.optimizer.learning_rate = 0.01;
  expect_nearly_data_parallel(run, "muon", 1e-6);
}

TEST_F(ShardedRun, WeightsFromAFileGiveTheSameBits) {
  spec::RunSpec run = spec("lenet5", 1);
  spec::resolve(run);
  const Library library = library_of(run);
  train(library, run, one_host(2), "first");
  run.init = (newest("first").path / "model.safetensors").string();
  run.lookahead.steps = 2;  // whose slots begin as copies
  train(library, run, one_host(2), "plain");
  for (const int64_t zero : levels()) {
    const std::string name = fmt::format("from-file{}", zero);
    train(library, shared(run, zero), one_host(2), name);
    expect_same_bits(name, "plain");
  }
}

TEST_F(ShardedRun, TheBestCheckpointIsMeasuredOnTheTestData) {
  spec::RunSpec run = spec("lenet5", 8);  // of noise, which it learns by heart: later weights are worse
  run.validation = "0.2";
  run.ema.decay = 0.9;
  spec::resolve(run);
  const Library library = library_of(run);
  const std::optional<double> wanted = train(library, run, one_host(2), "plain").summary.test_loss;
  ASSERT_TRUE(wanted);
  const Manifest last = newest("plain").manifest;
  ASSERT_LT(last.best.value().step, last.position.step);
  for (const int64_t zero : levels()) {
    const run::RunOutcome outcome = train(library, shared(run, zero), one_host(2), fmt::format("validated{}", zero));
    EXPECT_EQ(outcome.summary.test_loss, wanted) << zero;
  }
}

TEST_F(ShardedRun, RanksWithoutRowsOfABatchEvaluateForTheOthers) {
  spec::RunSpec run = spec("lenet5", 1);
  run.evaluation.batch = 6;  // the last of 70 samples are four: some ranks have as many rows as before, some have fewer
  expect_same_as_data_parallel(run, "other-rows", {3});
  run.evaluation.batch = 3;  // the last one is alone
  expect_same_as_data_parallel(run, "few-rows", {3});
  run.virtual_ranks = 8;
  expect_same_as_data_parallel(run, "few-rows-of-shards", {3});
}

TEST_F(ShardedRun, ARequestToOneRankStopsAnEvaluationOfAll) {
  spec::RunSpec run = spec("lenet5", 2);
  run.evaluation.batch = 16;
  spec::resolve(run);
  const Library library = library_of(run);
  train(library, shared(run, 3), one_host(2), "whole");
  on_ranks(one_host(2), [&](const run::RunOptions& given) {
    const run::RunOptions options = given.ranks->rank() == 1 ? stopped_after(given, 6) : given;  // 5 steps come first
    return run::start_run(library, shared(run, 3), path("cut"), options);
  });
  EXPECT_FALSE(fs::exists(path("cut/summary.json")));
  on_ranks(one_host(2),
           [&](const run::RunOptions& options) { return run::resume_run(library, path("cut"), 1, options); });
  expect_same_bits("cut", "whole");
}

TEST_F(ShardedRun, FiltersFromTheImagesGiveTheSameBits) {
  spec::RunSpec run = spec("airbench94", 1);
  run.model.options = {{"width", "8"}};
  spec::resolve(run);
  const Library library = drawn_library(drawn_images(3), kSamples, kTestSamples);
  train(library, run, one_host(2), "plain");
  train(library, shared(run, 3), one_host(2), "shared");
  expect_same_bits("shared", "plain");
}

TEST_F(ShardedRun, EachRankWritesItsPartsOfACheckpoint) {
  spec::RunSpec run = spec("lenet5", 1);
  spec::resolve(run);
  train(library_of(run), shared(run, 1), one_host(2), "run");
  EXPECT_EQ(files_of_newest("run"),
            (std::vector<std::string>{"manifest.json", "model.safetensors", "optimizer.part-00001-of-00002.safetensors",
                                      "optimizer.part-00002-of-00002.safetensors", "optimizer.safetensors"}));
  const run::Checkpoint checkpoint = newest("run");
  EXPECT_EQ(checkpoint.manifest.parts.ranks, 2);
  EXPECT_FALSE(checkpoint.manifest.parts.shardings.empty());
}

TEST_F(ShardedRun, ARunGoesOnOnAnotherNumberOfRanksAndOnOne) {
  spec::RunSpec run = spec("lenet5");
  run.optimizer.name = "adamw";
  run.optimizer.learning_rate = 0.001;
  spec::resolve(run);
  const Library library = library_of(run);
  run::start_run(library, run, path("whole"), {});
  for (const int64_t zero : levels())
    for (const int ranks : {0, 4}) {
      const std::string name = fmt::format("cut-{}-{}", zero, ranks);
      on_ranks(one_host(2), [&](const run::RunOptions& given) {
        const run::RunOptions options = given.ranks->rank() == 1 ? stopped_after(given, 7) : given;
        return run::start_run(library, shared(run, zero), path(name), options);
      });
      EXPECT_FALSE(fs::exists(path(name + "/summary.json")));
      const auto go_on = [&](const run::RunOptions& options) {
        return run::resume_run(library, path(name), 1, options);
      };
      EXPECT_TRUE(on_ranks(one_host(ranks), go_on).finished) << ranks;
      expect_near_losses(name, "whole", 1e-5);
    }
}

TEST_F(ShardedRun, ARunThatWasStoppedGoesOnWithTheSameBits) {
  spec::RunSpec run = spec("lenet5", 3);
  run.optimizer.name = "adamw";
  run.lookahead.steps = 3;
  spec::resolve(run);
  const Library library = library_of(run);
  for (const int64_t zero : levels()) {
    train(library, shared(run, zero), one_host(2), fmt::format("whole{}", zero));
    const std::string name = fmt::format("cut{}", zero);
    on_ranks(one_host(2), [&](const run::RunOptions& given) {
      return run::start_run(library, shared(run, zero), path(name), stopped_after(given, 7));
    });
    on_ranks(one_host(2),
             [&](const run::RunOptions& options) { return run::resume_run(library, path(name), 1, options); });
    expect_same_bits(name, fmt::format("whole{}", zero));
  }
}

TEST_F(ShardedRun, AMissingPartIsNamedWithTheNextStep) {
  spec::RunSpec run = spec("lenet5", 1);
  spec::resolve(run);
  train(library_of(run), shared(run, 1), one_host(2), "run");
  const fs::path checkpoint = newest("run").path, part = checkpoint / part_name_of(TensorFile::optimizer, 1, 2);
  fs::remove(part);
  const std::string error = test::error_of([&] { read_checkpoint(checkpoint); }, ErrorKind::data);
  EXPECT_EQ(error.find("'" + part.string() + "' is missing: 2 ranks wrote this checkpoint in parts"), 0u) << error;
  EXPECT_EQ(read_checkpoint(checkpoint, /*with_optimizer=*/false).manifest.parts.ranks, 2) << "the weights are whole";
}

TEST_F(ShardedRun, ADamagedPartIsNamed) {
  spec::RunSpec run = spec("lenet5", 1);
  spec::resolve(run);
  train(library_of(run), shared(run, 1), one_host(2), "run");
  const fs::path checkpoint = newest("run").path, part = checkpoint / part_name_of(TensorFile::optimizer, 0, 2);
  fs::resize_file(part, fs::file_size(part) - 1);
  const std::string error = test::error_of([&] { read_checkpoint(checkpoint); }, ErrorKind::data);
  EXPECT_NE(error.find("it is truncated or damaged"), std::string::npos) << error;
}

TEST_F(ShardedRun, ALostRankIsNamed) {
  spec::RunSpec run = spec("lenet5", 50);
  spec::resolve(run);
  const Library library = library_of(run);
  comm::LocalGroup group(one_host(3));
  run.batch = 63;
  const std::vector<std::string> errors = comm::errors_of_ranks(group, [&](comm::Communicator& ranks) {
    run::RunOptions options{.ranks = &ranks};
    options.stop_requested = [&, asked = 0]() mutable {
      if (ranks.rank() == 1 && ++asked == 8) group.silence(1);
      return false;
    };
    run::start_run(library, shared(run, 1), path("run"), options);
  });
  for (const int rank : {0, 2})
    EXPECT_NE(errors[static_cast<size_t>(rank)].find("rank 1 on host 'host'"), std::string::npos)
        << errors[static_cast<size_t>(rank)];
}

TEST_F(ShardedRun, WhatCannotBeIsSaid) {
  spec::RunSpec run = spec("lenet5", 1);
  const auto refusal_of_spec = [](const spec::RunSpec& refused) {
    spec::RunSpec copy = refused;
    return test::error_of([&] { spec::resolve(copy); }, ErrorKind::usage);
  };
  spec::RunSpec other = shared(run, 1);
  other.averaging.period = 4;
  EXPECT_NE(refusal_of_spec(other).find("leave one of the two away"), std::string::npos);
  other = shared(run, 1);
  other.compression.method = "bf16";
  EXPECT_NE(refusal_of_spec(other).find("leave one of the two away"), std::string::npos);

  spec::resolve(run);
  const Library library = library_of(run);
  EXPECT_EQ(test::error_of([&] { run::start_run(library, shared(run, 1), path("alone"), {}); }, ErrorKind::usage),
            "shard.zero = 1 with one rank, which has nobody to share its states with; start 2 ranks (`weft launch "
            "-n 2 -- ...`), or more of them, or set shard.zero=0");
  other = run;
  other.mesh.data = 4;
  std::string message;
  comm::run_ranks(one_host(2), [&](comm::Communicator& ranks) {
    const std::string error = test::error_of([&] { run::start_run(library, other, path("mesh"), {.ranks = &ranks}); });
    if (ranks.rank() == 0) message = error;
  });
  EXPECT_EQ(
      message,
      "mesh.data = 4, and 2 ranks take part; start 4 ranks (`weft launch -n 4 -- ...`), or set mesh.data=0 for as "
      "many as there are");
  EXPECT_FALSE(fs::exists(path("mesh")));
}

}  // namespace
}  // namespace weft::run
