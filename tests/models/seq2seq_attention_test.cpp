// The translator: what it reads and predicts. Its training is compared with PyTorch's by tools/peer_check.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/models/model.h"
#include "weft/ops/all.h"
#include "weft/runtime/interpret.h"

namespace weft::models {
namespace {

class Seq2seqAttention : public ::testing::Test {
 protected:
  Model make(const ModelInput& input, const ModelOptions& options = {}) {
    return build(registry_, "seq2seq_attention", input, options, Mode::inference);
  }
  std::string error(const ModelInput& input) {
    try {
      make(input);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::shape);
      return error.what();
    }
    return "no error";
  }
  /// Logits [rows, classes] of one sample.
  std::vector<float> logits_of(const std::vector<int32_t>& tokens, const ModelOptions& options) {
    const auto length = static_cast<int64_t>(tokens.size());
    Model model = make({1, {length}, 12}, options);
    std::map<std::string, Tensor> feed{{"tokens", Tensor::of_i32({1, length}, tokens)},
                                       {"labels", Tensor(model.graph.type(model.labels))}};
    for (const ParameterSpec& parameter : model.parameters) feed[parameter.name] = initialize(parameter, 3);
    model.graph.add_output("logits", model.logits);
    const Tensor logits = evaluate_graph(model.graph, feed, CpuBackend(1)).at("logits");
    return {logits.data_as<float>(), logits.data_as<float>() + logits.elements()};
  }
  OpRegistry registry_ = ops::make_registry();
};

TEST_F(Seq2seqAttention, PredictsTheTokensBehindTheSource) {
  const Model halves = make({3, {20}, 12}), most = make({3, {20}, 12}, {{"source", "14"}});
  EXPECT_EQ(halves.graph.shape(halves.logits), Shape({3 * 10, 12}));
  EXPECT_EQ(most.graph.shape(most.logits), Shape({3 * 6, 12}));
  EXPECT_EQ(most.graph.shape(most.labels), Shape({3 * 6}));
}

TEST_F(Seq2seqAttention, DoesNotLookAhead) {
  const ModelOptions options{{"source", "4"}, {"width", "8"}};
  const auto first = logits_of({3, 5, 2, 7, 1, 4, 6}, options), other = logits_of({3, 5, 2, 7, 1, 4, 9}, options);
  const auto rows = static_cast<std::ptrdiff_t>(2 * 12);  // those before the token that differs
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + rows, other.begin()));
  EXPECT_FALSE(std::equal(first.begin() + rows, first.end(), other.begin() + rows));
}

TEST_F(Seq2seqAttention, ReadsTheSource) {
  const ModelOptions options{{"source", "4"}, {"width", "8"}};
  EXPECT_NE(logits_of({3, 5, 2, 7, 1, 4, 6}, options), logits_of({3, 9, 2, 7, 1, 4, 6}, options));
}

TEST_F(Seq2seqAttention, ASourceOfPaddingAloneGivesNumbers) {
  for (const float value : logits_of({0, 0, 0, 0, 1, 4, 6}, {{"source", "4"}, {"width", "8"}}))
    EXPECT_TRUE(std::isfinite(value));
}

TEST_F(Seq2seqAttention, RefusesImagesAndSingleTokens) {
  EXPECT_EQ(error({2, {1, 28, 28}, 10}),
            "[seq2seq_attention] wants sequences of tokens (length), got samples of shape (1,28,28); choose another "
            "model");
  EXPECT_EQ(error({2, {1}, 10}),
            "[seq2seq_attention] wants a source and a target in each sample, got sequences of 1 token");
}

}  // namespace
}  // namespace weft::models
