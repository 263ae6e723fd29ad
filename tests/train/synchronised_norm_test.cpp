// Batch norm over the batches of all ranks, which here are threads: what one process computes of the whole batch.
#include "weft/train/synchronised_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/files_for_tests.h"
#include "tests/train/drawn_data.h"
#include "weft/base/error.h"
#include "weft/comm/local/local_group.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/train/checkpoint/store.h"
#include "weft/train/run.h"

namespace weft::train {
namespace {

class SynchronisedNorm : public FilesTest {
 protected:
  static Library library() {
    const data::DatasetInfo info{.name = "drawn", .sample_shape = {3, 16, 16}, .classes = 3};
    Library library = standard_library();
    library.add_data({.name = "drawn",
                      .form = "drawn:",
                      .summary = "",
                      .open = [=](const data::DataSpec&, data::Split split, const std::string&) {
                        return std::make_unique<DrawnData>(info, split == data::Split::train ? 96 : 40);
                      }});
    return library;
  }

  static RunSpec spec(const std::string& model) {
    RunSpec spec;
    spec.model.name = model;
    spec.data = "drawn:";
    spec.epochs = 2;
    spec.batch = 16;  // 6 steps an epoch
    spec.threads = 1;
    spec.loader.workers = 1;
    spec.optimizer.learning_rate = 0.01;
    spec.batch_norm = "synchronised";
    resolve(spec);
    return spec;
  }

  void train(const RunSpec& spec, int ranks, const std::string& name) const {
    const Library data = library();
    if (ranks == 1) {
      start_run(data, spec, path(name), {});
      return;
    }
    std::vector<std::string> hosts;
    for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank % 2 == 0 ? "a" : "b");
    comm::run_ranks(hosts, [&](comm::Communicator& group) { start_run(data, spec, path(name), {.ranks = &group}); });
  }

  std::vector<double> losses(const std::string& run) const {
    std::ifstream lines(path(run + "/metrics.jsonl"));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      if (record.at("kind") == "epoch") found.push_back(record.at("train_loss"));
    }
    return found;
  }
  /// The largest difference of the curves.
  double distance(const std::string& run, const std::string& wanted) const {
    const std::vector<double> a = losses(run), b = losses(wanted);
    EXPECT_EQ(a.size(), 2u);
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (size_t step = 0; step < b.size(); ++step) most = std::max(most, std::abs(a[step] - b[step]));
    return most;
  }
  void expect_same_statistics(const std::string& run, const std::string& wanted) const {
    const auto state = [&](const std::string& name) {
      return CheckpointStore(path(name + "/checkpoints"), 2).read_newest([](const std::string&) {})->state;
    };
    const State a = state(run), b = state(wanted);
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
    RunSpec run = spec(model);
    run.model.options = {{"width", "8"}};
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
  RunSpec run = spec("resnet9");
  run.model.options = {{"width", "8"}};
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
}  // namespace weft::train
