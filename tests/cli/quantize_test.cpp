// weft quantize, as a user types it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/engine/model_file.h"
#include "weft/onnx/file/model_file.h"
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

TEST_F(QuantizeCommand, FourBitsAreSmallerThanEight) {
  train();
  ASSERT_EQ(quantize({"-o", "int8.onnx"}).code, 0);
  ASSERT_EQ(quantize({"-o", "int4.onnx", "--bits", "4"}).code, 0);
  ASSERT_EQ(quantize({"-o", "int2.onnx", "--bits", "2"}).code, 0);
  EXPECT_LT(fs::file_size(path("int4.onnx")), fs::file_size(path("int8.onnx")));
  EXPECT_LT(fs::file_size(path("int2.onnx")), fs::file_size(path("int4.onnx")));
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
