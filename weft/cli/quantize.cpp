// weft quantize: a run or an ONNX model of f32 as one of integers, with what that costs and brings.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/progress.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/data/load/loader.h"
#include "weft/data/open_dataset.h"
#include "weft/deploy/export_onnx.h"
#include "weft/engine/onnx_session.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/file/model_writer.h"
#include "weft/program/run_data.h"
#include "weft/quantize/accuracy.h"
#include "weft/run/loaded_run.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli {

namespace {

struct QuantizeCommand {
  std::string source, data, output, checkpoint = "auto", calibration = "mse";
  std::vector<double> mean, deviation;
  int64_t samples = 512, test_samples = 0, batch = 32, threads = 0, bits = 8, seed = 0;
  std::optional<int64_t> group;
  double accuracy_drop = -1;  // in points; below 0: no limit
  bool per_tensor = false, symmetric = false, equalizes = false, adaptive = false, keeps_bias = false, force = false;
};

/// The model in f32, with the data that it is calibrated with and measured on.
struct Source {
  onnx::Model model;
  std::unique_ptr<data::Dataset> calibration, test;
  data::ChannelStatistics statistics;
};

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

Source open_run(const Library& library, const QuantizeCommand& command) {
  const run::LoadedRun run = run::load_run(command.source, command.checkpoint, 0, library);
  const std::string data = command.data.empty() ? run.spec.data : command.data;
  Source source;
  source.model = deploy::export_run(library, run, {.source = command.source});
  source.calibration = data::open_dataset(library.data, data, data::Split::train, run.data.info.encoding);
  source.test = program::open_evaluation_data(library, data, run.spec, run.data).dataset;
  source.statistics = command.mean.empty() ? run.data.statistics : statistics_of(command, *source.calibration);
  return source;
}

Source open_file(const Library& library, const QuantizeCommand& command) {
  if (command.data.empty())
    fail(ErrorKind::usage, "an ONNX file wants --data SPEC: what to calibrate it with; see `weft data --help`");
  Source source;
  source.model = onnx::read_model(command.source);
  const bool has_test = data::has_test_split(library.data, command.data);
  source.calibration = data::open_dataset(library.data, command.data, data::Split::train);
  source.test = data::open_dataset(library.data, command.data, has_test ? data::Split::test : data::Split::train,
                                   source.calibration->info().encoding);
  source.statistics = statistics_of(command, *source.calibration);
  return source;
}

/// Batches that a loader makes when they are asked for.
class Batches {
 public:
  Batches(const data::Dataset& dataset, data::LoaderOptions options, int64_t most_samples)
      : samples_(most_samples > 0 ? std::min(most_samples, dataset.size()) : dataset.size()),
        batch_(std::min(options.batch, samples_)),
        loader_(dataset, with_batch(std::move(options), batch_)) {}

  int64_t samples() const { return samples_; }
  quantize::CalibrationData data() const {
    return {(samples_ + batch_ - 1) / batch_, [this](int64_t index) { return samples_of(load(index), index); }};
  }
  quantize::LabelledData labelled() const {
    return {data(), [this](int64_t index) {
              const data::Batch batch = load(index);
              const auto* labels = batch.targets.data_as<int32_t>();
              return std::vector<int32_t>(labels, labels + rows_of(batch, index));
            }};
  }

 private:
  static data::LoaderOptions with_batch(data::LoaderOptions options, int64_t batch) {
    options.batch = batch;
    options.workers = 0;
    return options;
  }
  data::Batch load(int64_t index) const { return loader_.load_batch(0, index); }
  int64_t rows_of(const data::Batch& batch, int64_t index) const {
    return std::min(batch.count, samples_ - index * batch_);
  }
  /// Without the rows that fill a batch up.
  Tensor samples_of(const data::Batch& batch, int64_t index) const {
    const int64_t rows = rows_of(batch, index);
    Shape shape = batch.samples.shape();
    if (rows == shape[0]) return batch.samples;
    shape[0] = rows;
    Tensor result(batch.samples.dtype(), shape);
    std::copy_n(batch.samples.data_as<std::byte>(), result.bytes(), result.data_as<std::byte>());
    return result;
  }

