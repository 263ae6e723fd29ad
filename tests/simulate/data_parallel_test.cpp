// Steps of zoo models on simulated clusters: what thousands of ranks, unequal ranks and slow links make of them.
#include "weft/simulate/data_parallel.h"

#include <gtest/gtest.h>

#include <numeric>

#include "weft/library/library.h"
#include "weft/simulate/graph_step.h"

namespace weft::simulate {
namespace {

class Steps : public ::testing::Test {
 protected:
  GraphStep compiled(const std::string& model, int64_t batch, int ranks, const machines::ClusterFile& cluster,
                     const std::string& precision, double bytes_factor = 1, int64_t bucket_bytes = 0,
                     bool reduces_all = false) {
    spec::RunSpec spec;
    spec::set_field(spec, "model.name", model, "test", library_);
    spec::set_field(spec, "precision", precision, "test", library_);
    spec.batch = batch;
    spec::resolve(spec, library_);
    spec.batch = batch;
    models::ModelInput input = models::find_model(library_.models, model).default_input;
    input.batch = batch;
    return compile_for(
        library_, spec, input, cluster,
        {.ranks = ranks, .bucket_bytes = bucket_bytes, .bytes_factor = bytes_factor, .gathers_rows = !reduces_all});
  }

  double of_linear(const std::string& model, int64_t batch, int ranks, const machines::ClusterFile& cluster,
                   const std::string& precision, double bytes_factor) {
    const GraphStep alone = compiled(model, batch, 1, cluster, precision);
    const GraphStep step = compiled(model, batch, ranks, cluster, precision, bytes_factor);
    const SimulatedStep simulated =
        simulate_step({{.program = &step.program}}, cluster, {.ranks = ranks, .bytes_factor = bytes_factor});
    return alone.program.compute_seconds / simulated.seconds;
  }

  const Library library_ = standard_library();
};

TEST_F(Steps, ResnetOnThousandsOfV100InBoxesOfEightScales) {
  const machines::ClusterFile cluster = machines::read_cluster("v100x8_100g");
  EXPECT_GE(of_linear("resnet50", 128, 1024, cluster, "f16", 0.5), 0.9);
  EXPECT_GE(of_linear("resnet50", 128, 4096, cluster, "f16", 0.5), 0.9);
}

TEST_F(Steps, OneOfFourAtHalfSpeedLeavesMostOfLinear) {
  machines::ClusterFile cluster = machines::read_cluster("v100x8_100g");
  const std::vector<double> speeds = {1, 1, 1, 0.5};
  const std::vector<int64_t> shares = unequal_shares(512, speeds);
  EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t{0}), 512);
  const GraphStep fast = compiled("resnet50", shares[0], 4, cluster, "f16"),
                  slow = compiled("resnet50", shares[3], 4, cluster, "f16"),
                  alone = compiled("resnet50", 128, 1, cluster, "f16");
  const SimulatedStep step = simulate_step({{.name = "fast", .count = 3, .program = &fast.program},
                                            {.name = "slow", .count = 1, .program = &slow.program, .factor = 2}},
                                           cluster, {.ranks = 4});
  const double of_linear = 512 / step.seconds / (4 * 128 / alone.program.compute_seconds);
  EXPECT_GE(of_linear, 0.8);
  EXPECT_LE(of_linear, 0.875);
}

