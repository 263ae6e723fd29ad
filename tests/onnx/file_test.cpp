// Reading and writing ONNX files: weft/onnx/file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/onnx/model_support.h"
#include "tests/support/error_of.h"
#include "tests/support/files_for_tests.h"
#include "weft/base/error.h"

namespace weft::onnx {
namespace {

using testing::HasSubstr;

Model small_model() {
  Model model = make_model({tensor_info("x", {open("batch"), fixed(2)})}, {make_node("MatMul", {"x", "w"}, {"y"})},
                           {tensor_info("y", {open("batch"), fixed(3)})});
  model.graph.initializers["w"] = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  model.metadata["classes"] = "3";
  return model;
}

TEST(OnnxFile, ReadsBackWhatWasWritten) {
  const Model model = parse_model(print_model(small_model()), "small.onnx", {});
  EXPECT_EQ(model.opset(), 20);
  EXPECT_EQ(model.metadata.at("classes"), "3");
  EXPECT_EQ(describe(model.graph.inputs.at(0)), "f32[batch,2]");
  ASSERT_EQ(model.graph.nodes.size(), 1U);
  EXPECT_EQ(describe(model.graph.nodes[0]), "MatMul 'y'");
  const Tensor& weight = *model.graph.initializers.at("w").tensor();
  EXPECT_EQ(weight.shape(), (Shape{2, 3}));
  EXPECT_EQ(weight.data_as<float>()[5], 6);
}

TEST(OnnxFile, AttributesOfAllKindsComeBack) {
  Model model = small_model();
  auto body = std::make_shared<OnnxGraph>();
  body->outputs.push_back(tensor_info("inner", {}));
  model.graph.nodes[0] = make_node("Custom", {}, {"y"},
                                   {{"whole", int64_t{-3}},
                                    {"real", 0.5F},
                                    {"text", std::string("same")},
                                    {"wholes", std::vector<int64_t>{1, 2}},
                                    {"reals", std::vector<float>{1.5F}},
                                    {"texts", std::vector<std::string>{"a", ""}},
                                    {"tensor", HostValue(reals({2}, {1, 2}))},
                                    {"graph", std::shared_ptr<const OnnxGraph>(body)}});
  const Model read = parse_model(print_model(model), "m", {});
  const auto& attributes = read.graph.nodes[0].attributes;
  EXPECT_EQ(std::get<int64_t>(attributes.at("whole").value), -3);
  EXPECT_EQ(std::get<float>(attributes.at("real").value), 0.5F);
  EXPECT_EQ(std::get<std::string>(attributes.at("text").value), "same");
  EXPECT_EQ(std::get<std::vector<int64_t>>(attributes.at("wholes").value), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(std::get<std::vector<float>>(attributes.at("reals").value), (std::vector<float>{1.5F}));
  EXPECT_EQ(std::get<std::vector<std::string>>(attributes.at("texts").value), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(std::get<HostValue>(attributes.at("tensor").value).tensor()->elements(), 2);
  EXPECT_EQ(std::get<std::shared_ptr<const OnnxGraph>>(attributes.at("graph").value)->outputs[0].name, "inner");
}

TEST(OnnxFile, EveryTypeOfNumbersComesBack) {
  for (const DType dtype : all_dtypes()) {
    Model model = small_model();
    Tensor tensor(dtype, Shape{5});
    if (dtype == DType::boolean)
      tensor.data_as<uint8_t>()[1] = 1;
    else if (!is_packed(dtype))
      std::memset(tensor.data(), 3, static_cast<size_t>(tensor.bytes()));
    else
      tensor.data_as<uint8_t>()[0] = 0x21;
    model.graph.initializers["w"] = tensor;
    const Model read = parse_model(print_model(model), "m", {});
    const Tensor& back = *read.graph.initializers.at("w").tensor();
    ASSERT_EQ(back.type(), tensor.type());
    EXPECT_EQ(std::memcmp(back.data(), tensor.data(), static_cast<size_t>(tensor.bytes())), 0) << name_of(dtype);
  }
}

TEST(OnnxFile, WhatIsNoModelIsSaid) {
  EXPECT_THAT(test::error_of([] { parse_model("", "a.onnx", {}); }),
              HasSubstr("'a.onnx' is no ONNX model, or is damaged"));
  EXPECT_THAT(test::error_of([] { parse_model("hello", "a.onnx", {}); }), HasSubstr("is no ONNX model"));
}

TEST(OnnxFile, ATruncatedFileIsRefusedAtEveryLength) {
  Model model = small_model();
  model.metadata.clear();  // it stands behind all else, and a model may be without
  const std::string whole = print_model(model);
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string part = whole.substr(0, length);
    // What ends behind a whole field is a model, but one without its operators' version.
    const std::string message = test::error_of([&] { parse_model(part, "a.onnx", {}).opset(); });
    EXPECT_NE(message, "no error") << length;
  }
}

TEST(OnnxFile, AMissingFileIsNamed) {
  EXPECT_THAT(test::error_of([] { read_model("/nowhere/model.onnx"); }), HasSubstr("/nowhere/model.onnx"));
}

TEST(OnnxFile, ATensorWithTooFewBytesIsNamed) {
  std::string content = print_model(small_model());
  const std::string weights(reinterpret_cast<const char*>(std::array<float, 2>{1, 2}.data()), 8);
  ASSERT_NE(content.find(weights), std::string::npos);
  // A shape of 2 x 3 becomes one of 2 x 100: the dimension is one byte of the message.
  const size_t dims = content.find(std::string("\x08\x02\x08\x03", 4));
  ASSERT_NE(dims, std::string::npos);
  content[dims + 3] = 100;
  EXPECT_THAT(test::error_of([&] { parse_model(content, "a.onnx", {}); }),
              HasSubstr("the tensor 'w' holds 24 bytes, but its shape wants 800"));
}

class OnnxFiles : public FilesTest {};

TEST_F(OnnxFiles, ExternalDataOutsideTheFolderAreNotRead) {
  Model model = small_model();
  std::string content = print_model(model);
  // raw_data (field 9) becomes external_data (13) and data_location (14).
  const size_t raw = content.find(std::string("\x4a\x18", 2));
  ASSERT_NE(raw, std::string::npos);
  const auto external = [&](const std::string& location) {
    std::string entry = "\x0a\x08location\x12" + std::string(1, static_cast<char>(location.size())) + location;
    std::string field = "\x6a" + std::string(1, static_cast<char>(entry.size())) + entry + std::string("\x70\x01", 2);
    std::string changed = content;
    changed.replace(raw, 26, field);
    // The lengths of the tensor and of the graph change by as much.
    const auto grow = [&](size_t at) {
      changed[at] = static_cast<char>(changed[at] + static_cast<int>(field.size()) - 26);
    };
    const size_t tensor = changed.rfind('\x2a', raw);
    grow(tensor + 1);
    size_t graph = changed.find('\x3a');
    while (static_cast<size_t>(static_cast<unsigned char>(content[graph + 1])) + graph + 2 > content.size() ||
           graph + 2 > tensor)
      graph = changed.find('\x3a', graph + 1);
    grow(graph + 1);
    return changed;
  };
  EXPECT_THAT(test::error_of([&] { parse_model(external("../secret"), "a.onnx", folder_); }),
              HasSubstr("outside the model's folder"));
  EXPECT_THAT(test::error_of([&] { parse_model(external("/etc/passwd"), "a.onnx", folder_); }),
              HasSubstr("outside the model's folder"));
  EXPECT_THAT(test::error_of([&] { parse_model(external("absent.bin"), "a.onnx", folder_); }),
              HasSubstr("copy it beside the model"));
}

/// A model's bytes with one more initializer f32[64], whose numbers lie in data.bin from that byte on.
std::string with_external(const std::string& content, const std::string& name, int offset) {
  const auto field = [](char tag, const std::string& bytes) {
    return std::string(1, tag) + static_cast<char>(bytes.size()) + bytes;
  };
  const auto entry = [&](const std::string& key, const std::string& value) {
    return field('\x6a', field('\x0a', key) + field('\x12', value));
  };
  const std::string tensor = std::string("\x08\x40\x10\x01", 4) + field('\x42', name) + entry("location", "data.bin") +
                             entry("offset", std::to_string(offset)) + std::string("\x70\x01", 2);
  return content + field('\x3a', field('\x2a', tensor));  // a second graph is joined to the first
}

TEST_F(OnnxFiles, ExternalDataAreReadOnceAndNoMoreThanThereAre) {
  std::vector<float> numbers(80);
  for (size_t at = 0; at < numbers.size(); ++at) numbers[at] = static_cast<float>(at);
  std::ofstream(std::filesystem::path(folder_) / "data.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(4 * numbers.size()));
  const std::string one = with_external(print_model(small_model()), "first", 4), two = with_external(one, "same", 4);
  const Model model = parse_model(two, "a.onnx", folder_);
  const Tensor* first = model.graph.initializers.at("first").tensor();
  EXPECT_EQ(first->data_as<float>()[0], 1);
  EXPECT_EQ(first->data(), model.graph.initializers.at("same").tensor()->data());
  EXPECT_THAT(test::error_of([&] { parse_model(with_external(two, "other", 8), "a.onnx", folder_); }, ErrorKind::data),
              HasSubstr("they overlap"));
}

}  // namespace
}  // namespace weft::onnx
