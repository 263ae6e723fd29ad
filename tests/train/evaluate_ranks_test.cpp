// An evaluation on several ranks gives what one process gives: counts exactly, sums to rounding.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/drawn_data.h"
#include "tests/support/fit_rig.h"
#include "weft/comm/local/local_group.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/step/metrics/entries.h"
#include "weft/train/evaluate.h"

namespace weft::train {
namespace {

/// One process's part of an evaluation, with all that it needs.
Evaluation evaluate_share(const spec::RunSpec& spec, const DrawnData& dataset, const program::BatchShare& share,
                          comm::Communicator* ranks, const std::function<bool()>& stop_requested = {}) {
  const Library library = standard_library();
  const CpuBackend backend(1);
  spec::DataDescription description{dataset.info(), {}, dataset.size(), {}};
  if (dataset.info().sample_dtype == DType::u8) description.statistics = data::channel_statistics(dataset);
  State state =
      step::initial_state(step::build_training_step(library, spec, program::model_input(description, {4})), 3);
  program::Program steps(
      [&](const spec::StepShape& shape) {
        return step::build_evaluation_step(library, spec, program::model_input(description, shape));
      },
      backend, spec::compile_options(spec, backend));
  data::Loader loader(dataset, program::evaluation_loader_options(spec, description, share));
  return evaluate(steps, state, loader,
                  {.metrics = step::metrics_of(library, spec.metrics, dataset.info().task),
                   .stop_requested = stop_requested,
                   .tta = spec.evaluation.tta,
                   .ranks = ranks});
}

void expect_near(const std::optional<double>& value, const std::optional<double>& wanted, const char* what) {
  ASSERT_EQ(value.has_value(), wanted.has_value()) << what;
  if (wanted) {
    EXPECT_NEAR(*value, *wanted, 1e-5 * std::max(1.0, std::abs(*wanted))) << what;
  }
}

spec::RunSpec spec_of(const std::string& model, int64_t batch) {
  spec::RunSpec spec;
  spec.model.name = model;
  spec.evaluation.batch = batch;
  spec.threads = 1;
  spec.loader.workers = 1;
  spec::resolve(spec);
  return spec;
}

void expect_same_on_ranks(const spec::RunSpec& spec, const DrawnData& dataset, int ranks) {
  const Evaluation whole = evaluate_share(spec, dataset, {}, nullptr);
  comm::run_ranks(std::vector<std::string>(static_cast<size_t>(ranks), "host"), [&](comm::Communicator& group) {
    const Evaluation part = evaluate_share(spec, dataset, {group.rank(), ranks}, &group);
    EXPECT_EQ(part.samples, whole.samples);
    ASSERT_EQ(part.metrics.size(), whole.metrics.size());
    EXPECT_FALSE(whole.metrics.empty());
    EXPECT_EQ(find_metric(part.metrics, "accuracy"), find_metric(whole.metrics, "accuracy")) << "a count over a count";
    expect_near(part.loss, whole.loss, "loss");
    for (const auto& [name, value] : whole.metrics) expect_near(find_metric(part.metrics, name), value, name.c_str());
  });
}

data::DatasetInfo images() { return {.name = "images", .sample_shape = {1, 16, 16}, .classes = 3}; }

TEST(EvaluateOnRanks, Classes) {
  const DrawnData dataset(images(), 37);
  for (const int ranks : {2, 3, 4}) expect_same_on_ranks(spec_of("lenet5", 16), dataset, ranks);
}

TEST(EvaluateOnRanks, MeanViews) {
  spec::RunSpec spec = spec_of("lenet5", 8);
  spec.evaluation.tta = "multicrop";
  expect_same_on_ranks(spec, DrawnData(images(), 21), 3);
}

TEST(EvaluateOnRanks, RanksWithoutASample) { expect_same_on_ranks(spec_of("lenet5", 16), DrawnData(images(), 2), 4); }

TEST(EvaluateOnRanks, Values) {
  const DrawnData dataset({.name = "values",
                           .sample_shape = {5},
                           .classes = 2,
                           .task = "regression",
                           .sample_dtype = DType::f32,
                           .target_dtype = DType::f32,
                           .target_shape = {2},
                           .targets = {{10, 20}, {3, 0.5}}},
                          45);
  for (const int ranks : {2, 4}) expect_same_on_ranks(spec_of("mlp", 16), dataset, ranks);
}

TEST(EvaluateOnRanks, Pixels) {
  const DrawnData dataset(
      {.name = "pixels", .sample_shape = {1, 16, 16}, .classes = 3, .task = "segmentation", .target_shape = {16, 16}},
      11);
  spec::RunSpec spec = spec_of("unet_small", 4);
  spec.model.options = {{"width", "4"}, {"depth", "2"}};
  expect_same_on_ranks(spec, dataset, 2);
}

TEST(EvaluateOnRanks, Sequences) {
  const DrawnData dataset({.name = "sequences",
                           .sample_shape = {11},
                           .classes = 7,
                           .task = "translation",
                           .sample_dtype = DType::i32,
                           .target_shape = {5},
                           .source_length = 6},
                          21);
  expect_same_on_ranks(spec_of("seq2seq_attention", 8), dataset, 2);
}

TEST(EvaluateOnRanks, ARequestToStopOnOneRankStopsAll) {
  const DrawnData dataset(images(), 37);
  comm::run_ranks({"a", "b"}, [&](comm::Communicator& group) {
    const auto stop = [&] { return group.rank() == 1; };
    EXPECT_FALSE(evaluate_share(spec_of("lenet5", 8), dataset, {group.rank(), 2}, &group, stop).finished);
  });
}

}  // namespace
}  // namespace weft::train
