// Plans of ranks that are not here, beside those of ranks that are.
#include "weft/predict/planned_run.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/error_of.h"
#include "weft/comm/local/local_group.h"
#include "weft/comm/measure/measure.h"
#include "weft/library/library.h"
#include "weft/predict/cluster_times.h"

namespace weft::predict {
namespace {

class PlannedRunTest : public testing::Test {
 protected:
  PlannedModel model(const std::string& name, int64_t batch, const std::string& optimizer = "adamw") const {
    spec::RunSpec spec;
    spec.model.name = name;
    spec.batch = batch;
    spec.threads = 1;
    spec.epochs = 2;
    spec.late_multiply = false;
    spec.optimizer.name = optimizer;
    spec::resolve(spec);
    return {.spec = spec,
            .input =
                [input = models::find_model(library_.models, name).default_input](const spec::StepShape& shape) {
                  models::ModelInput own = input;
                  own.batch = shape.batch;
                  return own;
                },
            .samples = 1000};
  }
  static Place here() {
    return {
        .cluster = nullptr,
        .times_here =
            [](const HostCores& host) { return modelled_times(rated_costs(), static_cast<int>(host.threads), 0.3); },
        .cores = 64};
  }
  /// A host of four devices that are 100 times as fast as nothing in particular.
  static machines::ClusterFile cluster(int hosts = 4) {
    machines::DeviceFile device;
    device.name = "made up";
    device.peak_flops = {{machines::Arithmetic::f32, 1e13}, {machines::Arithmetic::bf16, 4e13}};
    device.memory_bytes = 16e9;
    device.bytes_per_second = 5e11;
    device.launch_seconds = 5e-6;
    for (const auto work : {machines::WorkClass::convolution, machines::WorkClass::matrix_product,
                            machines::WorkClass::attention, machines::WorkClass::memory})
      device.efficiency[work] = {.best = 0.8, .half_size = 0};
    device.idle_watts = 50;
    device.peak_watts = 250;
    machines::ClusterFile file;
    file.name = "four by four";
    file.device = device;
    file.hosts = hosts;
    file.devices_per_host = 4;
    file.in_host = {2e-6, 5e10, 1e-6};
    file.between_hosts = {1e-5, 1e10, 2e-6};
    file.summed_bytes_per_second = 4e11;
    file.price.per_host_hour = 12;
    file.price.spot_per_host_hour = 4;
    return file;
  }
  static double computing(const Prediction& prediction) {
    const StepTime& time = prediction.longest().time;
    return time.of(Part::forward) + time.of(Part::backward) + time.of(Part::update);
  }
  /// Planned by two ranks that are here, with 4 samples each: of the first of them.
  struct RealMemory {
    int64_t total = 0, buffers = 0;
  };
  RealMemory memory_of_two(const std::vector<std::string>& hosts, const PlannedModel& planned, int64_t zero) const {
    RealMemory real;
    comm::run_ranks(hosts, [&](comm::Communicator& ranks) {
      program::PlannedOnRanks on_ranks = program::plan_on_ranks(library_, &ranks, {}, [&] {
        spec::RunSpec spec = planned.spec;
        spec.shard.zero = zero;
        spec.batch = 4;
        return program::StepChoice{
            .spec = spec, .input = planned.input(spec::StepShape(4)), .evaluation_memory = int64_t{1} << 40};
      });
      if (ranks.rank() != 0) return;
      real = {on_ranks.step->total_bytes() + on_ranks.step->gathered_bytes(), on_ranks.step->message_buffer_bytes()};
    });
    return real;
  }
  const Library library_ = standard_library();
};

TEST_F(PlannedRunTest, MemoryOfRanksIsThatOfRealOnes) {
  for (const int64_t zero : {0, 1, 3}) {
    PlannedModel planned = model("transformer_lm", 8);
    Strategy strategy = strategy_of(planned.spec, 2, 2);
    strategy.zero = zero;
    const MemoryPrediction predicted = predict_on(library_, planned, strategy, here()).memory;
    const RealMemory real = memory_of_two({"host", "host"}, planned, zero);
    EXPECT_NEAR(static_cast<double>(predicted.total()) / static_cast<double>(real.total), 1, 0.02) << "zero " << zero;
  }
}

TEST_F(PlannedRunTest, BuffersOfMessagesBetweenHostsAreThoseOfRealOnes) {
  const std::string path = testing::TempDir() + "/planned_run_cluster.toml";
  comm::run_ranks({"a", "b"}, [&](comm::Communicator& ranks) {
    comm::ClusterCosts costs;
    costs.between_hosts = {5e-5, 1e8, 1e-5};
    if (ranks.rank() == 0) std::ofstream(path) << comm::cluster_text(ranks, costs);
  });
  const machines::ClusterFile cluster = machines::read_cluster(path);
  Place place = here();
  place.cluster = &cluster;
  PlannedModel planned = model("transformer_lm", 8);
  planned.spec.cluster = path;
  for (const int64_t zero : {0, 1, 3}) {
    Strategy strategy = strategy_on(planned.spec, place, 2);
    strategy.zero = zero;
    const MemoryPrediction predicted = predict_on(library_, planned, strategy, place).memory;
    const RealMemory real = memory_of_two({"a", "b"}, planned, zero);
    EXPECT_NEAR(static_cast<double>(predicted.total()) / static_cast<double>(real.total), 1, 0.02) << "zero " << zero;
    EXPECT_GT(real.buffers, predicted.states / 10) << "half of the gradients, at least";
  }
}

TEST_F(PlannedRunTest, SharedStatesAreAPartOfTheWhole) {
  const PlannedModel planned = model("transformer_lm", 16);
  const auto states = [&](int64_t zero) {
    Strategy strategy = strategy_of(planned.spec, 4, 4);
    strategy.zero = zero;
    return static_cast<double>(predict_on(library_, planned, strategy, here()).memory.states);
  };
  const double whole = states(0);
  EXPECT_NEAR(states(1) / whole, (1 + 2.0 / 4) / 3, 0.03) << "adamw has twice the weights in states";
  EXPECT_NEAR(states(3) / whole, 1.0 / 4, 0.03);
}

TEST_F(PlannedRunTest, EvaluationsByStepsCount) {
  PlannedModel planned = model("lenet5", 8);
  const auto predicted = [&](double at_epochs, double after_50_steps) {
    planned.evaluated_samples = [=](int64_t steps) {
      return at_epochs + after_50_steps * static_cast<double>(steps) / 50;
    };
    return predict_on(library_, planned, strategy_on(planned.spec, here(), 1), here());
  };
  const Prediction by_epochs = predicted(500, 0);
  ASSERT_EQ(by_epochs.steps(), 2 * 1000 / 8);
  const double by_steps = predicted(0, 100).evaluation_seconds.expected;
  EXPECT_DOUBLE_EQ(by_steps, by_epochs.evaluation_seconds.expected) << "100 samples after every 50 of 250 steps";
  EXPECT_DOUBLE_EQ(predicted(500, 100).evaluation_seconds.expected, 2 * by_steps);
}

TEST_F(PlannedRunTest, EvaluationsByLayerTakeAsLongAsTheirWeightsTravel) {
  Place place = here();
  machines::ClusterFile two = cluster(2);
  two.devices_per_host = 1;
  two.between_hosts = {1e-6, 1e6, 1e-6};  // so slow that nothing else counts
  place.cluster = &two;
  PlannedModel planned = model("transformer_lm", 8);
  constexpr double kBatches = 3;
  planned.evaluated_samples = [](int64_t) { return 8 * kBatches; };
  planned.spec.evaluation.batch = 8;
  const auto predicted = [&](int64_t zero, int64_t pipeline, const char* weights) {
    planned.spec.evaluation.weights = weights;
    Strategy strategy = strategy_on(planned.spec, place, 2);
    strategy.zero = zero;
    strategy.pipeline = pipeline;
    return predict_on(library_, planned, strategy, place);
  };
  const double whole = static_cast<double>(predicted(0, 1, "auto").memory.states) / 3;  // adamw has two more
  const auto bytes_in_a_batch = [&](int64_t zero, int64_t pipeline) {
    const double once = predicted(zero, pipeline, "once").evaluation_seconds.expected;
    const double by_layer = predicted(zero, pipeline, "by_layer").evaluation_seconds.expected;
    return (by_layer - once) / kBatches * two.between_hosts.bytes_per_second;
  };
  EXPECT_NEAR(bytes_in_a_batch(3, 1) / whole, 0.5, 0.05) << "a rank receives the other half";
  EXPECT_NEAR(bytes_in_a_batch(0, 2) / whole, 1, 0.1) << "a stage sends what it has, and receives the rest";
}

TEST_F(PlannedRunTest, ARunHasItsStepsItsRateAndItsLength) {
  const PlannedModel planned = model("lenet5", 50);
  const Prediction prediction = predict_on(library_, planned, strategy_of(planned.spec, 1, 1), here());
  EXPECT_EQ(prediction.steps(), 40);
  EXPECT_NEAR(prediction.samples_per_second().expected, 50 / prediction.step().expected, 1e-6);
  EXPECT_NEAR(prediction.run_seconds().expected, 40 * prediction.step().expected, 1e-6);
}

TEST_F(PlannedRunTest, ADeviceFileGivesTimeEnergyAndCost) {
  const machines::ClusterFile file = cluster();
  const PlannedModel planned = model("resnet18", 64, "sgd");
  Place place = here();
  place.cluster = &file;
  const Prediction one = predict_on(library_, planned, strategy_on(planned.spec, place, 4), place);
  EXPECT_EQ(one.device, "made up");
  ASSERT_TRUE(one.cost && one.energy);
  EXPECT_NEAR(one.cost->amount.expected, one.run_seconds().expected / 3600 * 12, 1e-9) << "one host of four devices";
  EXPECT_EQ(one.energy->peak_watts, 1000);
  const double watts = one.energy->kilowatt_hours.expected * 3.6e6 / one.run_seconds().expected;
  EXPECT_GT(watts, 200);
  EXPECT_LE(watts, 1000);
}

TEST_F(PlannedRunTest, TwiceTheRanksTakeAboutHalfTheTimeWhereLinksAreFast) {
  const machines::ClusterFile file = cluster();
  const PlannedModel planned = model("resnet18", 256, "sgd");
  Place place = here();
  place.cluster = &file;
  const auto seconds = [&](int64_t ranks) {
    return predict_on(library_, planned, strategy_on(planned.spec, place, ranks), place).run_seconds().expected;
  };
  const double four = seconds(4), eight = seconds(8);
  EXPECT_GT(eight, four / 2 * 0.99);
  EXPECT_LT(eight, four * 0.75);
}

TEST_F(PlannedRunTest, ThrottlingMakesLongRunsSlower) {
  machines::ClusterFile file = cluster();
  EXPECT_NEAR(throttled_seconds(*file.device, 100), 100, 1e-9);
  file.device->throttling = {{60, 0.5}};
  EXPECT_NEAR(throttled_seconds(*file.device, 100), 60 + 80, 1e-9);
  EXPECT_NEAR(throttled_seconds(*file.device, 30), 30, 1e-9);
}

TEST_F(PlannedRunTest, AllWaitForTheSlowestRank) {
  const PlannedModel planned = model("resnet18", 64, "sgd");
  const auto computing_on = [&](const machines::ClusterFile& file) {
    Place place = here();
    place.cluster = &file;
    return computing(predict_on(library_, planned, strategy_on(planned.spec, place, 4), place));
  };
  machines::ClusterFile even = cluster(1), uneven = even, straggling = even;
  uneven.speeds = {1, 1, 1, 0.5};
  straggling.stragglers = {.jitter = 0, .slow_share = 1, .slow_factor = 3};
  EXPECT_NEAR(computing_on(uneven) / computing_on(even), 2, 1e-6);
  EXPECT_NEAR(computing_on(straggling) / computing_on(even), 3, 1e-6);
  uneven.stragglers = straggling.stragglers;
  EXPECT_NEAR(computing_on(uneven) / computing_on(even), 6, 1e-6);
}

TEST_F(PlannedRunTest, TooLittleMemoryIsAnErrorThatNamesTheLeast) {
  machines::ClusterFile file = cluster();
  const PlannedModel planned = model("resnet18", 64, "sgd");
  file.device->memory_bytes = 150e6;
  Place place = here();
  place.cluster = &file;
  const std::string message = test::error_of(
      [&] { predict_on(library_, planned, strategy_on(planned.spec, place, 4), place); }, ErrorKind::usage);
  for (const char* part : {"resnet18", "4 ranks on one host", "of memory per rank, and one has 150 MB"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " not in: " << message;
  EXPECT_TRUE(message.find("it fits") != std::string::npos || message.find("the least is") != std::string::npos)
      << message;
}

TEST_F(PlannedRunTest, RanksThatCannotShareTheBatchAreAnError) {
  const PlannedModel planned = model("lenet5", 10);
  const std::string message =
      test::error_of([&] { predict_on(library_, planned, strategy_of(planned.spec, 4, 4), here()); }, ErrorKind::usage);
  EXPECT_NE(message.find("4 ranks cannot share a batch of 10"), std::string::npos) << message;
  const machines::ClusterFile file = cluster(1);
  Place place = here();
  place.cluster = &file;
  EXPECT_NE(test::error_of([&] { strategy_on(planned.spec, place, 8); }).find("has 4 devices"), std::string::npos);
}

TEST_F(PlannedRunTest, APipelineThatSpansHostsKeepsThePaceOfTheLinkBetweenThem) {
  machines::ClusterFile two = cluster(2);
  two.devices_per_host = 2;
  const PlannedModel planned = model("transformer_lm", 8);
  const auto step = [&](double bytes_per_second) {
    two.between_hosts.bytes_per_second = bytes_per_second;
    Place place = here();
    place.cluster = &two;
    Strategy strategy = strategy_on(planned.spec, place, 4);
    strategy.pipeline = 4;  // of one rank each, of which the second and the third lie on two hosts
    return predict_on(library_, planned, strategy, place).step().expected;
  };
  EXPECT_GT(step(1e6), 10 * step(1e10));
}

TEST_F(PlannedRunTest, RanksBeyondTheCoresTakeTurns) {
  const PlannedModel planned = model("mlp", 16);
  const auto predicted = [&](int64_t cores) {
    Place place = here();
    place.cores = cores;
    return predict_on(library_, planned, strategy_on(planned.spec, place, 4), place);
  };
  const Prediction own = predicted(4), shared = predicted(2);
  EXPECT_NEAR(computing(shared) / computing(own), 2, 1e-6);
  EXPECT_NE(shared.times_from.find("4 ranks of 1 thread share 2 cores"), std::string::npos) << shared.times_from;
  EXPECT_EQ(own.times_from.find("ranks of 1 thread"), std::string::npos) << own.times_from;
}

TEST_F(PlannedRunTest, RanksBeyondTheCoresOfADescribedHostTakeTurns) {
  const PlannedModel planned = model("mlp", 16);
  machines::ClusterFile file = cluster(1);
  file.device.reset();
  const auto predicted = [&](int cores_per_host) {
    file.cores_per_host = cores_per_host;
    Place place = here();
    place.cluster = &file;
    return predict_on(library_, planned, strategy_on(planned.spec, place, 4), place);
  };
  EXPECT_NEAR(computing(predicted(2)) / computing(predicted(4)), 2, 1e-6);
}

TEST_F(PlannedRunTest, LoadingOnHostsOfUnknownCoresIsNotKnown) {
  PlannedModel planned = model("mlp", 16);
  planned.sample_seconds = 1;
  machines::ClusterFile file = cluster(1);
  const auto loading = [&](int cores_per_host) {
    file.cores_per_host = cores_per_host;
    Place place = here();
    place.cluster = &file;
    return predict_on(library_, planned, strategy_on(planned.spec, place, 4), place).longest().loading_seconds;
  };
  EXPECT_EQ(loading(0), std::nullopt);
  EXPECT_NEAR(loading(8).value_or(0), 16.0 / 8, 0.1) << "16 samples of a second each, on 8 cores beside the devices";
}

TEST_F(PlannedRunTest, WhatTheRunRefusesIsRefusedAsItDoes) {
  const auto message = [&](int64_t ranks, const auto& change) {
    PlannedModel planned = model("mlp", 24);
    change(planned.spec);
    return test::error_of([&] { predict_on(library_, planned, strategy_on(planned.spec, here(), ranks), here()); },
                          ErrorKind::usage);
  };
  const std::string mesh = message(4, [](spec::RunSpec& spec) { spec.mesh.data = 3; });
  EXPECT_NE(mesh.find("mesh.data = 3, and 4 ranks take part"), std::string::npos) << mesh;
  const std::string alone = message(1, [](spec::RunSpec& spec) { spec.shard.zero = 1; });
  EXPECT_NE(alone.find("shard.zero = 1 with one rank"), std::string::npos) << alone;
  for (const auto& [ranks, shards] : {std::pair<int64_t, int64_t>{3, 8}, {4, 2}}) {
    const std::string divided = message(ranks, [&](spec::RunSpec& spec) { spec.virtual_ranks = shards; });
    EXPECT_NE(divided.find(fmt::format("virtual_ranks = {} cannot be divided among {} ranks", shards, ranks)),
              std::string::npos)
        << divided;
  }
}

TEST_F(PlannedRunTest, SamplesThatMakeNoStepAreAnError) {
  PlannedModel planned = model("mlp", 256);
  planned.samples = 100;
  const std::string message =
      test::error_of([&] { predict_on(library_, planned, strategy_of(planned.spec, 1, 1), here()); }, ErrorKind::usage);
  EXPECT_NE(message.find("a batch of 256 is larger than the 100 samples; choose a smaller --batch"), std::string::npos)
      << message;
}

TEST(ExchangeOnCluster, ALargeSumIsBoundByTheSlowestLink) {
  machines::ClusterFile file;
  file.hosts = 8;
  file.devices_per_host = 1;
  file.in_host = {1e-6, 1e11, 1e-6};
  file.between_hosts = {1e-5, 1e9, 1e-6};
  file.summed_bytes_per_second = 1e11;
  const ExchangeTimes exchange = exchange_on(file, {.ranks = 8, .ranks_per_host = 1});
  const double bound = 2.0 * 7 / 8 * 1e8 / 1e9;
  EXPECT_GE(exchange.of("all_reduce", 100'000'000), bound);
  EXPECT_LT(exchange.of("all_reduce", 100'000'000), 1.1 * bound);
  const passes::Ranks ranks = ranks_of(exchange);
  EXPECT_EQ(ranks.count, 8);
  EXPECT_NEAR(ranks.bytes_per_second, 1e9 / (2.0 * 7 / 8), 5e7);
}

}  // namespace
}  // namespace weft::predict
