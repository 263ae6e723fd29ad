// Reading token by token with kept keys and values gives what the whole window gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "weft/base/rng.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/infer/prediction.h"
#include "weft/library/library.h"
#include "weft/models/model.h"
#include "weft/program/run_data.h"
#include "weft/spec/run_spec.h"

namespace weft::infer {
namespace {

constexpr int64_t kClasses = 11;

class Reader : public ::testing::Test {
 protected:
  /// An untrained model whose window holds so many tokens.
  run::LoadedRun drawn_run(int64_t window) {
    run::LoadedRun run;
    run.spec.model = {"transformer_lm", {{"layers", "2"}, {"heads", "2"}, {"width", "32"}}};
    run.spec.threads = 1;
    run.data.info.name = "text";
    run.data.info.task = "language_model";
    run.data.info.sample_dtype = DType::i32;
    run.data.info.sample_shape = Shape{window};
    run.data.info.target_shape = Shape{window};
    run.data.info.classes = kClasses;
    spec::resolve(run.spec, library_);
    const models::Model model = build_model(library_, "transformer_lm", program::model_input(run.data, 1),
                                            run.spec.model.options, models::Mode::inference);
    for (const models::ParameterSpec& parameter : model.parameters) {
      Tensor start = models::initialize(parameter, 5);
      // Larger than at first, so that what a token sees changes much.
      for (int64_t at = 0; at < start.elements(); ++at) start.data_as<float>()[at] *= 4;
      run.state.set(parameter.name, std::move(start));
    }
    return run;
  }
  static std::vector<int32_t> drawn_tokens(int64_t count) {
    RandomStream random(3);
    std::vector<int32_t> tokens;
    for (int64_t at = 0; at < count; ++at) tokens.push_back(static_cast<int32_t>(random.bits() % kClasses));
    return tokens;
  }
  /// Of the token behind these, by all of them at once.
  static std::vector<float> by_window(PredictionModel& model, const std::vector<int32_t>& tokens) {
    data::Batch batch = empty_batch(model.data().info);
    std::copy(tokens.begin(), tokens.end(), batch.samples.data_as<int32_t>());
    const Tensor probabilities = model.run(batch);
    const float* row = probabilities.data_as<float>() + (static_cast<int64_t>(tokens.size()) - 1) * kClasses;
    return {row, row + kClasses};
  }
  static void expect_near(std::span<const float> actual, const std::vector<float>& expected, const std::string& what) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t at = 0; at < expected.size(); ++at) EXPECT_NEAR(actual[at], expected[at], 2e-6) << what << " " << at;
  }

  Library library_ = standard_library();
};

TEST_F(Reader, TokenByTokenIsLikeTheWholeWindow) {
  PredictionModel model(library_, drawn_run(20), "f32");
  const auto reader = model.make_token_reader();
  const std::vector<int32_t> tokens = drawn_tokens(20);
  for (size_t count = 1; count <= tokens.size(); ++count) {
    const auto probabilities = reader->read(std::span(tokens).subspan(count - 1, 1));
    expect_near(probabilities, by_window(model, {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)}),
                std::to_string(count));
  }
}

TEST_F(Reader, ManyAtOnceAreLikeTheWholeWindow) {
  PredictionModel model(library_, drawn_run(150), "f32");
  const auto reader = model.make_token_reader();
  const std::vector<int32_t> tokens = drawn_tokens(150);
  for (const size_t count : {1, 7, 8, 63, 64, 65, 100, 128, 149, 150}) {
    const std::vector<int32_t> part(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
    reader->forget();
    expect_near(reader->read(part), by_window(model, part), std::to_string(count));
  }
}

TEST_F(Reader, AFewBehindManyAreLikeTheWholeWindow) {
  PredictionModel model(library_, drawn_run(100), "f32");
  const auto reader = model.make_token_reader();
  const std::vector<int32_t> tokens = drawn_tokens(100);
  for (size_t begin = 0; begin < tokens.size(); begin += 20) {
    const auto probabilities = reader->read(std::span(tokens).subspan(begin, 20));
    expect_near(probabilities,
                by_window(model, {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(begin + 20)}),
                std::to_string(begin));
  }
}

TEST_F(Reader, KeepsTheNewerHalfOfAFullWindow) {
  PredictionModel model(library_, drawn_run(20), "f32");
  const auto reader = model.make_token_reader();
  const std::vector<int32_t> tokens = drawn_tokens(33);
  for (const int32_t token : tokens) {
    const auto probabilities = reader->read({&token, 1});
    if (&token == &tokens[20])  // the 21st
      expect_near(probabilities, by_window(model, {tokens.begin() + 11, tokens.begin() + 21}), "the first");
    if (&token == &tokens[30])
      expect_near(probabilities, by_window(model, {tokens.begin() + 21, tokens.begin() + 31}), "the second time");
  }
}

TEST_F(Reader, OfALongTextItReadsTheEnd) {
  PredictionModel model(library_, drawn_run(20), "f32");
  const auto reader = model.make_token_reader();
  const std::vector<int32_t> tokens = drawn_tokens(50);
  expect_near(reader->read(tokens), by_window(model, {tokens.end() - 20, tokens.end()}), "all");
}

TEST_F(Reader, InHalfTheBitsItIsNear) {
  if (!CpuBackend(1).computes_fast(DType::bf16)) GTEST_SKIP() << "this CPU has no instructions for bf16";
  PredictionModel model(library_, drawn_run(40), "f32"), narrow(library_, drawn_run(40), "bf16");
  const auto reader = narrow.make_token_reader();
  const std::vector<int32_t> tokens = drawn_tokens(40);
  std::span<const float> probabilities;
  for (const int32_t token : tokens) probabilities = reader->read({&token, 1});
  const std::vector<float> expected = by_window(model, tokens);
  for (size_t at = 0; at < expected.size(); ++at) EXPECT_NEAR(probabilities[at], expected[at], 0.03) << at;
}

TEST_F(Reader, ModelsThatKeepNothingHaveNone) {
  run::LoadedRun run = drawn_run(20);
  run.spec.model = {"lenet5", {}};
  EXPECT_FALSE(TokenReader::serves(library_, run));
}

}  // namespace
}  // namespace weft::infer
