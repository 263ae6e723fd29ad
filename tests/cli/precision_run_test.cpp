// Training and using networks in bf16, as a user would ask for it, and mistakes are said.
#include <nlohmann/json.hpp>

#include "tests/cli/run_files.h"
#include "weft/cpu/cpu_backend.h"

namespace weft::cli_tests {
namespace {

class PrecisionRun : public RunTest {
 protected:
  /// A convolutional network, small enough for a second.
  std::vector<std::string> convolutional(const std::string& run, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"train", "--model", "resnet9", "--data",  data(),  "--batch",
                                          "16",    "--run",   run,       "--quiet", "--set", "model.width=8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static bool has_bf16() { return CpuBackend(1).computes_fast(DType::bf16); }
};

TEST_F(PrecisionRun, TrainsInBf16AndResumesThereBitForBit) {
  if (!has_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  ASSERT_EQ(weft(tiny_run("whole", {"--precision", "bf16"})).code, 0);
  EXPECT_EQ(json_of("whole/summary.json")["precision"], "bf16");
  EXPECT_NE(read_all(path("whole/spec.toml")).find("precision = \"bf16\""), std::string::npos);
  EXPECT_GT(json_of("whole/summary.json")["test_accuracy"], 0.8) << "bright quarters are easy to tell apart";
  fs::copy(path("whole"), path("cut"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  fs::remove_all(path("cut") / "checkpoints" / last_checkpoint("cut"));
  fs::remove(path("cut/summary.json"));
  const Outcome resumed = weft({"train", "--resume", "cut", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(last_state("cut"), last_state("whole"));
}

TEST_F(PrecisionRun, TheScaleOfTheLossIsRecordedAndKept) {
  const Outcome outcome = weft(tiny_run("scaled", {"--loss-scaling", "dynamic"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("65536, 0 of"), std::string::npos) << outcome.out;
  EXPECT_EQ(json_of("scaled/summary.json")["loss_scale"], 65536);
  EXPECT_EQ(json_of("scaled/summary.json")["skipped_steps"], 0);
  EXPECT_NE(read_all(path("scaled/metrics.jsonl")).find("\"loss_scale\":65536"), std::string::npos);
  // A power of two leaves every bit of f32 as it is.
  ASSERT_EQ(weft(tiny_run("plain", {})).code, 0);
  EXPECT_EQ(json_of("plain/summary.json")["test_loss"], json_of("scaled/summary.json")["test_loss"]);
}

TEST_F(PrecisionRun, GradientsThatStayInfiniteEndTheRun) {
  const Outcome outcome = weft(tiny_run(
      "hot", {"--loss-scaling", "1e38", "--set", "optimizer.learning_rate=1e6", "--set", "loss_scaling.patience=3"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("the gradients were not finite in 3 steps in a row"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("loss scale of 1e+38"), std::string::npos) << outcome.err;
}

TEST_F(PrecisionRun, RefusesAScaleThatIsNone) {
  const Outcome outcome = weft(tiny_run("r", {"--loss-scaling", "big"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--loss-scaling: loss_scaling.mode = 'big' is not known; choose one of: auto, none, "
                             "dynamic, fixed"),
            std::string::npos)
      << outcome.err;
}

TEST_F(PrecisionRun, TrainsInF16WithAScaledLossOnAnyProcessor) {
  for (const char* isa : {"AVX2", "AVX512_CORE_AMX"}) {
    const std::string run = std::string("half-") + isa;
    const Outcome outcome = Process(convolutional(run, {"--precision", "f16", "--epochs", "3"}), path(""), -1,
                                    {std::string("ONEDNN_MAX_CPU_ISA=") + isa})
                                .wait();
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("precision f16: on this CPU kernels compute in f32 and store f16"), std::string::npos)
        << outcome.err;
    const auto summary = json_of(run + "/summary.json");
    EXPECT_EQ(summary["precision"], "f16");
    EXPECT_GT(summary["loss_scale"], 0);
    EXPECT_GT(summary["test_accuracy"], 0.8);
  }
  // No node but those on the way to the loss and the update is f32, and none runs on the plain loops.
  const auto root = nlohmann::json::parse(weft({"explain", "half-AVX2", "--steps", "1", "--json"}).out);
  for (const auto& node : root["nodes"]) {
    const std::string kernel = node["kernel"];
    if (node["op"] == "conv2d" || node["op"] == "batch_norm" || node["op"] == "conv2d_backward_weights") {
      EXPECT_EQ(node["type"], "f16") << node;
      EXPECT_TRUE(kernel.ends_with(" through f32")) << node;
    }
    if (node["type"] == "f16") {
      EXPECT_FALSE(kernel.starts_with("reference")) << node;
    }
  }
}

TEST_F(PrecisionRun, AutoMeasuresAStepInEachAndKeepsWhatItChose) {
  const Outcome outcome = weft(convolutional("measured", {"--precision", "auto", "--epochs", "1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string chosen = json_of("measured/summary.json")["precision"];
  EXPECT_TRUE(chosen == "f32" || chosen == "bf16") << chosen;
  EXPECT_NE(read_all(path("measured/spec.toml")).find("precision = \"" + chosen + "\""), std::string::npos);
  if (has_bf16()) {
    EXPECT_NE(outcome.err.find(" ms in bf16: computing in " + chosen), std::string::npos) << outcome.err;
  }
}

TEST_F(PrecisionRun, OneModelIsEvaluatedInEitherPrecision) {
  if (!has_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  ASSERT_EQ(
      weft(convolutional("r", {"--epochs", "2", "--precision", "bf16", "--set", "evaluation.every_epochs=0"})).code, 0);
  std::map<std::string, double> losses;
  for (const std::string precision : {"", "f32", "bf16"}) {
    std::vector<std::string> arguments = {"eval", "r", "--json"};
    if (!precision.empty()) arguments.insert(arguments.end(), {"--precision", precision});
    const Outcome outcome = weft(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    losses[precision] = nlohmann::json::parse(outcome.out)["loss"];
  }
  EXPECT_EQ(losses[""], losses["bf16"]);
  EXPECT_NE(losses["f32"], losses["bf16"]);
  EXPECT_NEAR(losses["f32"], losses["bf16"], 0.02 * losses["f32"] + 0.002);
}

TEST_F(PrecisionRun, ExplainAndGraphShowWhatComputesInWhat) {
  if (!has_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  const std::vector<std::string> options = {"--precision", "bf16", "--precision-of", "max_pool2d*=f32"};
  std::vector<std::string> graph = {"graph", "resnet9", "--batch", "8", "--after", "lower_precision"};
  graph.insert(graph.end(), options.begin(), options.end());
  const Outcome shown = weft(graph);
  ASSERT_EQ(shown.code, 0) << shown.err;
  std::istringstream lines(shown.out);
  int convolutions = 0, pools = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool convolution = line.find(" = conv2d(") != std::string::npos,
               pool = line.find(" = max_pool2d(") != std::string::npos;
    convolutions += convolution ? 1 : 0;
    pools += pool ? 1 : 0;
    if (convolution) {
      EXPECT_NE(line.find(" : bf16["), std::string::npos) << line;
    }
    if (pool) {
      EXPECT_NE(line.find(" : f32["), std::string::npos) << line;
    }
  }
  EXPECT_GT(convolutions, 0);
  EXPECT_GT(pools, 0);
  ASSERT_EQ(
      weft(convolutional("r", {"--epochs", "1", "--precision", "bf16", "--set", "checkpoint.every_epochs=1"})).code, 0);
  const auto root = nlohmann::json::parse(weft({"explain", "r", "--steps", "1", "--json"}).out);
  for (const auto& node : root["nodes"]) {
    if (node["op"] == "conv2d") {
      EXPECT_EQ(node["type"], "bf16") << node;
    }
    if (node["op"] == "sgd_update") {
      EXPECT_EQ(node["type"], "f32") << node;
    }
  }
}

TEST_F(PrecisionRun, WhatTheMachineLacksIsRefusedBeforeAnythingIsWritten) {
  expect_error(weft(tiny_run("r", {"--precision", "f8"})), 2, "choose one of: f32, bf16, f16, auto");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(PrecisionRun, AnOlderProcessorRefusesToTrainButEvaluatesInF32) {
  const std::vector<std::string> environment = {"ONEDNN_MAX_CPU_ISA=AVX2"};
  const Outcome refused = Process(tiny_run("r", {"--precision", "bf16"}), path(""), -1, environment).wait();
  expect_error(refused, 2, "precision bf16: this CPU has no instructions for bf16");
  EXPECT_FALSE(fs::exists(path("r")));
  if (!has_bf16()) return;
  ASSERT_EQ(weft(tiny_run("r", {"--precision", "bf16"})).code, 0);
  const Outcome evaluated = Process({"eval", "r"}, path(""), -1, environment).wait();
  EXPECT_EQ(evaluated.code, 0);
  EXPECT_NE(evaluated.err.find("trained in bf16, which this machine lacks; computing in f32"), std::string::npos);
}

TEST_F(PrecisionRun, AnExceptionThatMatchesNothingNamesWhatDoes) {
  if (!has_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  expect_error(weft(tiny_run("r", {"--precision", "bf16", "--precision-of", "matmull=f32"})), 2,
               "precision_of: 'matmull' matches no node and no op of the step");
  expect_error(weft(tiny_run("r", {"--precision", "bf16", "--precision-of", "cross_entropy=bf16"})), 2,
               "computes in f32 only; take it out of what is to compute in bf16");
}

}  // namespace
}  // namespace weft::cli_tests
