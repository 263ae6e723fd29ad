// Runs on ranks, which here are threads, that share the layers: their losses are those of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/ranks_rig.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/run/weights_file.h"

namespace weft::run {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kSamplesToShare = 320, kTestSamplesToShare = 70;

class TensorRun : public RanksTest {
 protected:
  /// 5 steps an epoch.
  static spec::RunSpec spec(const std::string& model, double epochs = 4) {
    spec::RunSpec spec = drawn_spec(model, epochs, 64, 0.01);
    if (model == "resnet9") spec.model.options = {{"width", "8"}};
    if (model == "vit_tiny")
      spec.model.options = {{"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"dropout", "0.1"}};
    if (model == "transformer_lm")
      spec.model.options = {{"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"dropout", "0.2"}};
    spec.optimizer.learning_rate = 0.001;
    if (model != "resnet9") spec.optimizer.name = "adamw";
    spec::resolve(spec);
    return spec;
  }
  static Library library_of(const spec::RunSpec& spec) {
    return drawn_library(spec.model.name == "transformer_lm" ? drawn_sentences() : drawn_images(), kSamplesToShare,
                         kTestSamplesToShare);
  }
  static spec::RunSpec shared(spec::RunSpec spec, int64_t tensor) {
    spec.mesh.tensor = tensor;
    return spec;
  }
  /// Twenty steps of 2 and 4 ranks that share the layers against one rank.
  void expect_that_of_one_rank(const spec::RunSpec& run) {
    const Library library = library_of(run);
    run::start_run(library, run, path("alone"), {});
    for (const int ranks : {2, 4}) {
      const std::string name = fmt::format("tensor{}", ranks);
      train(library, shared(run, ranks), one_host(ranks), name);
      expect_same_losses(name, "alone");
    }
  }
};

TEST_F(TensorRun, ALanguageModelWithDropout) { expect_that_of_one_rank(spec("transformer_lm")); }

TEST_F(TensorRun, ALanguageModelWhoseSequenceIsSplitToo) {
  spec::RunSpec run = spec("transformer_lm");
  run.shard.sequence = true;
  expect_that_of_one_rank(run);
}

TEST_F(TensorRun, ALanguageModelOfExperts) {
  spec::RunSpec run = spec("transformer_lm");
  run.model.options["experts"] = "4";
  expect_that_of_one_rank(run);
}

TEST_F(TensorRun, AVisionTransformer) { expect_that_of_one_rank(spec("vit_tiny")); }

TEST_F(TensorRun, AConvolutionalNetworkWithBatchNorm) { expect_that_of_one_rank(spec("resnet9")); }

TEST_F(TensorRun, FullyConnectedLayersWithClippingAndSeveralBatches) {
  spec::RunSpec run = spec("mlp", 2);
  run.clip.norm = 0.5;
  run.accumulate = 2;
  run.batch = 32;
  run.ema.decay = 0.9;
  expect_that_of_one_rank(run);
}

TEST_F(TensorRun, TwoByTwoRanksWithDropoutAreOneRank) {
  const spec::RunSpec run = spec("transformer_lm");
  const Library library = library_of(run);
  run::start_run(library, run, path("alone"), {});
  train(library, run, one_host(2), "data");
  expect_same_losses("data", "alone");
  train(library, shared(run, 2), one_host(4), "both");
  expect_same_losses("both", "alone");
  train(library, shared(run, 2), {"a", "a", "b", "b"}, "hosts");
  expect_same_losses("hosts", "alone");
}

TEST_F(TensorRun, TwoByTwoRanksWithBatchNormAreTwoRanksThatDivideTheBatch) {
  const spec::RunSpec run = spec("resnet9", 2);
  const Library library = library_of(run);
  train(library, run, one_host(2), "data");
  train(library, shared(run, 2), one_host(4), "both");
  expect_same_losses("both", "data");
}

TEST_F(TensorRun, EachPartIsWrittenOnceAndAnyMeshGoesOn) {
  const spec::RunSpec run = spec("transformer_lm", 2);
  const Library library = library_of(run);
  run::start_run(library, run, path("whole"), {});
  int number = 0;
  for (const auto& [hosts, tensor] : {std::pair{0, 1}, {2, 1}, {4, 4}}) {
    const std::string name = fmt::format("cut{}", number++);
    on_ranks(one_host(4), [&](const run::RunOptions& given) {
      const run::RunOptions options = given.ranks->rank() == 3 ? stopped_after(given, 7) : given;
      return run::start_run(library, shared(run, 2), path(name), options);
    });
    EXPECT_EQ(newest(name).manifest.parts.ranks, 2);
    const auto go_on = [&, tensor = tensor](const run::RunOptions& options) {
      return run::resume_run(library, path(name), 1, options, {fmt::format("mesh.tensor={}", tensor)});
    };
    EXPECT_TRUE(on_ranks(one_host(hosts), go_on).finished) << name;
    expect_same_losses(name, "whole", 2e-5);
  }
}

TEST_F(TensorRun, EvaluationsAreThoseOfOneRank) {
  spec::RunSpec run = spec("transformer_lm", 1);
  run.validation = "0.2";
  spec::resolve(run);
  const Library library = library_of(run);
  const std::optional<double> wanted = run::start_run(library, run, path("alone"), {}).summary.test_loss;
  const std::optional<double> got = train(library, shared(run, 2), one_host(4), "both").summary.test_loss;
  ASSERT_TRUE(wanted && got);
  EXPECT_NEAR(*got, *wanted, 1e-5 * *wanted);
}

TEST_F(TensorRun, ALostRankIsNamed) {
  const spec::RunSpec run = shared(spec("transformer_lm", 50), 2);
  const Library library = library_of(run);
  comm::LocalGroup group(one_host(4));
  const std::vector<std::string> errors = comm::errors_of_ranks(group, [&](comm::Communicator& ranks) {
    run::RunOptions options{.ranks = &ranks};
    options.stop_requested = [&, asked = 0]() mutable {
      if (ranks.rank() == 1 && ++asked == 8) group.silence(1);
      return false;
    };
    run::start_run(library, run, path("run"), options);
  });
  for (const int rank : {0, 2, 3})
    EXPECT_NE(errors[static_cast<size_t>(rank)].find("rank 1 on host 'host'"), std::string::npos)
        << errors[static_cast<size_t>(rank)];
}

TEST_F(TensorRun, WhatCannotBeIsSaid) {
  const auto refusal = [&](const spec::RunSpec& run, int ranks) {
    std::string message;
    const Library library = library_of(run);
    comm::run_ranks(one_host(ranks), [&](comm::Communicator& communicator) {
      const std::string error =
          test::error_of([&] { run::start_run(library, run, path("refused"), {.ranks = &communicator}); });
      if (communicator.rank() == 0) message = error;
    });
    EXPECT_FALSE(fs::exists(path("refused")));
    return message;
  };
  spec::RunSpec run = shared(spec("transformer_lm"), 2);
  EXPECT_EQ(refusal(run, 3),
            "mesh.tensor = 2, and 3 ranks take part; start 2 ranks (`weft launch -n 2 -- ...`), or a multiple of them, "
            "or set mesh.tensor=1");
  run.mesh.data = 2;
  EXPECT_EQ(refusal(run, 2),
            "mesh.data = 2 times mesh.tensor = 2 are 4 ranks, and 2 ranks take part; start 4 ranks (`weft launch -n 4 "
            "-- ...`), or set mesh.data=0 for as many as there are");
  run.mesh.data = 0;
  run.shard.zero = 1;
  EXPECT_EQ(refusal(run, 2),
            "shard.zero = 1 with mesh.tensor = 2 on 2 ranks: states are shared along mesh.data, and one rank is left "
            "there; start 4 ranks (`weft launch -n 4 -- ...`), or a multiple of them, or set shard.zero=0");
  run.shard.zero = 0;
  run.compression.method = "bf16";
  EXPECT_EQ(refusal(run, 2).find("mesh.tensor = 2 with compression.method = 'bf16'"), 0u);
}

}  // namespace
}  // namespace weft::run
