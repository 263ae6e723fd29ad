// What a translator makes of each line of a file: greedy decoding. The graph has a fixed shape, so that each run of it
// gives one more token of every line in the batch; it costs as many runs as the longest translation has tokens.
#include <algorithm>

#include "weft/base/say.h"
#include "weft/data/formats/pairs.h"
#include "weft/infer/for_each_file.h"
#include "weft/infer/prediction.h"
#include "weft/infer/text_lines.h"

namespace weft::infer {

namespace {

using data::PairEncoding;

/// The first largest of `count` probabilities.
int32_t likeliest(const float* probabilities, int64_t count) {
  return static_cast<int32_t>(std::max_element(probabilities, probabilities + count) - probabilities);
}

/// A line with its source as tokens.
struct Sentence {
  const TextLine* line;
  std::vector<uint16_t> tokens;
};

Sentence read_sentence(const PairEncoding& encoding, const TextLine& line) {
  std::vector<uint16_t> source = encoding.table.encode(line.text, line.where);
  if (static_cast<int64_t>(source.size()) > encoding.source)
    fail(ErrorKind::data, "{}: {} characters, the model reads up to {}; shorten the line", line.where, source.size(),
         encoding.source);
  return {&line, std::move(source)};
}

class Translator {
 public:
  Translator(PredictionModel& model, int64_t rows)
      : model_(model),
        encoding_(PairEncoding::from_json(model.data().info.encoding)),
        width_(encoding_.source + encoding_.target_steps()) {
    batch_.samples = Tensor(DType::i32, Shape{rows, width_});
    batch_.targets = Tensor(DType::i32, Shape{rows, encoding_.target_steps()});
  }

  /// Of at most as many lines as there are rows.
  std::vector<std::string> translate(std::span<const Sentence> lines) {
    batch_.count = static_cast<int64_t>(lines.size());
    fill(lines);
    int32_t* const tokens = batch_.samples.data_as<int32_t>();
    const int64_t steps = encoding_.target_steps(), classes = encoding_.table.size();
    std::vector<std::vector<int32_t>> translations(lines.size());
    std::vector<bool> ended(lines.size(), false);
    for (int64_t step = 0; step < steps && std::find(ended.begin(), ended.end(), false) != ended.end(); ++step) {
      const Tensor probabilities = model_.run(batch_);
      for (size_t row = 0; row < lines.size(); ++row) {
        if (ended[row]) continue;
        const auto at = static_cast<int64_t>(row);
        const int32_t token = likeliest(probabilities.data_as<float>() + (at * steps + step) * classes, classes);
        ended[row] = token == PairEncoding::kEnd;
        if (ended[row]) continue;
        translations[row].push_back(token);
        if (step + 1 < steps) tokens[at * width_ + encoding_.source + 1 + step] = token;
      }
    }
    std::vector<std::string> texts;
    for (const std::vector<int32_t>& translation : translations) texts.push_back(encoding_.table.decode(translation));
    return texts;
  }

 private:
  void fill(std::span<const Sentence> lines) {
    int32_t* row = batch_.samples.data_as<int32_t>();
    std::fill_n(row, batch_.samples.elements(), PairEncoding::kPadding);
    for (const Sentence& line : lines) {
      std::copy(line.tokens.begin(), line.tokens.end(), row);
      row[encoding_.source] = PairEncoding::kStart;
      row += width_;
    }
  }

  PredictionModel& model_;
  PairEncoding encoding_;
  int64_t width_;
  data::Batch batch_;
};

}  // namespace

int translate_lines(PredictionModel& model, const PredictOptions& options) {
  const auto encoding = PairEncoding::from_json(model.data().info.encoding);
  bool damaged = false;  // some line
  const int code = for_each_file(options, [&](const std::string& file) {
    const std::vector<TextLine> all = read_text_lines(file, 0, damaged);
    std::vector<Sentence> lines;
    for (const TextLine& line : all) try {
        lines.push_back(read_sentence(encoding, line));
      } catch (const Error& error) {  // the other lines are translated all the same
        say(error.what());
        damaged = true;
      }
    auto results = ordered_json::array();
    if (lines.empty()) return ordered_json{{"file", file}, {"lines", results}};
    const auto rows = std::min(model.spec().evaluation.batch, static_cast<int64_t>(lines.size()));
    Translator translator(model, rows);
    for (size_t begin = 0; begin < lines.size(); begin += static_cast<size_t>(rows)) {
      const auto part = std::span(lines).subspan(begin, std::min(static_cast<size_t>(rows), lines.size() - begin));
      const std::vector<std::string> translations = translator.translate(part);
      for (size_t row = 0; row < part.size(); ++row) {
        const TextLine& line = *part[row].line;
        if (options.json())
          results.push_back({{"line", line.number}, {"source", line.text}, {"translation", translations[row]}});
        else
          fmt::print("{}\t{}\n", line.text, translations[row]);
      }
    }
    return ordered_json{{"file", file}, {"lines", results}};
  });
  return damaged ? 1 : code;
}

}  // namespace weft::infer
