// weft plan and weft rates --ops, as a user calls them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_files.h"
#include "weft/base/cores.h"
#include "weft/base/format.h"

namespace weft::cli_tests {
namespace {

class PlanCommand : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    setenv("WEFT_CACHE_DIR", path("cache").c_str(), 1);
    write_all(path("mine.toml"), "model = 'mlp'\ndata = '" + data() + "'\nepochs = 3\nbatch = 32\nthreads = 1\n");
    write_all(path("boxes.toml"), kBoxes);
  }
  void TearDown() override {
    unsetenv("WEFT_CACHE_DIR");
    RunTest::TearDown();
  }
  nlohmann::json plan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plan");
    arguments.emplace_back("--json");
    const Outcome outcome = weft(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json();
  }
  static constexpr const char* kBoxes =
      "[machine]\ndevice = \"v100_sxm2_16gb\"\nhosts = 4\ndevices_per_host = 2\ncores_per_host = 16\n"
      "memory_gigabytes = 128\n[in_host]\nlatency_us = 3\nmessage_us = 1\nmegabytes_per_second = 20000\n"
      "[between_hosts]\nlatency_us = 10\nmessage_us = 2\nmegabytes_per_second = 10000\n"
      "[price]\nper_host_hour = 6.0\nspot_per_host_hour = 2.0\n"
      "[failures]\nper_device_hour = 1e-5\nspot_interruptions_per_host_hour = 0.02\n";
};

