#include "weft/cli/deploy/quantize_data.h"

#include <filesystem>
#include <set>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/data/open_dataset.h"
#include "weft/deploy/export_onnx.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/train/onnx_model.h"
#include "weft/program/run_data.h"
#include "weft/quantize/model_graph.h"
#include "weft/run/loaded_run.h"

namespace weft::cli {

namespace {

data::ChannelStatistics statistics_of(const QuantizeCommand& command, const data::Dataset& dataset) {
  if (command.mean.empty() != command.deviation.empty())
    fail(ErrorKind::usage, "--mean and --deviation go together: numbers for each channel, of pixels in 0 to 1");
  if (command.mean.empty())
    return dataset.info().sample_dtype == DType::u8 ? data::channel_statistics(dataset) : data::ChannelStatistics{};
  data::ChannelStatistics given;
  given.mean.assign(command.mean.begin(), command.mean.end());
  given.deviation.assign(command.deviation.begin(), command.deviation.end());
  if (!data::can_be(given))
    fail(ErrorKind::usage, "--mean and --deviation must be as many numbers, deviations above 0");
  return given;
}

QuantizeSource open_run(const Library& library, const QuantizeCommand& command) {
  const run::LoadedRun run = run::load_run(command.source, command.checkpoint, 0, library);
  const std::string data = command.data.empty() ? run.spec.data : command.data;
  QuantizeSource source;
  source.model = deploy::export_run(library, run, {.source = command.source});
  if (command.drawn_samples > 0) return source;
  source.calibration = data::open_dataset(library.data, data, data::Split::train, run.data.info.encoding);
  source.test = program::open_evaluation_data(library, data, run.spec, run.data).dataset;
  if (command.accuracy_drop >= 0 && command.data.empty() && spec::has_validation(run.spec))
    source.validation = program::open_run_data(library, run.spec).validation;
  source.statistics = command.mean.empty() ? run.data.statistics : statistics_of(command, *source.calibration);
  return source;
}

QuantizeSource open_file(const Library& library, const QuantizeCommand& command) {
  if (command.data.empty() && command.drawn_samples == 0)
    fail(ErrorKind::usage,
         "an ONNX file wants --data SPEC: what to calibrate it with; see `weft data --help`. Where only speed matters, "
         "--drawn-samples 8 does without");
  QuantizeSource source;
  source.model = onnx::read_model(command.source);
  if (command.drawn_samples > 0) return source;
  const bool has_test = data::has_test_split(library.data, command.data);
  source.calibration = data::open_dataset(library.data, command.data, data::Split::train);
  source.test = data::open_dataset(library.data, command.data, has_test ? data::Split::test : data::Split::train,
                                   source.calibration->info().encoding);
  source.statistics = statistics_of(command, *source.calibration);
  return source;
}

data::LoaderOptions with_batch(data::LoaderOptions options, int64_t batch) {
  options.batch = batch;
  options.workers = 0;
  return options;
}

int64_t sample_count(const data::Dataset& dataset, int64_t most, int64_t skipped) {
  const int64_t there = std::max<int64_t>(0, dataset.size() - skipped);
  return most > 0 ? std::min(most, there) : there;
}

/// Of the table whose rows these integers choose; 0 where the model has none that shows.
int64_t rows_of_table(const onnx::Model& model, const std::string& input) {
  std::set<std::string> same = {input};
  for (const onnx::OnnxNode& node : model.graph.nodes) {
    if (node.inputs.empty() || node.outputs.empty()) continue;
    if (node.op == "Cast" && same.contains(node.inputs[0])) same.insert(node.outputs[0]);
    if (node.op != "Gather" || node.inputs.size() < 2 || !same.contains(node.inputs[1])) continue;
    const auto table = quantize::known_tensor(model.graph, node.inputs[0]);
    if (table && table->shape().rank() > 0) return table->shape()[0];
  }
  return 0;
}

}  // namespace

QuantizeSource open_source(const Library& library, const QuantizeCommand& command) {
  if (command.drawn_samples > 0 && (!command.data.empty() || command.accuracy_drop >= 0))
    fail(ErrorKind::usage,
         "--drawn-samples calibrates without data, and nothing is known of the accuracy then; leave --data and "
         "--accuracy-drop away");
  if (command.drawn_samples > 0) {
    const std::pair<bool, const char*> of_data[] = {{command.samples.has_value(), "--samples"},
                                                    {command.test_samples.has_value(), "--test-samples"},
                                                    {!command.mean.empty(), "--mean"},
                                                    {!command.deviation.empty(), "--deviation"}};
    for (const auto& [is_given, flag] : of_data)
      if (is_given)
        fail(ErrorKind::usage, "{}: it is of samples of --data, and --drawn-samples does without; leave it away", flag);
  }
  std::error_code code;
  return std::filesystem::is_directory(command.source, code) ? open_run(library, command) : open_file(library, command);
}

Batches::Batches(const data::Dataset& dataset, data::LoaderOptions options, int64_t most_samples, int64_t skipped)
    : skipped_(skipped),
      samples_(sample_count(dataset, most_samples, skipped * options.batch)),
      batch_(skipped > 0 ? options.batch : std::min(options.batch, samples_)),
      loader_(dataset, with_batch(std::move(options), batch_)) {}

quantize::CalibrationData Batches::data() const {
  return {(samples_ + batch_ - 1) / batch_, [this](int64_t index) {
            const data::Batch batch = load(index);
            return filled_rows(batch.samples, batch, index);
          }};
}

quantize::LabelledData Batches::labelled(quantize::Criterion criterion) const {
  return {data(),
          [this](int64_t index) {
            const data::Batch batch = load(index);
            return filled_rows(batch.targets, batch, index);
          },
          criterion};
}

Tensor Batches::filled_rows(const Tensor& tensor, const data::Batch& batch, int64_t index) const {
  const int64_t rows = rows_of(batch, index);
  Shape shape = tensor.shape();
  if (rows == shape[0]) return tensor;
  shape[0] = rows;
  Tensor result(tensor.dtype(), shape);
  std::copy_n(tensor.data_as<std::byte>(), result.bytes(), result.data_as<std::byte>());
  return result;
}

std::optional<quantize::Criterion> criterion_of(const data::DatasetInfo& info) {
  switch (info.target_kind()) {
    case data::TargetKind::sample_class:
    case data::TargetKind::pixel_classes:
      return quantize::Criterion::accuracy;
    case data::TargetKind::next_tokens:
    case data::TargetKind::sequence:
      return quantize::Criterion::perplexity;
    case data::TargetKind::values:
      return quantize::Criterion::squared_error;
    case data::TargetKind::text:
      break;
  }
  return std::nullopt;
}

quantize::CalibrationData drawn_samples(const onnx::Model& model, int64_t count, int64_t batch, uint64_t seed) {
  const onnx::ValueInfo input = onnx::inputs_of(model).fed;
  const bool are_tokens = input.dtype == DType::i32 || input.dtype == DType::i64;
  const int64_t tokens = are_tokens ? rows_of_table(model, input.name) : 0;
  if (!input.shape || (input.dtype != DType::f32 && tokens == 0) || input.shape->empty())
    fail(
        ErrorKind::usage,
        "--drawn-samples draws reals, or the rows of a table that the model gathers, and '{}' reads {}; give it --data",
        model.path, describe(input));
  std::vector<int64_t> dims;
  for (const onnx::Dimension& dimension : *input.shape) {
    if (!dimension.size && !dims.empty())
      fail(ErrorKind::usage, "'{}' leaves the size of its input {} open; give it --data", model.path, describe(input));
    dims.push_back(dimension.size.value_or(std::min(batch, count)));
  }
  const int64_t rows = std::max<int64_t>(1, dims[0]);
  return {(count + rows - 1) / rows, [dims, seed, tokens, dtype = *input.dtype](int64_t index) {
            Tensor tensor(dtype, Shape{dims});
            RandomStream random(mix(seed, static_cast<uint64_t>(index)));
            for (int64_t at = 0; at < tensor.elements(); ++at) {
              if (dtype == DType::f32) tensor.data_as<float>()[at] = random.normal();
              const auto token = tokens == 0 ? 0 : random.below(static_cast<uint32_t>(tokens));
              if (dtype == DType::i32) tensor.data_as<int32_t>()[at] = static_cast<int32_t>(token);
              if (dtype == DType::i64) tensor.data_as<int64_t>()[at] = static_cast<int64_t>(token);
            }
            return tensor;
          }};
}

}  // namespace weft::cli