  const int64_t samples_, batch_;
  const data::Loader loader_;
};

/// A line for each part of the work.
class Phase {
 public:
  Phase(std::string_view verb, int64_t batches, int64_t batch)
      : progress_(stderr, with_verb(verb)), batches_(batches), batch_(batch) {}
  void step() {
    ++done_;
    ProgressReport report;
    report.epoch = report.epochs = 1;
    report.items = report.step = done_ * batch_;
    report.steps = std::max(batches_, done_) * batch_;
    progress_.update(report);
  }

 private:
  static ProgressOptions with_verb(std::string_view verb) {
    ProgressOptions options = progress_options_for(stderr);
    options.item = "samples";
    options.verb = verb;
    return options;
  }
  Progress progress_;
  const int64_t batches_, batch_;
  int64_t done_ = 0;
};

/// The median of runs on one sample, in seconds.
double latency(const onnx::Model& model, const Library& library, const Device& device, const Tensor& sample) {
  constexpr int kRuns = 31;
  engine::OnnxSession session(model, library.ops, device, {.compile = {.threads = device.threads()}});
  const std::map<std::string, onnx::HostValue> inputs{{session.inputs().at(0).name, sample}};
  std::vector<double> seconds;
  for (int run = 0; run < kRuns + 3; ++run) {
    const auto started = std::chrono::steady_clock::now();
    session.run(inputs);
    if (run >= 3) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

Tensor first_sample(const Tensor& batch) {
  Shape shape = batch.shape();
  shape[0] = 1;
  Tensor sample(batch.dtype(), shape);
  std::copy_n(batch.data_as<std::byte>(), sample.bytes(), sample.data_as<std::byte>());
  return sample;
}

void write(const std::string& path, const onnx::Model& model) {
  if (std::filesystem::path(path).extension() == ".onnx") return onnx::write_model(path, model);
  SafetensorsFile file;
  for (const auto& [name, value] : model.graph.initializers)
    if (value.tensor() != nullptr) file.tensors.emplace(name, *value.tensor());
  file.metadata = {{"format", "weft quantize"}};
  write_safetensors(path, file);
}

/// What a measurement says of either model.
struct Measured {
  double accuracy = 0;
  double bytes = 0;
  double seconds = 0;
};

std::string results(const Measured& before, const Measured& after, bool has_classes, const std::string& kind) {
  Table table({{""}, {"f32", Align::right}, {kind, Align::right}, {"", Align::right}});
  if (has_classes)
    table.add_row({"accuracy", fmt::format("{:.2f} %", 100 * before.accuracy),
                   fmt::format("{:.2f} %", 100 * after.accuracy),
                   fmt::format("{:+.2f} points", 100 * (after.accuracy - before.accuracy))});
  table.add_row({"size", human_bytes(before.bytes), human_bytes(after.bytes),
                 fmt::format("{:.2f} times smaller", before.bytes / after.bytes)});
  table.add_row({"latency of one sample", fmt::format("{:.3f} ms", 1e3 * before.seconds),
                 fmt::format("{:.3f} ms", 1e3 * after.seconds),
                 fmt::format("{:.2f} times faster", before.seconds / after.seconds)});
  return table.text();
}

std::string decibels_in_words(double decibels) {
  if (std::isnan(decibels)) return "not a number";
  if (!std::isinf(decibels)) return fmt::format("{:.1f} dB", decibels);
  return decibels > 0 ? "exact" : "no signal";
}

std::string layers_in_words(const std::vector<quantize::LayerError>& errors) {
  Table table({{"layer"}, {"weights", Align::right}, {"bits", Align::right}, {"signal to noise", Align::right}});
  for (const quantize::LayerError& error : errors)
    table.add_row({error.name, human_count(static_cast<double>(error.weights)), std::to_string(error.bits),
                   decibels_in_words(error.signal_to_noise)});
  return table.text();
}

quantize::QuantizerOptions quantizer_options(const QuantizeCommand& command) {
  quantize::QuantizerOptions options;
  options.calibration = quantize::parse_calibration(command.calibration);
  options.per_channel = !command.per_tensor;
  options.symmetric = command.symmetric;
  options.equalizes = command.equalizes;
  options.corrects_bias = !command.keeps_bias;
  options.rounding = command.adaptive ? quantize::WeightRounding::adaptive : quantize::WeightRounding::nearest;
  options.bits = static_cast<int>(command.bits);
  if (command.group && command.bits == 8)
    fail(ErrorKind::usage, "--group {}: weights of 8 bits have a scale for each output; leave it away, or add --bits 4",
         *command.group);
  if (command.group) options.group = *command.group;
  return options;
}

int quantize_command(const Library& library, const QuantizeCommand& command) {
  const std::string extension = std::filesystem::path(command.output).extension();
  if (extension != ".onnx" && extension != ".safetensors")
    fail(ErrorKind::usage,
         "-o {}: weft quantize writes ONNX and safetensors files; name it FILE.onnx or "
         "FILE.safetensors",
         command.output);
  std::error_code code;
  if (!command.force && std::filesystem::exists(command.output, code))
    fail(ErrorKind::usage, "'{}' is there already; give another name, or --force to replace it", command.output);
  const bool is_run = std::filesystem::is_directory(command.source, code);
  const Source source = is_run ? open_run(library, command) : open_file(library, command);
  const int64_t threads = command.threads > 0 ? command.threads : available_cores();
  const auto device = library.device.make({.threads = static_cast<int>(threads), .kernels = library.kernels});
  const data::LoaderOptions loading{.batch = command.batch, .statistics = source.statistics};
  data::LoaderOptions shuffled = loading;
  shuffled.shuffle = true;
  shuffled.seed = static_cast<uint64_t>(command.seed);
  const Batches calibration(*source.calibration, shuffled, command.samples);
  const Batches test(*source.test, loading, command.test_samples);
  if (calibration.samples() < 16)
    say(fmt::format("calibration sees {} sample{} only: ranges are those of {} alone; 100 or more are better",
                    calibration.samples(), calibration.samples() == 1 ? "" : "s",
                    calibration.samples() == 1 ? "that one" : "these"));
  const bool has_classes = source.test->info().target_kind() == data::TargetKind::sample_class;
  if (!has_classes && command.accuracy_drop >= 0)
    fail(ErrorKind::usage, "--accuracy-drop wants data whose targets are classes, and '{}' has others; leave it away",
         source.test->info().name);

  const quantize::CalibrationData samples = calibration.data();
  std::optional<Phase> phase(std::in_place, "calibrated", 3 * samples.batches, command.batch);
  const quantize::Runner runner{library.ops, *device, [&] {
                                  if (phase) phase->step();
                                }};
  const quantize::Quantizer quantizer(source.model, quantizer_options(command), samples, runner);
  const quantize::LabelledData labelled = test.labelled();
  phase.emplace("evaluated", (has_classes ? 2 : 0) * labelled.samples.batches, command.batch);
  Measured before, after;
  std::set<std::string> left_out;
  if (has_classes) {
    before.accuracy = quantize::accuracy(quantizer.folded(), labelled, runner);
    const auto measure = [&](const std::set<std::string>& layers) {
      return quantize::accuracy(quantizer.quantized(layers), labelled, runner);
    };
    const double least = command.accuracy_drop < 0 ? -1 : before.accuracy - command.accuracy_drop / 100;
    const quantize::MixedPrecision mixed = quantize::leave_out_sensitive(quantizer, least, measure);
    left_out = mixed.left_out;
    after.accuracy = mixed.accuracy;
  }
  const onnx::Model quantized = quantizer.quantized(left_out);
  phase.reset();
  const Tensor sample = first_sample(samples.batch(0));
  before.seconds = latency(quantizer.folded(), library, *device, sample);
  after.seconds = latency(quantized, library, *device, sample);
  before.bytes = static_cast<double>(onnx::print_model(source.model).size());
  after.bytes = static_cast<double>(onnx::print_model(quantized).size());
  write(command.output, quantized);
  fmt::print("{}: calibrated on {} samples of {}, measured on {}\n\n", command.output, calibration.samples(),
             source.calibration->info().name, test.samples());
  fmt::print("{}\n{}", results(before, after, has_classes, fmt::format("int{}", command.bits)),
             layers_in_words(quantizer.layer_errors(left_out)));
  if (has_classes && command.accuracy_drop >= 0 && after.accuracy < before.accuracy - command.accuracy_drop / 100)
    fail(ErrorKind::numeric, "the accuracy falls by more than {} points even with all layers in f32",
         command.accuracy_drop);
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app, Action& action, const Library& library) {
  auto command = std::make_shared<QuantizeCommand>();
  CLI::App* sub = app.add_subcommand("quantize", "Make a model of integers of a run or an ONNX file, without training");
  sub->add_option("RUN", command->source, "Run directory, or ONNX file in f32")->type_name("RUN|FILE.onnx")->required();
  sub->add_option("-o,--output", command->output, "File to write: FILE.onnx in QDQ form, or FILE.safetensors")
      ->type_name("FILE")
      ->required();
  sub->add_option("--data", command->data, "Calibrates and measures; default: the data of the run")->type_name("SPEC");
  sub->add_option("--samples", command->samples, "Training samples to calibrate with")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  sub->add_option("--test-samples", command->test_samples, "Test samples to measure on; default: all")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000000}));
  sub->add_option("--calibration", command->calibration, "How ranges are chosen")
      ->check(CLI::IsMember(quantize::calibration_names()));
  sub->add_flag("--per-tensor", command->per_tensor, "One scale for all output channels of a layer's weights");
  sub->add_flag("--symmetric", command->symmetric, "Activations in i8 around 0, rather than u8 with a zero point");
  sub->add_flag("--equalize", command->equalizes, "Make the ranges of channels between layers alike first");
  sub->add_flag("--adaround", command->adaptive, "Learn for each weight of 8 bits whether to round up or down");
  sub->add_flag("--keep-bias", command->keeps_bias, "Do not correct biases for what rounding does to means");
  sub->add_option("--bits", command->bits, "Of weights: 4 and 2 for matrix products alone, by groups")
      ->check(CLI::IsMember({8, 4, 2}));
  sub->add_option("--group", command->group, "Weights of 4 and 2 bits that share a scale; default: 32")
      ->check(CLI::Range(int64_t{2}, int64_t{65536}));
  sub->add_option("--accuracy-drop", command->accuracy_drop,
                  "Leave the most sensitive layers in f32 until the accuracy falls by no more points than this")
      ->check(CLI::Range(0.0, 100.0));
  sub->add_option("--mean", command->mean, "Of an ONNX file's pixels in 0 to 1, for each channel; default: the data's")
      ->delimiter(',');
  sub->add_option("--deviation", command->deviation, "Standard deviations likewise")->delimiter(',');
  sub->add_option("--checkpoint", command->checkpoint, kCheckpointHelp)->check(CLI::IsMember(checkpoint_names()));
  sub->add_option("--batch", command->batch, "Samples at a time")->check(CLI::Range(1, 65536));
  sub->add_option("--seed", command->seed, "Of the choice of samples")->check(CLI::NonNegativeNumber);
  sub->add_option("--threads", command->threads, "Default: all cores this process may use")->check(CLI::Range(1, 1024));
  sub->add_flag("--force", command->force, "Replace the file where it is there already");
  sub->callback(
      [command, &action, &library] { action = [command, &library] { return quantize_command(library, *command); }; });
}

}  // namespace weft::cli
