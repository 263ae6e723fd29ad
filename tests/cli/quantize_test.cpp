// weft quantize, as a user types it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/engine/engine.h"
#include "weft/engine/model_file.h"
#include "weft/onnx/file/model_file.h"
#include "weft/ops/all.h"
#include "weft/tensor/npy.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli_tests {
namespace {

using testing::HasSubstr;
using testing::Not;

class QuantizeCommand : public ProgramTest {
 protected:
  void train() { ASSERT_EQ(weft(tiny_run("run")).code, 0); }
  Outcome quantize(std::vector<std::string> more) {
    std::vector<std::string> words{"quantize", "run", "--samples", "64", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return weft(words);
  }
};

TEST_F(QuantizeCommand, ARunBecomesAModelOfIntegersThatRuns) {
  train();
  const Outcome outcome = quantize({"-o", "int8.onnx"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"accuracy", "size", "latency of one sample", "signal to noise"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  const onnx::Model model = onnx::read_model(path("int8.onnx"));
  int quantized = 0;
  for (const auto& [name, value] : model.graph.initializers)
    quantized += value.tensor()->dtype() == DType::i8 && value.tensor()->shape().rank() == 2 ? 1 : 0;
  EXPECT_EQ(quantized, 3);
  Tensor images(DType::f32, Shape{2, 1, 8, 8});
  for (int64_t at = 0; at < images.elements(); ++at) images.data_as<float>()[at] = static_cast<float>(at % 7) / 7;
  write_npy(path("images.npy"), images);
  const Outcome inferred = weft({"infer", "int8.onnx", "--input", "images.npy", "--output-dir", "out"});
  ASSERT_EQ(inferred.code, 0) << inferred.err;
  const Tensor logits = read_npy(path("out/logits.npy"));
  EXPECT_EQ(logits.shape(), (Shape{2, 4}));
  for (int64_t at = 0; at < logits.elements(); ++at) EXPECT_TRUE(std::isfinite(logits.data_as<float>()[at]));
}

TEST_F(QuantizeCommand, ACompiledFileComputesWithIntegers) {
  ASSERT_EQ(weft({"export", "lenet5", "net.onnx"}).code, 0);
  ASSERT_EQ(weft({"quantize", "net.onnx", "--drawn-samples", "4", "-o", "int8.onnx", "--threads", "1"}).code, 0);
  ASSERT_EQ(weft({"compile", "int8.onnx", "int8.weft"}).code, 0);
  write_npy(path("images.npy"), Tensor(DType::f32, Shape{1, 1, 28, 28}));
  const Outcome inferred = weft({"infer", "int8.weft", "--input", "images.npy", "--repeat", "1", "--json"});
  ASSERT_EQ(inferred.code, 0) << inferred.err;
  const auto report = nlohmann::json::parse(inferred.out);
  EXPECT_LT(report["constant_bytes"].get<int64_t>(), 100'000) << "61,706 weights of one byte each";
}

class FixedRequantization : public QuantizeCommand {
 protected:
  /// The first output of a batch of images, with these kernels.
  static Tensor output_of(const engine::DeployedModel& model, KernelTable kernels) {
    const OpRegistry ops = ops::make_registry();
    const CpuBackend device(1, std::move(kernels));
    engine::Engine engine(model, ops, device);
    Tensor images(engine.input_type(0, 5));
    for (int64_t at = 0; at < images.elements(); ++at) images.data_as<float>()[at] = static_cast<float>(at % 17) / 17;
    engine::Stream stream(engine);
    stream.set_input(0, images.data());
    stream.run(5);
    return stream.output(0);
  }
};

TEST_F(FixedRequantization, GivesWhatTheReferenceGives) {
  ASSERT_EQ(weft({"export", "lenet5", "net.onnx"}).code, 0);
  const Outcome outcome = weft({"quantize", "net.onnx", "--drawn-samples", "8", "--symmetric", "--requantize", "fixed",
                                "-o", "fixed.weft", "--threads", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const engine::DeployedModel model = engine::read_model(path("fixed.weft"));
  EXPECT_THAT(model.graphs.at(0).text, HasSubstr("rounding=\"fixed\""));
  const Tensor own = output_of(model, standard_kernels()), expected = output_of(model, reference_kernels());
  ASSERT_EQ(own.type(), expected.type());
  // The last layer ends in reals, whose last bit a fused multiplication may change; a step of its sum is far more.
  for (int64_t at = 0; at < own.elements(); ++at)
    EXPECT_NEAR(own.data_as<float>()[at], expected.data_as<float>()[at], 1e-6);
}

TEST_F(FixedRequantization, RunsByTheCommandAndIsAsNearAsTheFloatKind) {
  train();
  ASSERT_EQ(quantize({"-o", "float.weft"}).code, 0);
  ASSERT_EQ(quantize({"-o", "fixed.weft", "--requantize", "fixed"}).code, 0);
  Tensor images(DType::f32, Shape{6, 1, 8, 8});
  for (int64_t at = 0; at < images.elements(); ++at) images.data_as<float>()[at] = static_cast<float>(at % 7) / 7;
  write_npy(path("images.npy"), images);
  const auto logits_of = [&](const std::string& file) {
    const Outcome inferred = weft({"infer", file, "--input", "images.npy", "--output-dir", "out", "--threads", "1"});
    EXPECT_EQ(inferred.code, 0) << inferred.err;
    return read_npy(path("out/logits.npy"));
  };
  const Tensor real = logits_of("float.weft"), fixed = logits_of("fixed.weft");
  for (int64_t at = 0; at < real.elements(); ++at)
    EXPECT_NEAR(fixed.data_as<float>()[at], real.data_as<float>()[at], 0.2);
}

TEST_F(FixedRequantization, IsRefusedForFilesThatCannotSayIt) {
  train();
  expect_error(quantize({"-o", "int8.onnx", "--requantize", "fixed"}), 2, "--requantize fixed: ONNX");
  expect_error(quantize({"-o", "int8.safetensors", "--requantize", "fixed"}), 2, "name the output FILE.weft");
}

TEST_F(FixedRequantization, IsRefusedWhereNothingIsRequantized) {
  train();
  const Outcome outcome = quantize({"-o", "int4.weft", "--bits", "4", "--requantize", "fixed"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--requantize fixed with --bits 4"));
}

TEST_F(QuantizeCommand, AnOnnxFileWantsData) {
  ASSERT_EQ(weft({"export", "mlp", "net.onnx"}).code, 0);
  expect_error(weft({"quantize", "net.onnx", "-o", "int8.onnx"}), 2, "an ONNX file wants --data SPEC");
}

TEST_F(QuantizeCommand, AnExportedFileIsQuantizedAsItsRun) {
  train();
  ASSERT_EQ(weft({"export", "run", "net.onnx"}).code, 0);
  const Outcome outcome = weft({"quantize", "net.onnx", "--data", data(), "-o", "int8.onnx", "--threads", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("measured on 72"));
}

TEST_F(QuantizeCommand, OneSampleIsEnoughButSaid) {
  train();
  const Outcome outcome = weft({"quantize", "run", "-o", "int8.onnx", "--samples", "1", "--threads", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("calibration sees 1 sample only"));
}

TEST_F(QuantizeCommand, SevenBitsHaveTheSizeAndTheKindsOfEight) {
  train();
  ASSERT_EQ(quantize({"-o", "int8.onnx"}).code, 0);
  const Outcome outcome = quantize({"-o", "int7.onnx", "--bits", "7"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("int7"));
  EXPECT_EQ(fs::file_size(path("int7.onnx")), fs::file_size(path("int8.onnx")));
  EXPECT_EQ(quantize({"-o", "int7.weft", "--bits", "7", "--requantize", "fixed"}).code, 0);
}

TEST_F(QuantizeCommand, FourBitsAreSmallerThanEight) {
  train();
  ASSERT_EQ(quantize({"-o", "int8.onnx"}).code, 0);
  ASSERT_EQ(quantize({"-o", "int4.onnx", "--bits", "4"}).code, 0);
  ASSERT_EQ(quantize({"-o", "int2.onnx", "--bits", "2"}).code, 0);
  EXPECT_LT(fs::file_size(path("int4.onnx")), fs::file_size(path("int8.onnx")));
  EXPECT_LT(fs::file_size(path("int2.onnx")), fs::file_size(path("int4.onnx")));
}

TEST_F(QuantizeCommand, ACompiledFileHoldsFourAndTwoBitsPackedAndGivesTheSame) {
  ASSERT_EQ(weft({"export", "mlp", "net.onnx"}).code, 0);
  Tensor images(DType::f32, Shape{3, 1, 28, 28});
  for (int64_t at = 0; at < images.elements(); ++at) images.data_as<float>()[at] = static_cast<float>(at % 13) / 13;
  write_npy(path("images.npy"), images);
  const int64_t weights = 784 * 512 + 512 * 256 + 256 * 10;
  for (const int bits : {4, 2}) {
    for (const std::string file : {"q.onnx", "q.weft"}) {
      const Outcome outcome = weft({"quantize", "net.onnx", "--drawn-samples", "8", "--bits", std::to_string(bits),
                                    "-o", file, "--threads", "1", "--force"});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      // A scale for 32 weights; biases, names and the graph.
      EXPECT_LT(fs::file_size(path(file)), static_cast<uintmax_t>(weights * bits / 8 + weights / 32 * 4 + 20'000))
          << file << " of " << bits << " bits";
      const Outcome inferred =
          weft({"infer", file, "--input", "images.npy", "--output-dir", "of-" + file, "--threads", "1"});
      ASSERT_EQ(inferred.code, 0) << inferred.err;
    }
    const Tensor compiled = read_npy(path("of-q.weft/logits.npy")), onnx = read_npy(path("of-q.onnx/logits.npy"));
    ASSERT_EQ(compiled.shape(), onnx.shape());
    EXPECT_EQ(std::memcmp(compiled.data(), onnx.data(), static_cast<size_t>(onnx.bytes())), 0) << bits << " bits";
  }
}

TEST_F(QuantizeCommand, AnOlderVersionHasTheRealsOfFourBits) {
  ASSERT_EQ(weft({"export", "mlp", "net.onnx"}).code, 0);
  ASSERT_EQ(
      weft({"quantize", "net.onnx", "--drawn-samples", "8", "--bits", "4", "-o", "q.onnx", "--threads", "1"}).code, 0);
  ASSERT_EQ(weft({"export", "q.onnx", "new.onnx", "--opset", "21"}).code, 0);
  const Outcome older = weft({"export", "q.onnx", "old.onnx", "--opset", "17"});
  ASSERT_EQ(older.code, 0) << older.err;
  write_npy(path("images.npy"), Tensor(DType::f32, Shape{1, 1, 28, 28}));
  const auto logits_of = [&](const std::string& file) {
    const Outcome inferred = weft({"infer", file, "--input", "images.npy", "--output-dir", "out", "--threads", "1"});
    EXPECT_EQ(inferred.code, 0) << inferred.err;
    return read_npy(path("out/logits.npy"));
  };
  const Tensor expected = logits_of("q.onnx");
  for (const std::string file : {"new.onnx", "old.onnx"}) {
    const Tensor logits = logits_of(file);
    for (int64_t at = 0; at < expected.elements(); ++at)
      EXPECT_NEAR(logits.data_as<float>()[at], expected.data_as<float>()[at], 1e-4) << file;
  }
  EXPECT_LT(5 * fs::file_size(path("new.onnx")), fs::file_size(path("old.onnx")));
}

TEST_F(QuantizeCommand, WritesIntegersAndScalesAsSafetensors) {
  train();
  ASSERT_EQ(quantize({"-o", "int8.safetensors"}).code, 0);
  const SafetensorsFile file = read_safetensors(path("int8.safetensors"));
  EXPECT_EQ(file.tensors.at("fc1.weight.quantized").dtype(), DType::i8);
  EXPECT_EQ(file.tensors.at("fc1.weight.quantized.scale").dtype(), DType::f32);
}

TEST_F(QuantizeCommand, WritesAFileThatInferRuns) {
  train();
  ASSERT_EQ(quantize({"-o", "int8.weft"}).code, 0);
  EXPECT_TRUE(engine::is_model_file(path("int8.weft")));
  write_npy(path("images.npy"), Tensor(DType::f32, Shape{3, 1, 8, 8}));
  const Outcome outcome = weft({"infer", "int8.weft", "--input", "images.npy", "--threads", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(QuantizeCommand, LayersAreChosenByOtherSamplesThanThoseThatMeasure) {
  train();
  const Outcome outcome = quantize({"-o", "int8.onnx", "--accuracy-drop", "50"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("layers chosen by"));
  EXPECT_THAT(outcome.out, HasSubstr("other training samples"));
}

class QuantizedLanguageModel : public QuantizeCommand {
 protected:
  void SetUp() override {
    QuantizeCommand::SetUp();
    std::string text;
    for (int at = 0; at < 400; ++at) text += at % 3 == 0 ? "abcdefgh " : "hgfa ";
    write_all(path("t.txt"), text);
    const Outcome trained = weft({"train",
                                  "--model",
                                  "transformer_lm",
                                  "--data",
                                  "text:t.txt?length=16",
                                  "--run",
                                  "run",
                                  "--batch",
                                  "8",
                                  "--threads",
                                  "1",
                                  "--quiet",
                                  "--epochs",
                                  "1",
                                  "--set",
                                  "optimizer.name=adamw",
                                  "--set",
                                  "optimizer.learning_rate=0.01",
                                  "--set",
                                  "model.width=32",
                                  "--set",
                                  "model.layers=1"});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  /// The two numbers of a row of the table.
  static std::pair<double, double> row(const std::string& table, const std::string& name) {
    std::pair<double, double> numbers{-1, -1};
    const size_t at = table.find(name);
    if (at != std::string::npos) std::istringstream(table.substr(at + name.size())) >> numbers.first >> numbers.second;
    return numbers;
  }
};

TEST_F(QuantizedLanguageModel, IsMeasuredByThePerplexityThatEvaluationMeasures) {
  const Outcome outcome = quantize({"-o", "int8.onnx"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const double evaluated = nlohmann::json::parse(weft({"eval", "run", "--json"}).out)["perplexity"].get<double>();
  const auto [before, after] = row(outcome.out, "perplexity");
  EXPECT_NEAR(before, evaluated, 1e-3 * evaluated) << outcome.out;
  EXPECT_NEAR(after, evaluated, 0.1 * evaluated) << outcome.out;
  EXPECT_THAT(outcome.out, Not(HasSubstr("accuracy")));
}

TEST_F(QuantizedLanguageModel, HasALimitInPerCentOfThePerplexity) {
  const Outcome outcome = quantize({"-o", "int2.onnx", "--bits", "2", "--accuracy-drop", "0.5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto [before, after] = row(outcome.out, "perplexity");
  EXPECT_LT(after, 1.05 * before) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("layers chosen by"));
}

TEST_F(QuantizeCommand, DrawnSamplesWantNoDataAndSayThatTheAccuracyIsUnknown) {
  ASSERT_EQ(weft({"export", "mlp", "net.onnx"}).code, 0);
  const Outcome outcome = weft({"quantize", "net.onnx", "--drawn-samples", "8", "-o", "int8.onnx", "--threads", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("The accuracy is unknown: calibrated on 8 samples of drawn numbers."));
  EXPECT_THAT(outcome.out, Not(HasSubstr("accuracy  ")));
  EXPECT_TRUE(fs::exists(path("int8.onnx")));
}

TEST_F(QuantizeCommand, DrawnSamplesOfALanguageModelAreRowsOfItsTable) {
  ASSERT_EQ(weft({"export", "transformer_lm", "net.onnx", "--batch", "1"}).code, 0);
  const Outcome outcome = weft({"quantize", "net.onnx", "--drawn-samples", "2", "-o", "int8.onnx", "--threads", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("calibrated on 2 samples of drawn numbers"));
}

TEST_F(QuantizeCommand, DrawnSamplesAndDataExcludeEachOther) {
  ASSERT_EQ(weft({"export", "mlp", "net.onnx"}).code, 0);
  expect_error(weft({"quantize", "net.onnx", "--drawn-samples", "8", "--accuracy-drop", "1", "-o", "int8.onnx"}), 2,
               "nothing is known of the accuracy then");
}

TEST_F(QuantizeCommand, WhatIsNotFiniteInCalibrationIsNamed) {
  train();
  ASSERT_EQ(weft({"export", "run", "net.onnx"}).code, 0);
  const Outcome outcome = weft({"quantize", "net.onnx", "--data", data(), "-o", "int8.onnx", "--threads", "1", "--mean",
                                "0.5", "--deviation", "1e-45"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("number beyond all limits for some sample"));
  EXPECT_FALSE(fs::exists(path("int8.onnx")));
}

TEST_F(QuantizeCommand, AFileThatIsThereIsKept) {
  train();
  write_all(path("int8.onnx"), "mine");
  expect_error(quantize({"-o", "int8.onnx"}), 2, "is there already");
  EXPECT_EQ(read_all(path("int8.onnx")), "mine");
}

TEST_F(QuantizeCommand, GroupsOfWeightsOfEightBitsAreRefused) {
  train();
  expect_error(quantize({"-o", "int7.onnx", "--bits", "7", "--group", "16"}), 2, "weights of 7 bits have a scale");
  expect_error(quantize({"-o", "int8.onnx", "--group", "16"}), 2, "weights of 8 bits have a scale for each output");
}

TEST_F(QuantizeCommand, RoundingThatWouldBeLearnedForNothingIsRefused) {
  train();  // matrix products alone
  expect_error(quantize({"-o", "int4.onnx", "--bits", "4", "--adaround"}), 2,
               "rounding is learned for weights of 8 bits");
}

TEST_F(QuantizeCommand, OtherFilesAreRefusedByTheirNames) {
  train();
  expect_error(quantize({"-o", "int8.bin"}), 2, "name it FILE.onnx, FILE.weft or FILE.safetensors");
}

}  // namespace
}  // namespace weft::cli_tests
