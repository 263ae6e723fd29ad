// Text that a language model writes behind a beginning, one drawn token after the other.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/base/say.h"
#include "weft/data/formats/text.h"
#include "weft/infer/for_each_file.h"
#include "weft/infer/prediction.h"
#include "weft/infer/text_lines.h"

namespace weft::infer {

namespace {

/// Gives the probabilities of what follows all tokens so far, of which the last ones are new.
using Foretell = std::function<std::span<const float>(std::span<const int32_t> all, size_t fresh)>;

/// For a model that keeps nothing of earlier tokens: the whole window again for each.
class WindowReader {
 public:
  explicit WindowReader(PredictionModel& model) : model_(model), window_(model.data().info.sample_shape[0]) {
    batch_.samples = Tensor(DType::i32, Shape{1, window_});
    batch_.targets = Tensor(DType::i32, Shape{1, window_});
    batch_.count = 1;
  }

  std::span<const float> read(std::span<const int32_t> all) {
    // Causal: what stands behind the last token does not matter.
    const auto known = std::min<int64_t>(window_, static_cast<int64_t>(all.size()));
    std::copy(all.end() - known, all.end(), batch_.samples.data_as<int32_t>());
    probabilities_ = model_.run(batch_);
    const int64_t classes = probabilities_.shape()[1];
    return {probabilities_.data_as<float>() + (known - 1) * classes, static_cast<size_t>(classes)};
  }

 private:
  PredictionModel& model_;
  const int64_t window_;
  data::Batch batch_;
  Tensor probabilities_;
};

/// Tokens of the continuation, drawn one after the other.
std::vector<int32_t> draw_tokens(std::vector<int32_t> tokens, const PredictOptions& options, const Foretell& foretell) {
  RandomStream random(static_cast<uint64_t>(options.seed));
  const size_t beginning = tokens.size();
  size_t fresh = beginning;
  for (int64_t at = 0; at < options.length; ++at, fresh = 1)
    tokens.push_back(static_cast<int32_t>(sample(foretell(tokens, fresh), options.sampling, random)));
  return {tokens.begin() + static_cast<std::ptrdiff_t>(beginning), tokens.end()};
}

}  // namespace

int continue_texts(PredictionModel& model, const PredictOptions& options) {
  const data::DatasetInfo& info = model.data().info;
  const data::Vocabulary vocabulary = data::Vocabulary::from_json(info.encoding);
  if (vocabulary.size() != info.classes)
    fail(ErrorKind::data, "the run's data.json is damaged: {} characters for {} classes; train in a new run directory",
         vocabulary.size(), info.classes);
  const std::unique_ptr<TokenReader> reader = model.make_token_reader();
  WindowReader windows(model);
  const Foretell foretell = [&](std::span<const int32_t> all, size_t fresh) {
    return reader ? reader->read(all.last(fresh)) : windows.read(all);
  };
  return for_each_file(options, [&](const std::string& file) {
    const std::string beginning = read_text_input(file);
    const std::vector<uint16_t> tokens = vocabulary.encode(beginning, file);
    if (tokens.empty()) fail(ErrorKind::data, "'{}' is empty; begin the text with at least one character", file);
    if (reader) reader->forget();
    const double begin = steady_seconds();
    std::string written;
    for (const int32_t token : draw_tokens({tokens.begin(), tokens.end()}, options, foretell))
      written += vocabulary.characters()[static_cast<size_t>(token)];
    const double seconds = steady_seconds() - begin;
    if (!options.json()) fmt::print("{}{}\n", beginning, written);
    return ordered_json{{"file", file},
                        {"beginning", beginning},
                        {"text", written},
                        {"tokens_per_second", static_cast<double>(options.length) / seconds}};
  });
}

}  // namespace weft::infer
