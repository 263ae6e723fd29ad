// Text that a language model writes behind a beginning, one drawn token after the other.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/base/say.h"
#include "weft/data/formats/text.h"
#include "weft/infer/for_each_file.h"
#include "weft/infer/prediction.h"
#include "weft/infer/text_lines.h"

namespace weft::infer {

namespace {

/// p^(1/temperature), rescaled, decides; at temperature 0 the largest p.
int64_t draw(const float* probabilities, int64_t classes, double temperature, RandomStream& random) {
  const float* const largest = std::max_element(probabilities, probabilities + classes);
  if (temperature == 0) return largest - probabilities;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t at = 0; at < classes; ++at) {
    weights.push_back(
        std::pow(static_cast<double>(probabilities[at]) / static_cast<double>(*largest), 1 / temperature));
    sum += weights.back();
  }
  double left = static_cast<double>(random.uniform()) * sum;
  for (int64_t at = 0; at < classes; ++at) {
    left -= weights[static_cast<size_t>(at)];
    if (left < 0) return at;
  }
  return largest - probabilities;
}

}  // namespace

int continue_texts(PredictionModel& model, const PredictOptions& options) {
  const data::DatasetInfo& info = model.data().info;
  const data::Vocabulary vocabulary = data::Vocabulary::from_json(info.encoding);
  if (vocabulary.size() != info.classes)
    fail(ErrorKind::data, "the run's data.json is damaged: {} characters for {} classes; train in a new run directory",
         vocabulary.size(), info.classes);
  const int64_t window = info.sample_shape[0];
  data::Batch batch;
  batch.samples = Tensor(DType::i32, Shape{1, window});
  batch.targets = Tensor(DType::i32, Shape{1, window});
  batch.count = 1;
  return for_each_file(options, [&](const std::string& file) {
    const std::string beginning = read_text_input(file);
    std::vector<uint16_t> tokens = vocabulary.encode(beginning, file);
    if (tokens.empty()) fail(ErrorKind::data, "'{}' is empty; begin the text with at least one character", file);
    RandomStream random(static_cast<uint64_t>(options.seed));
    std::string written;
    for (int64_t at = 0; at < options.length; ++at) {
      // Causal: what stands behind the last token does not matter.
      const auto known = std::min<int64_t>(window, static_cast<int64_t>(tokens.size()));
      std::copy(tokens.end() - known, tokens.end(), batch.samples.data_as<int32_t>());
      const Tensor probabilities = model.run(batch);
      const int64_t classes = probabilities.shape()[1];
      const float* const row = probabilities.data_as<float>() + (known - 1) * classes;
      tokens.push_back(static_cast<uint16_t>(draw(row, classes, options.temperature, random)));
      written += vocabulary.characters()[tokens.back()];
    }
    if (!options.json()) fmt::print("{}{}\n", beginning, written);
    return ordered_json{{"file", file}, {"beginning", beginning}, {"text", written}};
  });
}

}  // namespace weft::infer
