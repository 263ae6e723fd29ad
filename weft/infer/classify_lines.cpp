// The likeliest classes of each line of a file.
#include <algorithm>

#include "weft/data/formats/labelled.h"
#include "weft/infer/for_each_file.h"
#include "weft/infer/prediction.h"
#include "weft/infer/text_lines.h"

namespace weft::infer {

int classify_lines(PredictionModel& model, const PredictOptions& options) {
  const data::DatasetInfo& info = model.data().info;
  const auto encoding = data::LabelledEncoding::from_json(info.encoding);
  bool damaged = false;  // some line
  const int code = for_each_file(options, [&](const std::string& file) {
    const std::vector<TextLine> lines = read_text_lines(file, static_cast<size_t>(2 - encoding.label), damaged);
    const int64_t rows = std::min(model.spec().evaluation.batch, static_cast<int64_t>(lines.size()));
    data::Batch batch;
    batch.samples = Tensor(DType::i32, Shape{rows, encoding.length});
    batch.targets = Tensor(DType::i32, Shape{rows});
    auto results = ordered_json::array();
    if (!options.json()) fmt::print("{}\n", file);
    for (size_t begin = 0; begin < lines.size(); begin += static_cast<size_t>(rows)) {
      const size_t count = std::min(static_cast<size_t>(rows), lines.size() - begin);
      batch.count = static_cast<int64_t>(count);
      for (size_t row = 0; row < count; ++row)
        encoding.encode(lines[begin + row].text, lines[begin + row].where,
                        batch.samples.data_as<int32_t>() + static_cast<int64_t>(row) * encoding.length);
      const Tensor output = model.run(batch);
      for (size_t row = 0; row < count; ++row) {
        const TextLine& line = lines[begin + row];
        const float* p = output.data_as<float>() + static_cast<int64_t>(row) * info.classes;
        auto classes = ordered_json::array();
        std::string shown;
        for (const int64_t index : ranking(p, info.classes, options.top)) {
          const auto probability = static_cast<double>(p[index]);
          classes.push_back({{"class", index}, {"name", model.class_name(index)}, {"probability", probability}});
          shown += fmt::format("{}{} {:.2f} %", shown.empty() ? "" : ", ", model.class_name(index), 100 * probability);
        }
        if (options.json())
          results.push_back({{"line", line.number}, {"text", line.text}, {"classes", classes}});
        else
          fmt::print("  line {}: {}\n", line.number, shown);
      }
    }
    return ordered_json{{"file", file}, {"lines", results}};
  });
  return damaged ? 1 : code;
}

}  // namespace weft::infer
