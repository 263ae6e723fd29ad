// ONNX files as others write them, small ones made here: weft import, infer, train and quantize.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/onnx/model_support.h"
#include "weft/tensor/element.h"
#include "weft/tensor/npy.h"

namespace weft::cli_tests {
namespace {

using testing::HasSubstr;
using testing::Not;

class OnnxModels : public ProgramTest {
 protected:
  void write(const onnx::Model& model, const std::string& name = "net.onnx") const {
    onnx::write_model(path(name), model);
  }

  /// Pictures [N,1,8,8] of four classes: flattened, times w [64,4].
  static onnx::Model classifier(DType dtype = DType::f32) {
    onnx::Model model = onnx::make_model(
        {onnx::tensor_info("x", {onnx::open("batch"), onnx::fixed(1), onnx::fixed(8), onnx::fixed(8)}, dtype)},
        {onnx::make_node("Flatten", {"x"}, {"rows"}), onnx::make_node("MatMul", {"rows", "w"}, {"logits"})},
        {onnx::tensor_info("logits", {onnx::open("batch"), onnx::fixed(4)}, dtype)});
    model.graph.initializers["w"] = weights(dtype);
    return model;
  }
  static Tensor weights(DType dtype) {
    Tensor tensor(dtype, Shape{64, 4});
    for (int64_t index = 0; index < tensor.elements(); ++index)
      store_element(dtype, tensor.data(), index, static_cast<double>(index % 5 - 2) / 8);
    return tensor;
  }
  /// The same whose weights are a Constant, behind an Identity.
  static onnx::Model classifier_of_constants() {
    onnx::Model model = classifier();
    auto& nodes = model.graph.nodes;
    nodes.insert(nodes.begin(), onnx::make_node("Identity", {"held"}, {"w"}));
    nodes.insert(nodes.begin(),
                 onnx::make_node("Constant", {}, {"held"}, {{"value", onnx::HostValue(weights(DType::f32))}}));
    model.graph.initializers.clear();
    return model;
  }

