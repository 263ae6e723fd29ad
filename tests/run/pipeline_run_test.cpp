// Runs on the ranks of a pipeline, which here are threads: they are the run of one process that accumulates the same
// micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/ranks_rig.h"
#include "weft/comm/measure/measure.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/passes/ranks/pipeline_schedule.h"
#include "weft/run/checkpoint/tensor_files.h"

namespace weft::run {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kPipelineSamples = 320, kPipelineTestSamples = 70;

class PipelineRun : public RanksTest {
 protected:
  /// 5 steps an epoch, each of 4 micro-batches.
  static spec::RunSpec spec(const std::string& model, double epochs = 2) {
    spec::RunSpec spec = drawn_spec(model, epochs, 64, 0.01);
    spec.late_multiply = false;
    if (model == "resnet9") spec.model.options = {{"width", "8"}};
    return spec;
  }
  static spec::RunSpec pipelined(spec::RunSpec spec, int ranks, const std::string& schedule = "1f1b") {
    spec.mesh.pipeline = ranks;
    spec.pipeline.schedule = schedule;
    spec.evaluation.batch = 64;
    spec::resolve(spec);
    return spec;
  }
  static Library library() { return drawn_library(drawn_images(), kPipelineSamples, kPipelineTestSamples); }

  void expect_near(const std::string& run, const std::string& wanted, double tolerance = 1e-5) const {
    expect_near_losses(run, wanted, tolerance);
  }
  void expect_near_evaluations(const std::string& run, const std::string& wanted) const {
    const std::vector<nlohmann::json> all = records(wanted, "epoch"), got = records(run, "epoch");
    ASSERT_EQ(got.size(), all.size());
    for (size_t at = 0; at < got.size(); ++at)
      EXPECT_NEAR(got[at].at("test_loss").get<double>(), all[at].at("test_loss").get<double>(), 1e-4) << run;
  }
};

TEST_F(PipelineRun, EveryScheduleTrainsAndEvaluatesAsOneProcess) {
  const spec::RunSpec run = spec("resnet9");
  train(library(), accumulated(run), {}, "alone");
  for (const std::string& schedule : passes::pipeline_schedules()) {
    train(library(), pipelined(run, 2, schedule), one_host(2), schedule);
    expect_near(schedule, "alone");
    expect_near_evaluations(schedule, "alone");
  }
}

/// Convolutions and running statistics among the weights that stages send each other.
TEST_F(PipelineRun, EvaluationsByLayerAreThoseOfTheWholeModel) {
  spec::RunSpec run = pipelined(spec("resnet9", 1), 2);
  for (const std::string weights : {"once", "by_layer"}) {
    run.evaluation.weights = weights;
    train(library(), run, one_host(2), weights);
  }
  expect_same_bits("by_layer", "once");
}

TEST_F(PipelineRun, TwoStagesOnTwoRanksEach) {
  const spec::RunSpec run = spec("lenet5");
  train(library(), accumulated(run), {}, "alone");
  train(library(), pipelined(run, 2), one_host(4), "two-by-two");
  expect_near("two-by-two", "alone");
  expect_near_evaluations("two-by-two", "alone");
}

/// Statistics of batch norm are those of a micro-batch of all ranks, so that it must have the rows that one process
/// takes at a time.
TEST_F(PipelineRun, TwoStagesOnTwoRanksEachWithBatchNormOverAllOfThem) {
  spec::RunSpec run = spec("resnet9", 0.4);
  run.optimizer.learning_rate = 1e-4;
  run.batch_norm = "synchronised";
  train(library(), accumulated(run), {}, "alone");
  for (const int64_t zero : {0, 1}) {
    const std::string name = fmt::format("zero{}", zero);
    run.shard.zero = zero;
    train(library(), pipelined(run, 2), one_host(4), name);
    expect_near(name, "alone");
  }
}

TEST_F(PipelineRun, RanksOnDifferentHostsTrainAlike) {
  const spec::RunSpec run = spec("lenet5", 1);
  train(library(), pipelined(run, 2), one_host(2), "one-host");
  train(library(), pipelined(run, 2), {"a", "b"}, "two-hosts");
  expect_same_bits("two-hosts", "one-host");
}

TEST_F(PipelineRun, EachRankWritesItsStatesAndTheCheckpointIsThatOfOneProcess) {
  spec::RunSpec run = spec("lenet5", 1);
  run.ema.decay = 0.9;
  run.lookahead.steps = 2;
  train(library(), accumulated(run), {}, "alone");
  train(library(), pipelined(run, 2), one_host(2), "run");
  EXPECT_EQ(files_of_newest("run"),
            (std::vector<std::string>{"manifest.json", "model.part-00001-of-00002.safetensors",
                                      "model.part-00002-of-00002.safetensors", "model.safetensors",
                                      "optimizer.part-00001-of-00002.safetensors",
                                      "optimizer.part-00002-of-00002.safetensors", "optimizer.safetensors"}));
  const Checkpoint one = newest("run"), other = newest("alone");
  std::vector<std::string> names = other.state.names();
  std::erase_if(names, [](const std::string& name) { return name.starts_with("optimizer/gradient_sum"); });
  EXPECT_EQ(one.state.names(), names);
  for (const std::string& name : names) {
    const Tensor a = one.state.plain(name), b = other.state.plain(name);
    ASSERT_EQ(a.shape(), b.shape()) << name;
    for (int64_t at = 0; at < a.elements(); ++at)
      ASSERT_NEAR(a.data_as<float>()[at], b.data_as<float>()[at], 1e-4) << name << " " << at;
  }
}

TEST_F(PipelineRun, ARunGoesOnOnAnotherMeshAndOnOneProcess) {
  spec::RunSpec run = spec("lenet5", 3);
  run.optimizer.name = "adamw";
  run.optimizer.learning_rate = 0.001;
  train(library(), accumulated(run), {}, "whole");
  struct Case {
    int ranks;
    std::vector<std::string> changes;
  };
  int number = 0;
  for (const Case& next : {Case{2, {}}, Case{4, {"mesh.pipeline=4"}}, Case{2, {"mesh.pipeline=1"}},
                           Case{2, {"mesh.pipeline=1", "shard.zero=3"}}, Case{0, {"mesh.pipeline=1"}}}) {
    const std::string name = fmt::format("cut{}", number++);
    on_ranks(one_host(2), [&](const RunOptions& given) {
      return start_run(library(), pipelined(run, 2), path(name), stopped_after(given, 7));
    });
    EXPECT_FALSE(fs::exists(path(name + "/summary.json")));
    EXPECT_TRUE(on_ranks(one_host(next.ranks), [&](const RunOptions& options) {
                  return resume_run(library(), path(name), 1, options, next.changes);
                }).finished);
    expect_near(name, "whole");
  }
}

TEST_F(PipelineRun, ARunThatWasStoppedGoesOnWithTheSameBits) {
  spec::RunSpec run = spec("lenet5", 2);
  run.optimizer.name = "adamw";
  train(library(), pipelined(run, 2, "zero_bubble"), one_host(2), "whole");
  on_ranks(one_host(2), [&](const RunOptions& given) {
    return start_run(library(), pipelined(run, 2, "zero_bubble"), path("cut"), stopped_after(given, 7));
  });
  on_ranks(one_host(2), [&](const RunOptions& options) { return resume_run(library(), path("cut"), 1, options); });
  expect_same_bits("cut", "whole");
}

TEST_F(PipelineRun, WeightsFromAFileAreOnTheRankThatHasThem) {
  const spec::RunSpec run = spec("lenet5", 1);
  train(library(), accumulated(run), {}, "first");
  spec::RunSpec from = run;
  from.init = (newest("first").path / "model.safetensors").string();
  train(library(), accumulated(from), {}, "alone");
  train(library(), pipelined(from, 2), one_host(2), "from-file");
  expect_near("from-file", "alone");
}

TEST_F(PipelineRun, FiltersFromTheImagesAreOnTheRankThatHasThem) {
  spec::RunSpec run = spec("airbench94", 1);
  run.model.options = {{"width", "8"}};
  const Library library = drawn_library(drawn_images(3), kPipelineSamples, kPipelineTestSamples);
  train(library, accumulated(run), {}, "alone");
  train(library, pipelined(run, 2), one_host(2), "pipeline");
  expect_near("pipeline", "alone", 1e-4);
}

TEST_F(PipelineRun, TheBestCheckpointIsMeasuredOnTheTestData) {
  spec::RunSpec run = spec("lenet5", 3);
  run.validation = "0.2";
  const std::optional<double> wanted = train(library(), accumulated(run), {}, "plain").summary.test_loss;
  ASSERT_TRUE(wanted);
  const std::optional<double> got = train(library(), pipelined(run, 2), one_host(2), "validated").summary.test_loss;
  ASSERT_TRUE(got);
  EXPECT_NEAR(*got, *wanted, 1e-4);
}

/// Of the stage in the middle: the first and the last one wait for each other through it.
TEST_F(PipelineRun, ALostRankIsNamed) {
  constexpr int kLost = 1;
  const spec::RunSpec run = pipelined(spec("lenet5", 50), 3);
  comm::LocalGroup group(one_host(3));
  const std::vector<std::string> errors = comm::errors_of_ranks(group, [&](comm::Communicator& ranks) {
    RunOptions options{.ranks = &ranks};
    options.stop_requested = [&, asked = 0]() mutable {
      if (ranks.rank() == kLost && ++asked == 8) group.silence(kLost);
      return false;
    };
    start_run(library(), run, path("run"), options);
  });
  for (const size_t rank : {size_t{0}, size_t{2}})
    EXPECT_NE(errors[rank].find("rank 1 on host 'host'"), std::string::npos) << errors[rank];
}

TEST_F(PipelineRun, WhatCannotBeIsSaid) {
  const auto error_of = [&](const spec::RunSpec& run, int ranks) {
    std::string message;
    comm::run_ranks(one_host(ranks), [&](comm::Communicator& group) {
      const std::string error = test::error_of([&] { start_run(library(), run, path("refused"), {.ranks = &group}); });
      if (group.rank() == 0) message = error;
    });
    return message;
  };
  const spec::RunSpec run = pipelined(spec("lenet5", 1), 2);
  EXPECT_EQ(error_of(run, 3),
            "mesh.pipeline = 2, and 3 ranks take part; start 2 ranks (`weft launch -n 2 -- ...`), or a multiple of "
            "them, or set mesh.pipeline=1");
  spec::RunSpec other = run;
  other.pipeline.micro_batches = 5;
  EXPECT_NE(error_of(other, 2).find("pipeline.micro_batches = 5 do not divide the 64 samples"), std::string::npos)
      << error_of(other, 2);
  EXPECT_EQ(
      test::error_of([&] { start_run(library(), run, path("alone"), {}); }, ErrorKind::usage),
      "mesh.pipeline = 2, and 1 rank takes part; start 2 ranks (`weft launch -n 2 -- ...`), or a multiple of them, "
      "or set mesh.pipeline=1");
  EXPECT_FALSE(fs::exists(path("refused")));
}

}  // namespace
}  // namespace weft::run
