#include "weft/infer/prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/table.h"
#include "weft/data/augment/augment.h"
#include "weft/data/dataset/class_names.h"
#include "weft/data/formats/csv.h"
#include "weft/data/formats/image_folder.h"
#include "weft/data/formats/table_encoding.h"
#include "weft/data/pictures/image.h"
#include "weft/infer/for_each_file.h"
#include "weft/program/process_memory.h"
#include "weft/program/run_data.h"
#include "weft/spec/compile_options.h"
#include "weft/step/step.h"

namespace weft::infer {

data::Batch empty_batch(const data::DatasetInfo& info) {
  data::Batch batch;
  const auto one = [](const Shape& shape) {
    std::vector<int64_t> dims = shape.dims();
    dims.insert(dims.begin(), 1);
    return Shape(std::move(dims));
  };
  batch.samples = Tensor(data::batch_dtype(info), one(info.sample_shape));
  batch.targets = Tensor(info.target_dtype, one(info.target_shape));  // an input of every model, read by no node here
  batch.count = 1;
  return batch;
}

namespace {

run::LoadedRun with_precision(run::LoadedRun run, const std::string& precision, const Backend& backend) {
  spec::choose_precision(run.spec, precision, backend, say);
  return run;
}

}  // namespace

PredictionModel::PredictionModel(const Library& library, run::LoadedRun run, const std::string& precision)
    : library_(library),
      device_(library_.device.make({.threads = static_cast<int>(run.spec.threads), .kernels = library_.kernels})),
      run_(with_precision(std::move(run), precision, *device_)),
      program_(
          [this](const spec::StepShape& shape) {
            return step::build_prediction_step(library_, run_.spec, program::model_input(run_.data, shape));
          },
          *device_, spec::compile_options(run_.spec, *device_)),
      driver_(program_, run_.state) {}

Tensor PredictionModel::run(const data::Batch& batch) {
  const int64_t size = batch.samples.shape()[0];
  const std::string& output = task_entry(library_, run_.data.info.task).answer_name;
  if (driver_.shape() != spec::StepShape(size)) {
    const CompiledStep& compiled = program_.compiled(size);
    if (!step::has_output(compiled.graph, output))
      fail(ErrorKind::usage,
           "[{}] gives back its input and predicts no classes; `weft eval RUN --logits FILE` writes it",
           run_.spec.model.name);
    program::require_memory(run_.spec.model.name, size, compiled.plan.total_bytes(), "predict on a machine with more");
    driver_.select(size);
  }
  driver_.bind_batch(batch);
  driver_.run();
  return driver_.executor().output(output);
}

std::unique_ptr<TokenReader> PredictionModel::make_token_reader() {
  if (!TokenReader::serves(library_, run_)) return nullptr;
  return std::make_unique<TokenReader>(library_, *device_, run_, spec::compile_options(run_.spec, *device_));
}

std::string PredictionModel::class_name(int64_t index) const {
  return data::class_name(run_.data.info.class_names, index);
}

std::vector<int64_t> ranking(const float* probabilities, int64_t classes, int64_t top) {
  std::vector<int64_t> order(static_cast<size_t>(classes));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return probabilities[a] > probabilities[b]; });
  order.resize(static_cast<size_t>(std::min(top, classes)));
  return order;
}

namespace {

/// Values in their own unit, and as text with the digits that a float of standardised values can tell apart.
struct PredictedValues {
  PredictedValues(const float* p, const data::DatasetInfo& info) {
    const data::TargetStatistics& statistics = info.targets;
    const auto count = static_cast<size_t>(info.classes);
    // Those of a task of one's own may be something else than quantities of columns.
    const bool is_named = info.task == "regression" && count > 1 && info.class_names.size() == count;
    for (size_t at = 0; at < count; ++at) {
      const bool standardised = at < statistics.deviation.size();
      const double deviation = standardised ? statistics.deviation[at] : 1;
      const double value = static_cast<double>(p[at]) * deviation + (standardised ? statistics.mean[at] : 0);
      const double steps = std::abs(value) / (deviation * static_cast<double>(std::numeric_limits<float>::epsilon()));
      const int digits = std::clamp(static_cast<int>(std::log10(std::max(steps, 1.0))), 6, 17);
      values.push_back(value);
      text += fmt::format("{}{}{:.{}g}", text.empty() ? "" : ", ", is_named ? info.class_names[at] + " = " : "", value,
                          digits);
      if (is_named) named[info.class_names[at]] = value;
    }
  }
  /// A list or, where each of several has a name, an object.
  ordered_json json() const { return named.is_null() ? ordered_json(values) : named; }

  std::vector<double> values;
  ordered_json named;  // null: they have no names
  std::string text;
};

}  // namespace