  Outcome train(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"train",   "--model", "onnx:net.onnx", "--data", data(),      "--epochs", "4",
                                   "--batch", "32",      "--run",         "run",    "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return weft(words);
  }
  void expect_trained(const onnx::Model& model) {
    write(model);
    const Outcome trained = train();
    ASSERT_EQ(trained.code, 0) << trained.err;
    const auto summary = nlohmann::json::parse(read_all(path("run/summary.json")));
    EXPECT_EQ(summary["parameters"], 256);
    EXPECT_GT(summary["test_accuracy"].get<double>(), 0.5) << summary.dump(2);
  }
};

TEST_F(OnnxModels, WeightsOfF16AreTrained) { expect_trained(classifier(DType::f16)); }
TEST_F(OnnxModels, WeightsOfBf16AreTrained) { expect_trained(classifier(DType::bf16)); }
TEST_F(OnnxModels, WeightsOfF64AreTrained) { expect_trained(classifier(DType::f64)); }
TEST_F(OnnxModels, WeightsOfConstantsAreTrained) { expect_trained(classifier_of_constants()); }

TEST_F(OnnxModels, AModelWithoutAnythingToTrainIsRefused) {
  onnx::Model model = classifier();
  model.graph.initializers["w8"] = Tensor(DType::i8, Shape{64, 4});
  model.graph.initializers["scale"] = onnx::reals({}, {0.5f});
  model.graph.initializers.erase("w");
  model.graph.nodes.insert(model.graph.nodes.begin(), onnx::make_node("DequantizeLinear", {"w8", "scale"}, {"w"}));
  write(model);
  const Outcome outcome = train();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'net.onnx' has nothing to train"));
  EXPECT_THAT(outcome.err, HasSubstr("its tensors are: 1 of f32[], 1 of i8;"));
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(OnnxModels, TheLastLayerOfConstantsGetsOtherClasses) {
  onnx::Model model = classifier_of_constants();
  model.graph.nodes[0].attributes["value"].value = onnx::HostValue(Tensor(DType::f32, Shape{64, 7}));
  model.graph.outputs[0] = onnx::tensor_info("logits", {onnx::open("batch"), onnx::fixed(7)});
  write(model);
  const Outcome trained = train();
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(nlohmann::json::parse(read_all(path("run/summary.json")))["parameters"], 256);
}

TEST_F(OnnxModels, AModelOfConstantsIsQuantized) {
  write(classifier_of_constants());
  const Outcome outcome = weft({"quantize", "net.onnx", "--drawn-samples", "4", "-o", "int8.onnx", "--threads", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(path("int8.onnx")));
}

TEST_F(OnnxModels, AModelOfFunctionsIsShown) {
  const fs::path file = fs::path(WEFT_SOURCE_DIR) / "tests/fuzz/corpus/onnx_model/valid_function.onnx";
  const Outcome shown = weft({"import", file, "--json"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(nlohmann::json::parse(shown.out)["missing"].empty());
}

TEST_F(OnnxModels, OperatorsOfOnnxRuntimeAreShown) {
  onnx::Model model = onnx::make_model({onnx::tensor_info("x", {onnx::fixed(2)}, DType::u8)},
                                       {onnx::make_node("QLinearAdd", {"x", "s", "z", "x", "s", "z", "s", "z"}, {"y"})},
                                       {onnx::tensor_info("y", {onnx::fixed(2)}, DType::u8)});
  model.graph.nodes[0].domain = "com.microsoft";
  model.opsets["com.microsoft"] = 1;
  model.graph.initializers["s"] = onnx::reals({}, {0.5f});
  model.graph.initializers["z"] = Tensor(DType::u8, Shape{});
  write(model);
  EXPECT_EQ(weft({"import", "net.onnx"}).code, 0);
}

TEST_F(OnnxModels, OperatorsOfTheFutureAreRefused) {
  onnx::Model model = classifier();
  model.opsets[""] = 99;
  write(model);
  for (const char* command : {"import", "infer"})
    EXPECT_THAT(weft({command, "net.onnx"}).err,
                HasSubstr("has operators of version 99, and weft knows those up to 28"));
  EXPECT_THAT(train().err, HasSubstr("has operators of version 99"));
}

TEST_F(OnnxModels, AnInputWithoutARankIsNamed) {
  onnx::Model model = classifier();
  model.graph.inputs[0].shape.reset();
  write(model);
  const Outcome outcome = weft({"import", "net.onnx"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the file does not say the rank of its input 'x' (f32[...])"));
}

TEST_F(OnnxModels, AnInputOfTextsIsShown) {
  onnx::Model model = onnx::make_model({}, {onnx::make_node("StringConcat", {"a", "a"}, {"y"})}, {});
  for (auto* infos : {&model.graph.inputs, &model.graph.outputs}) {
    onnx::ValueInfo info;
    info.kind = onnx::ValueInfo::Kind::strings;
    info.name = infos == &model.graph.inputs ? "a" : "y";
    info.shape = {onnx::fixed(2)};
    infos->push_back(info);
  }
  write(model);
  const Outcome shown = weft({"import", "net.onnx"});
  EXPECT_EQ(shown.code, 0) << shown.err;
}

TEST_F(OnnxModels, ANameThatBindsNothingIsRefused) {
  write(classifier());
  const Outcome outcome = weft({"import", "net.onnx", "--bind", "nope=8"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no input of 'net.onnx' has an open dimension of that name; known: batch"));
}

/// x [batch,seq] + x
onnx::Model of_sequences() {
  return onnx::make_model({onnx::tensor_info("x", {onnx::open("batch"), onnx::open("seq")})},
                          {onnx::make_node("Add", {"x", "x"}, {"y"})},
                          {onnx::tensor_info("y", {onnx::open("batch"), onnx::open("seq")})});
}

TEST_F(OnnxModels, AnotherOpenDimensionIsBound) {
  write(of_sequences());
  EXPECT_THAT(weft({"infer", "net.onnx", "--repeat", "1"}).err, HasSubstr("as in --bind seq=128"));
  const Outcome bound = weft({"infer", "net.onnx", "--repeat", "1", "--bind", "seq=16", "--json"});
  ASSERT_EQ(bound.code, 0) << bound.err;
  EXPECT_THAT(bound.out, HasSubstr("f32[1,16]"));
}

TEST_F(OnnxModels, ACompiledFileAndARunHaveNothingToBind) {
  write(of_sequences());
  ASSERT_EQ(weft({"compile", "net.onnx", "net.weft", "--bind", "seq=16"}).code, 0);
  const Outcome outcome = weft({"infer", "net.weft", "--repeat", "1", "--bind", "seq=8"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--bind seq=8: 'net.weft' has had its sizes since `weft compile`"));
}

TEST_F(OnnxModels, AModelOfAnotherFormForEachBatchRunsForOne) {
  // A batch of up to 4 stays, of a larger one the first four rows do.
  onnx::Model model = onnx::make_model(
      {onnx::tensor_info("x", {onnx::open("batch"), onnx::fixed(2)})},
      {onnx::make_node("Slice", {"x", "from", "to"}, {"part"}), onnx::make_node("Add", {"part", "part"}, {"y"})},
      {onnx::tensor_info("y", {onnx::open("rows"), onnx::fixed(2)})});
  model.graph.initializers["from"] = onnx::wholes({1}, {0});
  model.graph.initializers["to"] = onnx::wholes({1}, {4});
  write(model);
  EXPECT_THAT(weft({"infer", "net.onnx", "--repeat", "1"}).err, HasSubstr("such as --batch 16"));
  const Outcome outcome = weft({"infer", "net.onnx", "--repeat", "1", "--batch", "3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(OnnxModels, AnOutputUnlikeWhatTheFileSaysIsNoted) {
  onnx::Model model = of_sequences();
  model.graph.outputs[0] = onnx::tensor_info("y", {onnx::open("batch"), onnx::fixed(7)});
  write(model);
  write_npy(path("x.npy"), Tensor(DType::f32, Shape{1, 2}));
  const Outcome outcome = weft({"infer", "net.onnx", "--input", "x.npy"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("the output 'y' is f32[1,2], but the model says f32[batch,7]"));
}

TEST_F(OnnxModels, NaNAmongTheValuesIsCounted) {
  write(of_sequences());
  Tensor x(DType::f32, Shape{1, 3});
  x.data_as<float>()[0] = 1;
  x.data_as<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  x.data_as<float>()[2] = 2;
  write_npy(path("x.npy"), x);
  EXPECT_THAT(weft({"infer", "net.onnx", "--input", "x.npy"}).out, HasSubstr("2 to 4, the largest at 2, 1 of 3 NaN"));
}

TEST_F(OnnxModels, FlagsOfExportThatChangeNothingAreRefused) {
  write(classifier());
  const auto error_of = [&](std::vector<std::string> words) {
    const Outcome outcome = weft(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(error_of({"export", "lenet5", "out.onnx", "--bind", "z=1"}), HasSubstr("--bind: it binds dimensions of"));
  EXPECT_THAT(error_of({"export", "lenet5", "out.onnx", "--checkpoint", "best"}),
              HasSubstr("--checkpoint: it is of a"));
  EXPECT_THAT(error_of({"export", "net.onnx", "out.onnx", "--seed", "3"}), HasSubstr("--seed: it draws the weights"));
  const std::vector<std::vector<std::string>> of_onnx{{"--opset", "15"},    {"--preprocess"}, {"--batch", "3"},
                                                      {"--licence", "MIT"}, {"--seed", "3"},  {"--bind", "z=1"}};
  for (const auto& flag : of_onnx) {
    std::vector<std::string> words{"export", "run", "out.safetensors"};
    words.insert(words.end(), flag.begin(), flag.end());
    EXPECT_THAT(error_of(words), HasSubstr(flag[0] + ": 'out.safetensors' holds weights alone"));
  }
}

TEST_F(OnnxModels, FlagsOfDataBesideDrawnSamplesAreRefused) {
  write(classifier());
  const std::vector<std::vector<std::string>> of_data{
      {"--samples", "8"}, {"--test-samples", "8"}, {"--mean", "0.5", "--deviation", "0.5"}};
  for (const auto& flag : of_data) {
    std::vector<std::string> words{"quantize", "net.onnx", "--drawn-samples", "4", "-o", "int8.onnx"};
    words.insert(words.end(), flag.begin(), flag.end());
    const Outcome outcome = weft(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(flag[0] + ": it is of samples of --data"));
  }
}

TEST_F(OnnxModels, AnOutputThatCannotBeWrittenIsSaidBeforeTheWork) {
  write(classifier());
  const Outcome outcome = weft({"quantize", "net.onnx", "--drawn-samples", "4", "-o", "nowhere/int8.onnx"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write 'nowhere/int8.onnx'"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("calibrated")));
}

}  // namespace
}  // namespace weft::cli_tests
