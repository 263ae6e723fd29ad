// Language models whose weights have more rows than the data have tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/models/model.h"
#include "weft/ops/all.h"
#include "weft/runtime/interpret.h"

namespace weft::models {
namespace {

class Vocabulary : public ::testing::TestWithParam<const char*> {
 protected:
  Model make(const ModelOptions& options, Mode mode) {
    ModelOptions all = options;
    all["width"] = "8";
    if (GetParam() == std::string("transformer_lm")) all.insert({{"layers", "1"}, {"heads", "2"}});
    return build(registry_, GetParam(), {2, {8}, 13}, all, mode);
  }
  OpRegistry registry_ = ops::make_registry();
};

const ParameterSpec& parameter_named(const Model& model, const std::string& part) {
  return *std::find_if(model.parameters.begin(), model.parameters.end(),
                       [&](const ParameterSpec& one) { return one.name.find(part) != std::string::npos; });
}

TEST_P(Vocabulary, HasTheRowsThatTheOptionAsksFor) {
  const Model padded = make({{"vocabulary", "16"}}, Mode::training), plain = make({}, Mode::training);
  EXPECT_EQ(parameter_named(padded, "head.weight").shape[0], 16);
  EXPECT_EQ(parameter_named(padded, "emb").shape[0], 16);
  EXPECT_EQ(padded.graph.shape(padded.logits)[1], 16);
  EXPECT_EQ(parameter_named(plain, "head.weight").shape[0], 13);
}

TEST_P(Vocabulary, InferencePredictsTokensOfTheDataAlone) {
  const auto logits_of = [](Model model, Model& of_weights) {
    std::map<std::string, Tensor> feed{{"tokens", Tensor::of_i32({2, 8}, std::vector<int32_t>(16, 5))},
                                       {"labels", Tensor(model.graph.type(model.labels))}};
    for (const ParameterSpec& parameter : of_weights.parameters) feed[parameter.name] = initialize(parameter, 3);
    model.graph.add_output("logits", model.logits);
    return evaluate_graph(model.graph, feed, CpuBackend(1)).at("logits");
  };
  const ModelOptions padded{{"vocabulary", "16"}};
  Model inference = make(padded, Mode::inference), training = make(padded, Mode::training);
  const Tensor few = logits_of(inference, inference), all = logits_of(training, training);
  ASSERT_EQ(few.shape()[1], 13);
  ASSERT_EQ(all.shape()[1], 16);
  for (int64_t row = 0; row < few.shape()[0]; ++row)
    for (int64_t token = 0; token < 13; ++token)
      EXPECT_NEAR(few.data_as<float>()[row * 13 + token], all.data_as<float>()[row * 16 + token], 1e-6);
}

TEST_P(Vocabulary, FewerRowsThanTokensAreRefused) {
  const std::string error = test::error_of([&] { make({{"vocabulary", "12"}}, Mode::training); }, ErrorKind::usage);
  EXPECT_NE(error.find("option vocabulary wants a whole number from 13 to "), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Models, Vocabulary, ::testing::Values("transformer_lm", "seq2seq_attention"));

}  // namespace
}  // namespace weft::models
