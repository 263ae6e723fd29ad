// What the host computes for operators that no graph holds: what ONNX's own tests do not reach, and what is refused.
#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "tests/onnx/model_support.h"
#include "tests/support/error_of.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {
namespace {

std::vector<HostValue> run(const OnnxNode& node, const std::vector<HostValue>& inputs, int64_t opset = 20) {
  const OperatorTable table = standard_operators();
  std::vector<const HostValue*> given;
  for (const HostValue& value : inputs) given.push_back(value.is_absent() ? nullptr : &value);
  return table.find("", node.op)->run(HostContext(node, opset, given, {}));
}

OnnxNode node_of(const std::string& op, size_t inputs, const AttributeList& attributes = {}) {
  std::vector<std::string> names;
  for (size_t at = 0; at < inputs; ++at) names.push_back("x" + std::to_string(at));
  return make_node(op, names, {"y"}, attributes);
}

/// As the definition says, in a loop over all pairs.
std::vector<std::complex<double>> plain_transform(const std::vector<double>& x) {
  std::vector<std::complex<double>> result;
  const auto n = static_cast<double>(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    std::complex<double> sum;
    for (size_t at = 0; at < x.size(); ++at)
      sum += x[at] * std::polar(1.0, -2 * M_PI * static_cast<double>(k * at % x.size()) / n);
    result.push_back(sum);
  }
  return result;
}

std::vector<float> wave(int64_t length) {
  std::vector<float> values;
  for (int64_t at = 0; at < length; ++at) values.push_back(static_cast<float>(at * 7919 % 101) / 50 - 1);
  return values;
}

TEST(Dft, OfEveryLengthIsWhatTheDefinitionSays) {
  for (const int64_t length : {1, 2, 3, 8, 13, 30, 97, 128}) {
    const auto values = wave(length);
    const auto outputs = run(node_of("DFT", 1), {reals({1, length, 1}, values)});
    const auto expected = plain_transform({values.begin(), values.end()});
    const float* got = outputs[0].tensor()->data_as<float>();
    for (int64_t k = 0; k < length; ++k) {
      EXPECT_NEAR(got[2 * k], expected[static_cast<size_t>(k)].real(), 1e-4) << length << " " << k;
      EXPECT_NEAR(got[2 * k + 1], expected[static_cast<size_t>(k)].imag(), 1e-4) << length << " " << k;
    }
  }
}

TEST(Dft, OneSidedBackAndForthGivesTheSignal) {
  for (const int64_t length : {8, 9, 30, 31}) {
    const auto values = wave(length);
    const HostValue half = run(node_of("DFT", 1, {{"onesided", int64_t{1}}}), {reals({1, length, 1}, values)})[0];
    const auto back =
        run(node_of("DFT", 2, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}), {half, wholes({}, {length})});
    ASSERT_EQ(back[0].tensor()->shape(), (Shape{1, length, 1}));
    for (int64_t at = 0; at < length; ++at)
      EXPECT_NEAR(back[0].tensor()->data_as<float>()[at], values[static_cast<size_t>(at)], 1e-5) << length;
  }
}

TEST(Texts, AreCutAtADelimiterAsOftenAsAllowed) {
  const StringTensor texts{Shape{2}, {"a,b,c", ",,"}};
  const auto parts =
      run(node_of("StringSplit", 1, {{"delimiter", std::string(",")}, {"maxsplit", int64_t{1}}}), {texts});
  EXPECT_EQ(parts[0].strings()->values, (std::vector<std::string>{"a", "b,c", "", ","}));
}

TEST(Texts, AreCutAtWhiteSpaceAsPythonDoes) {
  const StringTensor texts{Shape{3}, {"  one two  three ", "", " x"}};
  const auto parts = run(node_of("StringSplit", 1, {{"maxsplit", int64_t{1}}}), {texts});
  EXPECT_EQ(parts[0].strings()->values, (std::vector<std::string>{"one", "two  three ", "", "", "x", ""}));
  EXPECT_EQ(integers_of(*parts[1].tensor()), (std::vector<int64_t>{2, 0, 1}));
}

TEST(HostOperators, RefuseWhatMakesNoSense) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const HostValue signal = reals({1, 4, 1}, {1, 2, 3, 4}), image = reals({1, 1, 2, 2}, {1, 2, 3, 4});
  const HostValue region = reals({1, 4}, {0, 0, 1, 1}), one = wholes({1}, {0});
  const auto refuses = [](const OnnxNode& node, const std::vector<HostValue>& inputs, int64_t opset = 20) {
    const std::string message = test::error_of([&] { run(node, inputs, opset); });
    EXPECT_NE(message.find("[" + node.op), std::string::npos) << node.op << ": " << message;
  };
  refuses(node_of("DFT", 2), {signal, wholes({}, {0})});
  refuses(node_of("DFT", 2), {signal, wholes({}, {kHuge})});
  refuses(node_of("DFT", 3), {signal, HostValue{}, wholes({}, {2})});
  refuses(node_of("DFT", 1), {reals({4}, {1, 2, 3, 4})});
  refuses(node_of("STFT", 2), {signal, wholes({}, {0})});
  refuses(node_of("STFT", 4), {signal, wholes({}, {1}), HostValue{}, wholes({}, {9})});
  refuses(node_of("MelWeightMatrix", 5),
          {wholes({}, {kHuge}), wholes({}, {16}), wholes({}, {8192}), reals({}, {0}), reals({}, {4096})});
  refuses(node_of("MelWeightMatrix", 5),
          {wholes({}, {8}), wholes({}, {16}), wholes({}, {8192}), reals({}, {0}), reals({}, {1e9F})});
  refuses(node_of("RoiAlign", 3), {image, region, wholes({1}, {1})});
  refuses(node_of("RoiAlign", 3), {image, reals({1, 4}, {0, 0, 1e9F, 1}), one});
  refuses(node_of("MaxRoiPool", 2, {{"pooled_shape", std::vector<int64_t>{0, 2}}}),
          {image, reals({1, 5}, {0, 0, 0, 1, 1})});
  refuses(node_of("StringConcat", 2), {StringTensor{Shape{2}, {"a", "b"}}, StringTensor{Shape{3}, {"a", "b", "c"}}});
  refuses(node_of("StringNormalizer", 1), {StringTensor{Shape{2, 2}, {"a", "b", "c", "d"}}});
  refuses(node_of("TfIdfVectorizer", 1,
                  {{"mode", std::string("TF")},
                   {"min_gram_length", int64_t{1}},
                   {"max_gram_length", kHuge},
                   {"max_skip_count", int64_t{0}},
                   {"ngram_counts", std::vector<int64_t>{0}},
                   {"ngram_indexes", std::vector<int64_t>{0}},
                   {"pool_int64s", std::vector<int64_t>{1}}}),
          {wholes({1}, {1})});
  refuses(node_of("LinearAttention", 3, {{"q_num_heads", int64_t{0}}, {"kv_num_heads", int64_t{1}}}),
          {signal, signal, signal}, 28);
}

}  // namespace
}  // namespace weft::onnx
