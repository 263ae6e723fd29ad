// weft quantize: a run or an ONNX model of f32 as one of integers, with what that costs and brings.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/progress.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/deploy/quantize_data.h"
#include "weft/cli/options.h"
#include "weft/cli/real_number.h"
#include "weft/deploy/compile_model.h"
#include "weft/engine/model_file.h"
#include "weft/engine/onnx_session.h"
#include "weft/onnx/file/model_writer.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli {

namespace {

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
double latency(const onnx::Model& model, const Library& library, const Device& device, const Tensor& sample,
               DType precision) {
  constexpr int kRuns = 31;
  engine::OnnxSession session(model, library.ops, device,
                              {.compile = {.precision = {precision, {}}, .threads = device.threads()}});
  const auto inputs = quantize::inputs_for(model, sample);
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

constexpr const char* kFixed = "fixed";  // as the op's attribute has it

/// What layers that stay reals compute in: the file says so, or f32 is all that its form knows.
DType precision_of_rest(const std::string& path, const Device& device) {
  return std::filesystem::path(path).extension() == ".weft" && device.computes_fast(DType::bf16) ? DType::bf16
                                                                                                 : DType::f32;
}

void write(const Library& library, const std::string& path, const onnx::Model& model,
           const deploy::CompileModelOptions& options) {
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".onnx") return onnx::write_model(path, model);
  if (extension == ".weft") return engine::write_model(path, deploy::compile_onnx(library, model, options));
  SafetensorsFile file;
  for (const auto& [name, value] : model.graph.initializers)
    if (value.tensor() != nullptr) file.tensors.emplace(name, *value.tensor());
  file.metadata = {{"format", "weft quantize"}};
  write_safetensors(path, file);
}

/// What a measurement says of either model.
struct Measured {
  double quality = 0;  // by the criterion
  double bytes = 0;
  double seconds = 0;
};

/// The row of what is measured.
void add_quality(Table& table, quantize::Criterion criterion, double before, double after) {
  const std::string name(quantize::name_of(criterion));
  if (criterion == quantize::Criterion::accuracy) {
    table.add_row({name, fmt::format("{:.2f} %", 100 * before), fmt::format("{:.2f} %", 100 * after),
                   fmt::format("{:+.2f} points", 100 * (after - before))});
    return;
  }
  table.add_row({name, fmt::format("{:.4g}", before), fmt::format("{:.4g}", after),
                 fmt::format("{:+.2f} %", quantize::loss_of(criterion, before, after))});
}

std::string results(const Measured& before, const Measured& after, std::optional<quantize::Criterion> criterion,
                    const std::string& kind) {
  Table table({{""}, {"f32", Align::right}, {kind, Align::right}, {"", Align::right}});
  if (criterion) add_quality(table, *criterion, before.quality, after.quality);
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

std::string layers_in_words(const std::vector<quantize::LayerError>& errors, DType rest) {
  Table table({{"layer"}, {"weights", Align::right}, {"bits", Align::right}, {"signal to noise", Align::right}});
  for (const quantize::LayerError& error : errors)
    table.add_row({error.name, human_count(static_cast<double>(error.weights)),
                   error.bits == 32 ? std::string(name_of(rest)) : std::to_string(error.bits),
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
  if (command.group && !options.by_groups())
    fail(ErrorKind::usage,
         "--group {}: weights of {} bits have a scale for each output; leave it away, or add --bits 4", *command.group,
         command.bits);
  if (command.group) options.group = *command.group;
  return options;
}

constexpr int64_t kMostChoiceSamples = 4096;
constexpr int64_t kFewestChoiceSamples = 64;

/// Labelled samples that layers are chosen by: the run's validation part, or training samples that calibration has not
/// seen; never those that measure.
struct Choice {
  std::unique_ptr<Batches> batches;
  std::string what;
};

Choice open_choice(const QuantizeSource& source, const data::LoaderOptions& loading,
                   const data::LoaderOptions& shuffled, const Batches& calibration) {
  Choice choice;
  if (source.validation) {
    choice.batches = std::make_unique<Batches>(*source.validation, loading, kMostChoiceSamples);
    choice.what = fmt::format("{} samples of the validation part", choice.batches->samples());
    return choice;
  }
  const int64_t seen = (calibration.samples() + shuffled.batch - 1) / shuffled.batch;
  if (source.calibration->size() - seen * shuffled.batch >= kFewestChoiceSamples) {
    choice.batches = std::make_unique<Batches>(*source.calibration, shuffled, kMostChoiceSamples, seen);
    choice.what = fmt::format("{} other training samples", choice.batches->samples());
    return choice;
  }
  choice.batches = std::make_unique<Batches>(*source.calibration, shuffled, calibration.samples());
  choice.what = "the samples of calibration: there are too few others";
  return choice;
}

/// With a line for each part of the work on the way.
class QuantizeRun {
 public:
  QuantizeRun(const Library& library, const QuantizeCommand& command)
      : library_(library),
        command_(command),
        source_(open_source(library, command)),
        device_(library.device.make({.threads = static_cast<int>(threads_of(command)), .kernels = library.kernels})),
        rest_(precision_of_rest(command.output, *device_)) {
    loading_.batch = command.batch;
    loading_.statistics = source_.statistics;
    shuffled_ = loading_;
    shuffled_.shuffle = true;
    shuffled_.seed = static_cast<uint64_t>(command.seed);
  }

  int run() { return command_.drawn_samples > 0 ? run_on_drawn() : run_on_data(); }

 private:
  static int64_t threads_of(const QuantizeCommand& command) {
    return command.threads > 0 ? command.threads : available_cores();
  }

  quantize::Runner runner(DType precision = DType::f32) {
    return {library_.ops, *device_,
            [this] {
              if (phase_) phase_->step();
            },
            precision};
  }
  /// Layers that stay reals may compute in a narrower type.
  DType precision_with(const std::set<std::string>& left_out) const { return left_out.empty() ? DType::f32 : rest_; }

  int run_on_drawn() {
    const quantize::CalibrationData samples =
        drawn_samples(source_.model, command_.drawn_samples, command_.batch, static_cast<uint64_t>(command_.seed));
    phase_.emplace("calibrated", 3 * samples.batches, samples.batch(0).shape()[0]);
    const quantize::Runner plain = runner();
    const quantize::Quantizer quantizer(source_.model, quantizer_options(command_), samples, plain);
    phase_.reset();
    finish(quantizer, {}, samples.batch(0), {}, {}, std::nullopt);
    fmt::print(
        "\nThe accuracy is unknown: calibrated on {} samples of drawn numbers. Quantize it with data of its own "
        "before you use it.\n",
        samples.batches * samples.batch(0).shape()[0]);
    return 0;
  }

  int run_on_data() {
    const Batches calibration(*source_.calibration, shuffled_, command_.samples.value_or(512));
    const Batches test(*source_.test, loading_, command_.test_samples.value_or(0));
    if (calibration.samples() < 16)
      say(fmt::format("calibration sees {} sample{} only: ranges are those of {} alone; 100 or more are better",
                      calibration.samples(), calibration.samples() == 1 ? "" : "s",
                      calibration.samples() == 1 ? "that one" : "these"));
    std::optional<quantize::Criterion> criterion = criterion_of(source_.test->info());
    const bool chooses = command_.accuracy_drop >= 0;
    if (!criterion && chooses)
      fail(ErrorKind::usage, "--accuracy-drop: weft does not measure the texts in images of '{}'; leave it away",
           source_.test->info().name);
    const quantize::CalibrationData samples = calibration.data();
    phase_.emplace("calibrated", 3 * samples.batches, command_.batch);
    const quantize::Runner plain = runner();
    const quantize::Quantizer quantizer(source_.model, quantizer_options(command_), samples, plain);
    phase_.reset();
    std::string chosen;
    quantize::MixedPrecision mixed;
    if (chooses) {
      const Choice choice = open_choice(source_, loading_, shuffled_, calibration);
      const quantize::LabelledData labelled = choice.batches->labelled(*criterion);
      phase_.emplace("chosen by", 2 * labelled.samples.batches, command_.batch);
      const double real = quantize::measure(quantizer.folded(), labelled, plain);
      mixed =
          quantize::leave_out_sensitive(quantizer, command_.accuracy_drop, [&](const std::set<std::string>& layers) {
            const double quality =
                quantize::measure(quantizer.quantized(layers), labelled, runner(precision_with(layers)));
            return quantize::loss_of(*criterion, real, quality);
          });
      phase_.reset();
      chosen = fmt::format(", layers chosen by {}", choice.what);
    }
    Measured before, after;
    if (criterion) {
      const quantize::LabelledData labelled = test.labelled(*criterion);
      phase_.emplace("evaluated", 2 * labelled.samples.batches, command_.batch);
      if (measure_real(quantizer, labelled, before))
        after.quality =
            quantize::measure(quantizer.quantized(mixed.left_out), labelled, runner(precision_with(mixed.left_out)));
      else
        criterion.reset();
      phase_.reset();
    }
    fmt::print("{}: calibrated on {} samples of {}{}, measured on {}\n\n", command_.output, calibration.samples(),
               source_.calibration->info().name, chosen, test.samples());
    finish(quantizer, mixed.left_out, samples.batch(0), before, after, criterion);
    if (chooses && !(mixed.loss <= command_.accuracy_drop))
      fail(ErrorKind::numeric, "the {} is worse by more than {} even with all layers in {}",
           quantize::name_of(*criterion), in_words(*criterion, command_.accuracy_drop), name_of(rest_));
    return 0;
  }

  static std::string in_words(quantize::Criterion criterion, double loss) {
    return fmt::format("{} {}", loss, criterion == quantize::Criterion::accuracy ? "points" : "%");
  }

  /// False, with a line that says why, where the model gives no answers to such targets, as one of features.
  bool measure_real(const quantize::Quantizer& quantizer, const quantize::LabelledData& labelled, Measured& before) {
    const quantize::Runner plain = runner();
    try {
      before.quality = quantize::measure(quantizer.folded(), labelled, plain);
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::shape || command_.accuracy_drop >= 0) throw;
      say(fmt::format("nothing is measured on the data: {}", error.what()));
      return false;
    }
  }

  /// Writes the file and prints the tables.
  void finish(const quantize::Quantizer& quantizer, const std::set<std::string>& left_out, const Tensor& batch,
              Measured before, Measured after, std::optional<quantize::Criterion> criterion) {
    onnx::Model quantized = quantizer.quantized(left_out);
    quantized.path = command_.output;
    const DType precision = precision_with(left_out);
    const Tensor sample = has_fixed_batch(quantized) ? batch : first_sample(batch);
    before.seconds = latency(quantizer.folded(), library_, *device_, sample, DType::f32);
    after.seconds = latency(quantized, library_, *device_, sample, precision);
    before.bytes = static_cast<double>(onnx::print_model(source_.model).size());
    write(library_, command_.output, quantized,
          {.precision = precision, .requantizes_fixed = command_.requantize == kFixed});
    after.bytes = static_cast<double>(std::filesystem::file_size(command_.output));
    fmt::print("{}\n{}", results(before, after, criterion, fmt::format("int{}", command_.bits)),
               layers_in_words(quantizer.layer_errors(left_out), precision));
  }

  static bool has_fixed_batch(const onnx::Model& model) {
    for (const onnx::ValueInfo& info : model.graph.inputs)
      if (!model.graph.initializers.contains(info.name))
        return info.shape && !info.shape->empty() && info.shape->front().size.has_value();
    return false;
  }

  const Library& library_;
  const QuantizeCommand& command_;
  const QuantizeSource source_;
  const std::unique_ptr<Device> device_;
  const DType rest_;
  data::LoaderOptions loading_, shuffled_;
  std::optional<Phase> phase_;
};

int quantize_command(const Library& library, const QuantizeCommand& command) {
  const std::string extension = std::filesystem::path(command.output).extension();
  if (extension != ".onnx" && extension != ".safetensors" && extension != ".weft")
    fail(ErrorKind::usage,
         "-o {}: weft quantize writes ONNX files, compiled models and safetensors; name it FILE.onnx, FILE.weft or "
         "FILE.safetensors",
         command.output);
  if (command.requantize == kFixed && extension != ".weft")
    fail(ErrorKind::usage, "--requantize fixed: {} cannot say it; name the output FILE.weft, or leave it away",
         extension == ".onnx" ? "ONNX, which knows float scales alone," : "a file of tensors alone");
  if (command.requantize == kFixed && command.bits < 7)
    fail(ErrorKind::usage,
         "--requantize fixed with --bits {}: such weights are made reals, and no integers are requantized; leave "
         "one of the two away",
         command.bits);
  std::error_code code;
  if (!command.force && std::filesystem::exists(command.output, code))
    fail(ErrorKind::usage, "'{}' is there already; give another name, or --force to replace it", command.output);
  { const AtomicFile writable(command.output); }  // what cannot be written is said before the work, not behind it
  return QuantizeRun(library, command).run();
}

}  // namespace

void add_quantize(CLI::App& app, Action& action, const Library& library) {
  auto command = std::make_shared<QuantizeCommand>();
  CLI::App* sub = app.add_subcommand("quantize", "Make a model of integers of a run or an ONNX file, without training");
  sub->add_option("RUN", command->source, "Run directory, or ONNX file in f32")->type_name("RUN|FILE.onnx")->required();
  sub->add_option("-o,--output", command->output,
                  "File to write: FILE.onnx in QDQ form, FILE.weft for `weft infer`, or FILE.safetensors")
      ->type_name("FILE")
      ->required();
  sub->add_option("--data", command->data, "Calibrates and measures; default: the data of the run")->type_name("SPEC");
  sub->add_option("--samples", command->samples, "Training samples to calibrate with; default: 512")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  sub->add_option("--test-samples", command->test_samples, "Test samples to measure on; default: all")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000000}));
  sub->add_option("--calibration", command->calibration, "How ranges are chosen")
      ->check(CLI::IsMember(quantize::calibration_names()));
  sub->add_flag("--per-tensor", command->per_tensor, "One scale for all output channels of a layer's weights");
  sub->add_flag("--symmetric", command->symmetric, "Activations in i8 around 0, rather than u8 with a zero point");
  sub->add_flag("--equalize", command->equalizes, "Make the ranges of channels between layers alike first");
  sub->add_flag("--adaround", command->adaptive, "Learn for each weight of 8 or 7 bits whether to round up or down");
  sub->add_flag("--keep-bias", command->keeps_bias, "Do not correct biases for what rounding does to means");
  sub->add_option("--requantize", command->requantize,
                  "How sums become 8 bits: times a float, or of FILE.weft by a fixed multiplier and a shift")
      ->check(CLI::IsMember({"float", kFixed}));
  sub->add_option(
         "--bits", command->bits,
         "Of weights: 7 is faster on processors without VNNI; 4 and 2 are for matrix products alone, by groups")
      ->check(CLI::IsMember({8, 7, 4, 2}));
  sub->add_option("--group", command->group, "Weights of 4 and 2 bits that share a scale; default: 32")
      ->check(CLI::Range(int64_t{2}, int64_t{65536}));
  sub->add_option("--accuracy-drop", command->accuracy_drop,
                  "Leave the most sensitive layers as reals until the accuracy falls by no more points than this, or a "
                  "perplexity rises by no more per cent, on the validation part or on other training samples")
      ->check(real_number_in(0, 100));
  sub->add_option("--drawn-samples", command->drawn_samples,
                  "Calibrate with so many samples of drawn numbers: where only speed matters")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
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
