// Batch norm over the batches of all ranks, which here are threads: what one process computes of the whole batch.
#include "weft/step/synchronised_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/ranks_rig.h"
#include "weft/base/error.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft::step {
namespace {

class SynchronisedNorm : public RanksTest {
 protected:
  static spec::RunSpec spec(const std::string& model) {
    spec::RunSpec spec = drawn_spec(model, 2, 16, 0.01);  // 6 steps an epoch
    spec.model.options = {{"width", "8"}};
    spec.batch_norm = "synchronised";
    spec::resolve(spec);
    return spec;
  }
  void train(const spec::RunSpec& spec, int ranks, const std::string& name) const {
    Hosts hosts;
    for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank % 2 == 0 ? "a" : "b");
    RanksTest::train(drawn_library(drawn_images(3), 96, 40), spec, ranks == 1 ? Hosts{} : hosts, name);
  }
  std::vector<double> losses(const std::string& run) const { return RanksTest::losses(run, "epoch"); }

  /// The largest difference of the curves.
  double distance(const std::string& run, const std::string& wanted) const {
    const std::vector<double> a = losses(run), b = losses(wanted);
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (size_t step = 0; step < b.size(); ++step) most = std::max(most, std::abs(a[step] - b[step]));
    return most;
  }
  void expect_same_statistics(const std::string& run, const std::string& wanted) const {
    const State a = newest(run).state, b = newest(wanted).state;
    int seen = 0;
    for (const std::string& name : b.names()) {
      if (name.find("running_") == std::string::npos) continue;
      ++seen;
      const Tensor &x = a.get(name), &y = b.get(name);
      for (int64_t at = 0; at < y.elements(); ++at)
        EXPECT_NEAR(x.data_as<float>()[at], y.data_as<float>()[at], 5e-3 * (1 + std::abs(y.data_as<float>()[at])))
            << name;
    }
    EXPECT_GT(seen, 0);
  }
};

TEST_F(SynchronisedNorm, RanksTrainAsOneProcessWithTheWholeBatch) {
  for (const char* model : {"resnet9", "resnet18"}) {
    spec::RunSpec run = spec(model);
    const std::string name = model;
    train(run, 1, name + "1");
    for (const int ranks : {2, 4}) {
      train(run, ranks, name + std::to_string(ranks));
      EXPECT_LT(distance(name + std::to_string(ranks), name + "1"), 2e-3) << model << " on " << ranks;
      expect_same_statistics(name + std::to_string(ranks), name + "1");
    }
    run.batch_norm = "per_rank";
    train(run, 4, name + "4 apart");
    EXPECT_GT(distance(name + "4 apart", name + "1"), 1e-2) << "4 samples are another batch than 16";
  }
}

TEST_F(SynchronisedNorm, TheFirstStepsAgreeToRounding) {
  spec::RunSpec run = spec("resnet9");
  for (const double steps : {1.0, 2.0}) {  // forward; after one update: backward
    run.epochs = steps / 6;
    const std::string name = std::to_string(steps);
    train(run, 1, name + "one");
    train(run, 4, name + "four");
    const std::vector<double> a = losses(name + "four"), b = losses(name + "one");
    ASSERT_EQ(a.size(), 1u);
    EXPECT_NEAR(a[0], b[0], 5e-6 * b[0]) << steps;
  }
}

/// In bf16 ranks differ from one process in f32 about as much as one process in bf16 does; the statistics themselves
/// are f32, so that those of 4 parts are no worse than those of the whole.
TEST_F(SynchronisedNorm, InBf16AsWellAsOneProcessInBf16) {
  if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  spec::RunSpec run = spec("resnet9");
  run.epochs = 2.0 / 6;  // an update: forward and backward
  train(run, 1, "f32");
  run.precision = "bf16";
  train(run, 1, "one");
  for (const int ranks : {2, 4}) {
    const std::string name = std::to_string(ranks);
    train(run, ranks, name);
    EXPECT_LT(distance(name, "f32"), std::max(2 * distance("one", "f32"), 4e-3 * losses("f32")[0])) << ranks;
    run.batch_norm = "per_rank";
    train(run, ranks, name + "apart");
    EXPECT_GT(distance(name + "apart", "f32"), 3 * distance(name, "f32")) << "parts alone are told from the whole";
    run.batch_norm = "synchronised";
  }
}

TEST_F(SynchronisedNorm, WhatElseReadsTheStatisticsIsRefused) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "net");
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, {4, 3}, {}});
  const ValueId scale = graph.add_input(InputKind::parameter, "scale", {DType::f32, {3}, {}});
  const ValueId shift = graph.add_input(InputKind::parameter, "shift", {DType::f32, {3}, {}});
  const auto norm = ops::batch_norm(graph, x, scale, shift, 1e-5, "norm");
  graph.add_output("mean", ops::reduce_sum(graph, norm.mean, {}, false, "sum"));
  graph.add_output("y", norm.output);
  try {
    synchronise_batch_norm(graph, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'sum' reads the mean or the variance of a batch"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace weft::step