TEST(UnequalShares, AreTheBatchWhereSlowRanksGetMoreThanTheirRate) {
  const std::vector<double> speeds = {1000, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(unequal_shares(8, speeds), std::vector<int64_t>(8, 1));
  EXPECT_EQ(unequal_shares(12, speeds), (std::vector<int64_t>{5, 1, 1, 1, 1, 1, 1, 1}));
}

TEST_F(Steps, EverythingReducedOfAlexnetIsNearItsBound) {
  machines::ClusterFile cluster = machines::read_cluster("p100x4_25g");
  cluster.devices_per_host = 1;
  cluster.between_hosts = {20e-6, 1.25e9, 1e-6};
  const GraphStep step = compiled("alexnet", 128, 8, cluster, "f32", 1, 0, /*reduces_all=*/true);
  const SimulatedStep simulated = simulate_step({{.program = &step.program}}, cluster, {.ranks = 8});
  const double link = 2 * 7.0 / 8 * 4 * step.parameters / 1.25e9;
  EXPECT_GE(simulated.seconds, link);
  EXPECT_LE(simulated.seconds, 1.3 * std::max(link, step.program.compute_seconds));
}

TEST_F(Steps, FewerCollectivesAreChosenWhereTheyCostMore) {
  const machines::ClusterFile cluster = machines::read_cluster("v100x8_100g");
  const size_t chosen = compiled("resnet50", 32, 2048, cluster, "f16").program.collectives.size();
  const size_t single = compiled("resnet50", 32, 2048, cluster, "f16", 1, 1).program.collectives.size();
  EXPECT_LT(chosen, single / 4);
}

TEST_F(Steps, BucketsChosenByCostBeatThoseOfTwentyFiveMegabytes) {
  const machines::ClusterFile cluster = machines::read_cluster("v100x1_100g");
  for (const int ranks : {64, 2048}) {
    const auto seconds = [&](int64_t bucket_bytes) {
      const GraphStep step = compiled("mobilenet_v2", 32, ranks, cluster, "f16", 1, bucket_bytes);
      return simulate_step({{.program = &step.program}}, cluster, {.ranks = ranks}).seconds;
    };
    EXPECT_LT(1.05 * seconds(0), seconds(25'000'000)) << ranks;
  }
}

TEST_F(Steps, SlowRanksAmongThousandsAreWhatAllWaitFor) {
  const machines::Stragglers none, jitter{.jitter = 0.02}, slow{.slow_share = 0.01, .slow_factor = 1.2};
  EXPECT_EQ(straggler_factor(none, 1000, 1), 1);
  EXPECT_LT(straggler_factor(jitter, 8, 1), straggler_factor(jitter, 4096, 1));
  EXPECT_NEAR(straggler_factor(jitter, 4096, 1), 1.073, 0.01);  // the largest of 4,096 is at 3.5 deviations
  EXPECT_NEAR(straggler_factor(slow, 4096, 1), 1.2, 1e-6);
  machines::ClusterFile cluster;
  cluster.speeds = {1, 1, 0.5};
  cluster.stragglers = slow;
  EXPECT_NEAR(slowest_factor(cluster, 3, 1), 2 * straggler_factor(slow, 3, 1), 1e-12);
}

TEST_F(Steps, MoreAccumulatedBatchesHideTheExchange) {
  machines::ClusterFile cluster = machines::read_cluster("p3_16xlarge");
  const GraphStep step = compiled("resnet50", 64, 256, cluster, "f16");
  const auto seconds = [&](int batches) {
    return simulate_step({{.program = &step.program}}, cluster, {.ranks = 256, .batches = batches}).seconds / batches;
  };
  EXPECT_LT(seconds(4), seconds(1));
}

TEST_F(Steps, OnlyTheLastAccumulatedBatchUpdates) {
  StepProgram program;
  program.items = {{StepItem::Kind::compute, "layers", "matmul", 1e-3},
                   {StepItem::Kind::compute, "sgd", "updates", 2e-3}};
  const SimulatedStep step =
      simulate_step({{.program = &program, .factor = 2}}, machines::read_cluster("p3_16xlarge"), {.batches = 3});
  EXPECT_DOUBLE_EQ(step.compute_seconds, 2 * (3 * 1e-3 + 2e-3));
  EXPECT_NEAR(step.seconds, step.compute_seconds, 1e-9);
}

/// Such as the rows of layers whose gradients are not reduced.
TEST_F(Steps, WhatEachBatchExchangesIsCountedForEach) {
  using Kind = StepItem::Kind;
  StepProgram program;
  program.collectives = {{Collective::all_gather, 1e8, "rows", false},
                         {Collective::all_reduce, 1e8, "gradients", true}};
  program.items = {{Kind::compute, "layers", "matmul", 1e-3}};
  for (const int number : {0, 1})
    for (const Kind kind : {Kind::begin, Kind::wait}) program.items.push_back({kind, "", "communication", 0, number});
  const auto simulated = [&](int batches) {
    return simulate_step({{.program = &program}}, machines::read_cluster("p3_16xlarge"),
                         {.ranks = 16, .batches = batches});
  };
  const SimulatedStep one = simulated(1), three = simulated(3);
  const double rows = one.collectives[0].host_bytes;
  EXPECT_GT(rows, 0);
  EXPECT_DOUBLE_EQ(three.link_bytes, one.link_bytes + 2 * rows);
  EXPECT_GT(three.seconds, one.seconds + 2 * (1e-3 + rows / one.collectives[0].host_bytes_per_second));
}

TEST_F(Steps, MemoryOfResnestIsWithinThePublished) {
  // Zhang et al. 2020, batch 16 of 416x416: 1.2 GB of weights, gradients and momenta, 28 GB at the peak.
  const machines::ClusterFile cluster = machines::read_cluster("p3_2xlarge");
  const GraphStep step = compiled("resnest269", 16, 1, cluster, "f32");
  EXPECT_NEAR((step.program.state_bytes + 4 * step.parameters) / (1 << 30), 1.2, 0.05);
  EXPECT_LE(step.program.total_bytes(), 28e9);
}

TEST_F(Steps, LargestBatchOfResnet152OnAnM40) {
  const machines::ClusterFile cluster = machines::read_cluster("m40_10g");
  const auto fits = [&](int64_t batch) {
    return compiled("resnet152", batch, 1, cluster, "f32").program.total_bytes() <= cluster.device->memory_bytes;
  };
  EXPECT_TRUE(fits(65));
  EXPECT_FALSE(fits(66));
}

}  // namespace
}  // namespace weft::simulate