TEST_F(PlanCommand, SaysWhatARunWillTakeAndTrainsNothing) {
  const Outcome outcome = weft({"plan", "mine.toml"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"forward", "backward", "update", "loading", "states", "activations", "buffers", "whole run",
                           "30 steps", "ranges are of 80 %"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " not in:\n" << outcome.out;
  EXPECT_FALSE(fs::exists(path("runs")));
}

TEST_F(PlanCommand, IsWhatTheRunKeepsOfItself) {
  const nlohmann::json planned = plan({"mine.toml"});
  ASSERT_EQ(weft({"train", "mine.toml", "--run", "r", "--quiet"}).code, 0);
  const nlohmann::json kept = json_of("r/prediction.json");
  EXPECT_EQ(planned["memory"], kept["memory"]);
  EXPECT_EQ(planned["steps"], kept["steps"]);
  EXPECT_EQ(kept["memory"]["total_bytes"], json_of("r/summary.json")["planned_total_bytes"]);
}

TEST_F(PlanCommand, AChosenStrategyIsPlannedAsTheRunThatFollowsIt) {
  const Outcome planned = weft({"plan", "mine.toml", "--strategy", "auto"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  ASSERT_EQ(weft({"train", "mine.toml", "--strategy", "auto", "--run", "r", "--quiet"}).code, 0);
  const auto bytes = json_of("r/summary.json")["planned_total_bytes"].get<double>();
  EXPECT_NE(planned.out.find(human_bytes(bytes)), std::string::npos) << planned.out << bytes;
}

TEST_F(PlanCommand, TakesAsManyDevicesAsCanShareTheBatch) {
  const Outcome outcome = weft({"plan", "mine.toml", "--cluster", "p3_16xlarge"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("plans 32 of the 512 devices, the most that can share a batch of 32 alike"),
            std::string::npos)
      << outcome.err;
}

TEST_F(PlanCommand, TakesTheRanksOfTheMesh) {
  const Outcome outcome = weft({"plan", "mine.toml", "--set", "mesh.tensor=2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("plans the 2 ranks of the recipe's mesh"), std::string::npos) << outcome.err;
}

TEST_F(PlanCommand, WithoutALengthSaysRatesInPlaceOfSums) {
  const Outcome outcome = weft({"plan", "lenet5", "--cluster", "boxes.toml", "--ranks", "2", "--batch", "32"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("6.00 USD per hour; how long the run is, is not known: --samples N says it"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find("0 kWh"), std::string::npos) << outcome.out;
}

TEST_F(PlanCommand, SpotMachinesNeedTheirInterruptions) {
  std::string boxes = kBoxes;
  boxes.resize(boxes.find("spot_interruptions"));
  write_all(path("calm.toml"), boxes);
  expect_error(weft({"plan", "mine.toml", "--cluster", "calm.toml", "--deadline", "6h", "--spot"}), 1,
               "'calm.toml': failures.spot_interruptions_per_host_hour is missing beside price.spot_per_host_hour");
}

TEST_F(PlanCommand, ABudgetIsAnAmountAboveZero) {
  for (const char* budget : {"nan", "0", "-3", "inf", "much"})
    expect_error(weft({"plan", "mine.toml", "--budget", budget}), 2,
                 std::string("'") + budget + "' is no amount above 0");
}

TEST_F(PlanCommand, OneChoiceOfMachines) {
  expect_error(weft({"plan", "mine.toml", "--cluster", "boxes.toml", "--clusters", ".", "--deadline", "6h"}), 2,
               "leave one of them away");
}

TEST_F(PlanCommand, MeasuredOpsAreKeptAndPredictedFrom) {
  const Outcome measured = weft({"rates", "--ops", "mine.toml", "--seconds", "20", "--threads", "1"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_NE(measured.err.find("1/1 mlp, batch 32, f32: "), std::string::npos) << measured.err;
  const nlohmann::json planned = plan({"mine.toml"});
  const nlohmann::json& parts = planned["stages"][0]["parts"];
  EXPECT_GT(parts["measured_seconds"], 0);
  EXPECT_EQ(parts["rated_seconds"], 0);
  const nlohmann::json others = plan({"mine.toml", "--interpolate"});
  EXPECT_EQ(others["stages"][0]["parts"]["measured_seconds"], 0);
}

TEST_F(PlanCommand, PartsOfLayersThatRanksShareAreMeasuredAsSuch) {
  const auto interpolated = [&] {
    return plan({"mine.toml", "--ranks", "2", "--set", "mesh.tensor=2"})["stages"][0]["parts"]["interpolated_seconds"];
  };
  ASSERT_EQ(weft({"rates", "--ops", "mine.toml", "--seconds", "20", "--threads", "1"}).code, 0);
  EXPECT_GT(interpolated(), 0) << "whole layers say nothing exact of their parts";
  const Outcome measured =
      weft({"rates", "--ops", "mine.toml", "--seconds", "20", "--threads", "1", "--set", "mesh.tensor=2"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_EQ(interpolated(), 0);
}

TEST_F(PlanCommand, ExchangesInMemoryAreMeasuredWithTheOps) {
  const std::vector<std::string> ranks = {"plan", "mine.toml", "--ranks", "2"};
  EXPECT_NE(weft(ranks).out.find("not measured here, `weft rates --ops --ranks N` does it"), std::string::npos);
  const Outcome measured = weft({"rates", "--ops", "mine.toml", "--seconds", "20", "--threads", "1"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  if (available_cores() < 2) GTEST_SKIP() << "two ranks would take turns on one core";
  EXPECT_NE(measured.out.find("exchanges between ranks in memory"), std::string::npos) << measured.out;
  EXPECT_NE(weft(ranks).out.find("measured in this host's memory"), std::string::npos);
}

TEST_F(PlanCommand, OpsAreMeasuredWhileOtherRanksComputeAtOnce) {
  if (available_cores() < 2) GTEST_SKIP() << "two ranks would take turns on one core";
  const auto times_from = [&](const std::string& ranks) {
    return plan({"mine.toml", "--ranks", ranks})["times_from"].get<std::string>();
  };
  const Outcome measured = weft({"rates", "--ops", "mine.toml", "--seconds", "20", "--threads", "1", "--ranks", "2"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_NE(times_from("2").find("measured on this machine, with up to 2 ranks at once"), std::string::npos)
      << times_from("2");
  EXPECT_EQ(times_from("1").find("at once"), std::string::npos) << times_from("1");
  ASSERT_EQ(weft({"rates", "--ops", "mine.toml", "--seconds", "20", "--threads", "1"}).code, 0);
  EXPECT_NE(times_from("2").find("2 ranks at once"), std::string::npos) << times_from("2");
}

TEST_F(PlanCommand, RanksThatWouldTakeTurnsAreNotMeasured) {
  expect_error(weft({"rates", "--ops", "mine.toml", "--threads", "1", "--ranks", "1000"}), 2, "would take turns on");
}

TEST_F(PlanCommand, TimesOfAnotherMachineAreRefusedByName) {
  ASSERT_EQ(
      weft({"rates", "--ops", "mlp", "--batch", "8", "--precision", "f32", "--threads", "1", "--output", "ops.jsonl"})
          .code,
      0);
  std::string text = read_all(path("ops.jsonl"));
  const size_t at = text.find(" kernels, oneDNN");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 8, " spindle");
  write_all(path("ops.jsonl"), text);
  const Outcome outcome = weft({"plan", "mlp", "--threads", "1", "--op-times", "ops.jsonl"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("'ops.jsonl' holds no times of ops of this machine"), std::string::npos) << outcome.err;
}

TEST_F(PlanCommand, ARunIsComparedWithItsPrediction) {
  ASSERT_EQ(weft({"rates", "--ops", "mine.toml", "--seconds", "20", "--threads", "1"}).code, 0);
  ASSERT_EQ(weft({"train", "mine.toml", "--run", "r", "--quiet"}).code, 0);
  const Outcome outcome = weft({"explain", "r", "--steps", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"predicted before the run", "step without loading", "in training: step", "in training: memory"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " not in:\n" << outcome.out;
}

TEST_F(PlanCommand, AClusterFileGivesTimeTrafficAndCost) {
  const nlohmann::json planned = plan({"resnet18", "--batch", "64", "--samples", "50000", "--cluster", "boxes.toml"});
  EXPECT_EQ(planned["strategy"]["ranks"], 8);
  EXPECT_EQ(planned["traffic"].size(), 2u);
  EXPECT_GT(planned["cost"]["amount"]["expected"], 0);
  EXPECT_GT(planned["energy"]["kilowatt_hours"]["expected"], 0);
  EXPECT_GT(planned["stages"][0]["parts"]["timeline"].size(), 50u);
}

TEST_F(PlanCommand, ADeadlineAndABudgetChooseTheMachine) {
  fs::create_directories(path("clusters"));
  fs::rename(path("boxes.toml"), path("clusters/boxes.toml"));
  const std::vector<std::string> asked = {"plan",     "lenet5",     "--batch",  "64",         "--samples",
                                          "500000",   "--clusters", "clusters", "--deadline", "10h",
                                          "--budget", "1000",       "--svg",    "plans.svg"};
  const Outcome outcome = weft(asked);
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_NE(outcome.out.find("chosen: boxes"), std::string::npos) << outcome.out;
  EXPECT_NE(read_all(path("plans.svg")).find("<svg"), std::string::npos);
  const Outcome none = weft({"plan", "lenet5", "--batch", "64", "--samples", "500000", "--clusters", "clusters",
                             "--deadline", "1s", "--budget", "0.01"});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.out.find("nothing meets 1.0 s and a budget of 0.01; the nearest: boxes"), std::string::npos)
      << none.out;
}

TEST_F(PlanCommand, PricesOfTwoCurrenciesAreNotCompared) {
  fs::create_directories(path("clusters"));
  fs::rename(path("boxes.toml"), path("clusters/boxes.toml"));
  std::string other = kBoxes;
  other.replace(other.find("[price]\n"), 8, "[price]\ncurrency = \"EUR\"\n");
  write_all(path("clusters/racks.toml"), other);
  expect_error(
      weft({"plan", "lenet5", "--batch", "64", "--samples", "500000", "--clusters", "clusters", "--deadline", "10h"}),
      2, "prices in 2 currencies, which cannot be compared: racks in EUR; boxes in USD");
}

TEST_F(PlanCommand, TheRanksThatAreAskedForAreACandidate) {
  const Outcome outcome = weft({"plan", "lenet5", "--batch", "48", "--samples", "50000", "--cluster", "boxes.toml",
                                "--ranks", "3", "--deadline", "6h"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("chosen: boxes, 3 ranks"), std::string::npos) << outcome.out;
  expect_error(weft({"plan", "lenet5", "--batch", "48", "--samples", "50000", "--cluster", "boxes.toml", "--ranks", "9",
                     "--deadline", "6h"}),
               2, "--ranks 9: no cluster has so many devices, the largest has 8");
}

TEST_F(PlanCommand, ABudgetWantsAPrice) {
  std::string free = kBoxes;
  free.erase(free.find("[price]"), free.find("[failures]") - free.find("[price]"));
  write_all(path("free.toml"), free);
  expect_error(
      weft({"plan", "lenet5", "--batch", "64", "--samples", "50000", "--cluster", "free.toml", "--budget", "40"}), 2,
      "price.per_host_hour is missing in 'free.toml'");
}

TEST_F(PlanCommand, TheDatasNameSaysTheShapeWhereTheyAreNotHere) {
  write_all(path("away.toml"), "model = 'resnet18'\ndata = 'images:photos?size=48'\nbatch = 4\nthreads = 1\n");
  const Outcome outcome = weft({"plan", "away.toml", "--cluster", "boxes.toml", "--ranks", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("from the data's name and the model's default"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--samples N"), std::string::npos) << outcome.err;
}

TEST_F(PlanCommand, SamplesCountHereToo) {
  const nlohmann::json planned = plan({"mine.toml", "--samples", "3200"});
  EXPECT_EQ(planned["steps"], 3 * 3200 / 32);
}

TEST_F(PlanCommand, LoadingIsMeasuredForAClusterThatSaysItsCores) {
  EXPECT_TRUE(plan({"mine.toml", "--cluster", "boxes.toml"})["stages"][0]["loading_seconds"].is_number());
  std::string boxes = kBoxes;
  boxes.erase(boxes.find("cores_per_host = 16\n"), 20);
  write_all(path("boxes.toml"), boxes);
  const Outcome unknown = weft({"plan", "mine.toml", "--cluster", "boxes.toml"});
  EXPECT_NE(unknown.err.find("machine.cores_per_host is missing in 'boxes.toml'"), std::string::npos) << unknown.err;
}

TEST_F(PlanCommand, RefusesWhatTheRunRefuses) {
  expect_error(weft({"plan", "mine.toml", "--set", "shard.zero=1"}), 2, "shard.zero = 1 with one rank");
}

TEST_F(PlanCommand, MeansOfStatesWantSomethingToBeComparedWith) {
  expect_error(weft({"plan", "lenet5", "--cluster", "boxes.toml", "--averaging"}), 2,
               "--averaging is one of the strategies that --deadline, --budget and --clusters compare");
}

TEST_F(PlanCommand, BadWordsAreNamed) {
  EXPECT_NE(weft({"plan", "resnet18", "--deadline", "soon", "--samples", "100"}).err.find("--deadline 'soon'"),
            std::string::npos);
  EXPECT_NE(weft({"plan", "resnet18", "--cluster", "nowhere"}).err.find("nowhere"), std::string::npos);
  EXPECT_NE(weft({"plan", "mlp", "--batch", "10", "--ranks", "4"}).err.find("4 ranks cannot share a batch of 10"),
            std::string::npos);
  EXPECT_NE(weft({"rates", "mlp"}).err.find("--ops"), std::string::npos);
}

TEST_F(PlanCommand, TheGradientNoiseIsExplained) {
  ASSERT_EQ(weft(tiny_run("r", {"--set", "metrics.noise_every=1"})).code, 0);
  const Outcome outcome = weft({"explain", "r", "--steps", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("gradient noise scale: "), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace weft::cli_tests