int predict_images(PredictionModel& model, const PredictOptions& options) {
  const data::DatasetInfo& info = model.data().info;
  const data::Normalization normalization(model.data().statistics, info.sample_shape[0]);
  data::Batch batch = empty_batch(info);
  const std::span<float> pixels(batch.samples.data_as<float>(), static_cast<size_t>(batch.samples.elements()));
  return for_each_file(options, [&](const std::string& file) {
    const data::Image image = data::read_sample(file_named(file), info);
    data::crop_and_normalise(image.pixels, info.sample_shape, {}, data::identity_choice({}), normalization, pixels);
    const Tensor output = model.run(batch);
    const float* p = output.data_as<float>();
    if (info.target_kind() == data::TargetKind::values) {
      const PredictedValues predicted(p, info);
      if (!options.json()) fmt::print("{}: {}\n", file, predicted.text);
      return ordered_json{{"file", file}, {"values", predicted.json()}};
    }
    auto classes = ordered_json::array();
    Table table({{"", Align::left}, {"", Align::right}});
    for (const int64_t index : ranking(p, output.elements(), options.top)) {
      const auto probability = static_cast<double>(p[index]);
      classes.push_back({{"class", index}, {"name", model.class_name(index)}, {"probability", probability}});
      table.add_row({"  " + model.class_name(index), fmt::format("{:.2f} %", 100 * probability)});
    }
    if (!options.json()) fmt::print("{}\n{}", file, table.text());
    return ordered_json{{"file", file}, {"classes", classes}};
  });
}

namespace {

bool is_of_kind(const std::string& spec, const std::string& kind) {
  return spec == kind || spec.starts_with(kind + ":");
}

}  // namespace

bool PredictionModel::names_data(const std::string& text) const {
  return std::any_of(data_kinds().begin(), data_kinds().end(), [&](const auto& k) { return is_of_kind(text, k.name); });
}

namespace {

/// The rows that a text names: data of any kind, or the file of a table.
std::unique_ptr<data::Dataset> open_rows(const PredictionModel& model, const std::string& text) {
  const data::DatasetInfo& trained = model.data().info;
  const std::vector<data::DatasetKind>& kinds = model.data_kinds();
  const bool names_kind = model.names_data(text);
  if (is_of_kind(text, "csv")) return data::open_csv_features(data::parse_data_spec(text), trained.encoding);
  if (!names_kind && data::is_table(trained))
    return data::open_csv_features({.kind = "csv", .argument = text, .options = {}}, trained.encoding);
  if (!names_kind)
    fail(ErrorKind::usage, "'{}': the model was trained on '{}'; name data of that kind, such as KIND:FILE", text,
         model.spec().data);
  const data::Split split = data::has_whole(kinds, text)        ? data::Split::all
                            : data::has_test_split(kinds, text) ? data::Split::test
                                                                : data::Split::train;
  auto dataset = data::open_dataset(kinds, text, split, trained.encoding);
  const data::DatasetInfo& info = dataset->info();
  if (info.sample_shape != trained.sample_shape || info.sample_dtype != trained.sample_dtype)
    fail(ErrorKind::shape, "'{}' has {} {}, the model reads {} {}; choose other data", text, info.item(),
         to_string(info.sample_shape), trained.item(), to_string(trained.sample_shape));
  return dataset;
}

}  // namespace

int predict_rows(PredictionModel& model, const PredictOptions& options) {
  const data::DatasetInfo& info = model.data().info;
  const bool values = info.target_kind() == data::TargetKind::values;
  return for_each_file(options, [&](const std::string& file) {
    const auto dataset = open_rows(model, file);
    if (!dataset->info().note.empty()) say(dataset->info().note);
    data::Loader loader(*dataset, program::evaluation_loader_options(model.spec(), model.data()));
    auto rows = ordered_json::array();
    if (!options.json()) fmt::print("{}\n", file);
    loader.start(0, 0, 1);
    for (int64_t step = 0, row = 1; step < loader.steps_per_epoch(); ++step) {
      const data::Batch& batch = loader.next();
      const Tensor output = model.run(batch);
      const int64_t width = output.shape()[1];
      for (int64_t at = 0; at < batch.count; ++at, ++row) {
        const float* p = output.data_as<float>() + at * width;
        if (values) {
          const PredictedValues predicted(p, info);
          if (!options.json())
            fmt::print("  row {}: {}\n", row, predicted.text);
          else if (predicted.values.size() == 1)
            rows.push_back({{"row", row}, {"value", predicted.values.front()}});
          else
            rows.push_back({{"row", row}, {"values", predicted.json()}});
          continue;
        }
        auto classes = ordered_json::array();
        std::string line;
        for (const int64_t index : ranking(p, width, options.top)) {
          const auto probability = static_cast<double>(p[index]);
          classes.push_back({{"class", index}, {"name", model.class_name(index)}, {"probability", probability}});
          line += fmt::format("{}{} {:.2f} %", line.empty() ? "" : ", ", model.class_name(index), 100 * probability);
        }
        if (options.json())
          rows.push_back({{"row", row}, {"classes", classes}});
        else
          fmt::print("  row {}: {}\n", row, line);
      }
    }
    return ordered_json{{"file", file}, {"rows", rows}};
  });
}

const std::string* PredictionModel::find_data(const std::vector<std::string>& texts) const {
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const std::string& text) {
    std::error_code code;
    return names_data(text) && !std::filesystem::is_regular_file(text, code);
  });
  return found == texts.end() ? nullptr : &*found;
}

int predict_samples(PredictionModel& model, const PredictOptions& options) {
  const DType dtype = model.data().info.sample_dtype;
  if (model.find_data(options.files) != nullptr || dtype == DType::f32) return predict_rows(model, options);
  return dtype == DType::u8 ? predict_images(model, options) : classify_lines(model, options);
}

}  // namespace weft::infer
