#include "weft/cli/deploy/infer_deployed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/rng.h"
#include "weft/base/table.h"
#include "weft/cli/deploy/compiled_model.h"
#include "weft/data/dataset/class_names.h"
#include "weft/data/pictures/picture_files.h"
#include "weft/engine/model_file.h"
#include "weft/engine/stream_pool.h"
#include "weft/graph/expression.h"
#include "weft/infer/input_files.h"
#include "weft/program/process_memory.h"
#include "weft/report/op_profile.h"
#include "weft/tensor/element.h"
#include "weft/tensor/npy.h"

namespace weft::cli {

namespace {

using nlohmann::ordered_json;

constexpr size_t kProfileRows = 20;

/// What the model reads, and from which picture each row is.
struct Inputs {
  std::vector<Tensor> tensors;
  std::vector<std::string> pictures;
};

/// The value of --input: a file, and the name of the input where one stands before it.
struct NamedFile {
  size_t input = 0;
  std::string file;
};

NamedFile parse_input(const std::string& text, const engine::DeployedModel& model) {
  for (size_t index = 0; index < model.inputs.size(); ++index)
    if (text.starts_with(model.inputs[index].name + "="))
      return {index, text.substr(model.inputs[index].name.size() + 1)};
  if (model.inputs.size() == 1) return {0, text};
  fail(ErrorKind::usage, "--input {}: the model has {} inputs; write NAME=FILE, such as {}={}", text,
       model.inputs.size(), model.inputs[0].name, text);
}

Tensor read_pictures(const std::vector<std::string>& files, const engine::DeployedModel& model) {
  if (!model.pictures)
    fail(ErrorKind::usage,
         "'{}' does not say how pictures become its input; give a NumPy file, or compile it with --mean and "
         "--deviation",
         model.source.empty() ? model.name : model.source);
  const engine::PictureInput& pictures = *model.pictures;
  Tensor tensor(DType::f32,
                Shape{static_cast<int64_t>(files.size()), pictures.channels, pictures.height, pictures.width});
  const auto elements = static_cast<size_t>(pictures.elements());
  for (size_t index = 0; index < files.size(); ++index)
    engine::read_picture(files[index], pictures, {tensor.data_as<float>() + index * elements, elements});
  return tensor;
}

Inputs read_inputs(const InferOptions& options, const engine::DeployedModel& model) {
  Inputs inputs;
  inputs.tensors.resize(model.inputs.size());
  std::vector<std::string> pictures;
  for (const std::string& text : options.inputs) {
    const NamedFile named = parse_input(text, model);
    std::error_code code;
    const bool is_folder = std::filesystem::is_directory(named.file, code);
    const bool are_pictures = named.input == 0 && (is_folder || data::is_picture(named.file));
    Tensor& tensor = inputs.tensors[named.input];
    if (!tensor.empty() || (named.input == 0 && !are_pictures && !pictures.empty()))
      fail(ErrorKind::usage, "--input {}: there is a file for '{}' already; give one, or several pictures", text,
           model.inputs[named.input].name);
    if (are_pictures)
      pictures.push_back(named.file);
    else
      tensor = read_npy(named.file);
  }
  if (!pictures.empty()) {
    inputs.pictures = infer::expand_files(pictures);
    inputs.tensors[0] = read_pictures(inputs.pictures, model);
  }
  for (size_t index = 0; index < inputs.tensors.size(); ++index)
    if (inputs.tensors[index].empty())
      fail(ErrorKind::usage, "the input '{}' ({}) is missing; give it, as in --input {}=FILE.npy",
           model.inputs[index].name, model.inputs[index].type, model.inputs[index].name);
  return inputs;
}

/// To measure times by, where no inputs are given: one row of normal numbers, or of zeros where they are no floats.
Inputs drawn_inputs(const engine::Engine& engine, int64_t batch) {
  Inputs inputs;
  for (size_t index = 0; index < engine.model().inputs.size(); ++index) {
    Tensor tensor(engine.input_type(index, batch));
    RandomStream random(1, index);
    if (tensor.dtype() == DType::f32)
      for (float& value : std::span(tensor.data_as<float>(), static_cast<size_t>(tensor.elements())))
        value = random.normal();
    inputs.tensors.push_back(std::move(tensor));
  }
  return inputs;
}

/// As many rows as there are for each stream, or as the model is for.
int64_t batch_of(const InferOptions& options, const engine::Engine& engine, int64_t rows) {
  if (options.batch > 0) return options.batch;
  const int64_t each = std::max<int64_t>(1, (rows + options.streams - 1) / options.streams);
  if (engine.batches().empty()) return each;
  int64_t best = *std::min_element(engine.batches().begin(), engine.batches().end());
  for (const int64_t size : engine.batches())
    if (size <= each) best = std::max(best, size);
  return best;
}

struct Repeated {
  double median_seconds = 0;  // of a run
  double rows_per_second = 0;
};

Repeated measure(engine::StreamPool& pool, const std::vector<Tensor>& batch, int64_t repeat) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::future<engine::Answer>> futures;
  for (int stream = 0; stream < pool.streams(); ++stream) futures.push_back(pool.submit(batch, repeat));
  std::vector<double> seconds;
  for (auto& future : futures) {
    const engine::Answer answer = future.get();
    answer.check();
    seconds.insert(seconds.end(), answer.seconds.begin(), answer.seconds.end());
  }
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  const int64_t rows = batch[0].shape().rank() > 0 ? batch[0].shape()[0] : 1;
  return {*middle, static_cast<double>(seconds.size()) * static_cast<double>(rows) / all.count()};
}

/// The first rows of each input, as many as there are in a run; fewer are repeated.
std::vector<Tensor> first_batch(const std::vector<Tensor>& inputs, int64_t batch) {
  std::vector<Tensor> rows;
  for (const Tensor& input : inputs) {
    std::vector<int64_t> dims = input.shape().dims();
    const int64_t have = dims[0], row_bytes = input.bytes() / std::max<int64_t>(1, have);
    dims[0] = batch;
    Tensor some(input.dtype(), Shape(dims));
    for (int64_t row = 0; row < batch; ++row)
      std::copy_n(input.data_as<std::byte>() + row % have * row_bytes, row_bytes,
                  some.data_as<std::byte>() + row * row_bytes);
    rows.push_back(std::move(some));
  }
  return rows;
}

/// Of each picture the likeliest classes, by the first output.
ordered_json classes_of(const Inputs& inputs, const Tensor& output, const engine::DeployedModel& model, int64_t top) {
  auto list = ordered_json::array();
  const auto rows = static_cast<int64_t>(inputs.pictures.size());
  if (rows == 0 || output.shape().rank() != 2 || output.shape()[0] != rows) return list;
  const int64_t classes = output.shape()[1];
  for (int64_t row = 0; row < rows; ++row) {
    const auto value = [&](int64_t at) { return load_element(output.dtype(), output.data(), row * classes + at); };
    std::vector<int64_t> order(static_cast<size_t>(classes));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return value(a) > value(b); });
    auto named = ordered_json::array();
    for (int64_t at = 0; at < std::min(top, classes); ++at) {
      const int64_t index = order[static_cast<size_t>(at)];
      named.push_back({{"class", index}, {"name", data::class_name(model.classes, index)}, {"value", value(index)}});
    }
    list.push_back({{"file", inputs.pictures[static_cast<size_t>(row)]}, {"classes", named}});
  }
  return list;
}

/// Of each node of a run, the median over as many runs.
std::vector<report::OpProfile> profiled(engine::Engine& engine, const std::vector<Tensor>& batch, int64_t rows,
                                        int64_t runs) {
  engine::Stream stream(engine);
  for (size_t index = 0; index < batch.size(); ++index) stream.set_input(index, batch[index].data());
  stream.run(rows);  // touches the memory
  std::vector<Profile> profiles(static_cast<size_t>(runs));
  for (Profile& profile : profiles) stream.run(rows, &profile);
  const CompiledStep& step = engine.plan(rows);
  return report::profile_nodes(step.graph, step.plan, report::median_profile(profiles),
                               engine.device().measure_rates());
}

ordered_json profile_json(const std::vector<report::OpProfile>& nodes) {
  auto list = ordered_json::array();
  for (const report::OpProfile& node : nodes)
    list.push_back({{"node", node.name},
                    {"op", node.op},
                    {"type", node.dtype},
                    {"kernel", node.kernel},
                    {"seconds", node.seconds},
                    {"flops", node.flops},
                    {"bytes", node.bytes}});
  return list;
}

void print_text(const ordered_json& report) {
  if (!report["pictures"].empty()) {
    Table table({{"picture"}, {"class"}, {"value", Align::right}});
    for (const ordered_json& picture : report["pictures"])
      for (const ordered_json& entry : picture["classes"])
        table.add_row({picture["file"].get<std::string>(), entry["name"].get<std::string>(),
                       fmt::format("{:.4f}", entry["value"].get<double>())});
    fmt::print("{}", table.text());
  } else {
    Table table({{"output"}, {"type"}, {"values"}});
    for (const ordered_json& output : report["outputs"])
      table.add_row(
          {output["name"].get<std::string>(), output["type"].get<std::string>(), output["values"].get<std::string>()});
    fmt::print("{}", table.text());
  }
  if (!report.contains("repeat")) return;
  fmt::print("{} runs of a batch of {} on {} streams of {} threads: median {}, {:.1f} rows/s\n",
             report["repeat"].get<int64_t>() * report["streams"].get<int64_t>(), report["batch"].get<int64_t>(),
             report["streams"].get<int64_t>(), report["threads"].get<int64_t>(),
             human_duration(report["median_seconds"].get<double>()), report["rows_per_second"].get<double>());
  const double planned = report["planned_bytes"].get<double>(), taken = report["taken_bytes"].get<double>();
  fmt::print("memory: {} by the plan ({} for results, {} for constants, and inputs), {} taken ({:+.1f} %)\n",
             human_bytes(planned), human_bytes(report["arena_bytes"].get<double>()),
             human_bytes(report["constant_bytes"].get<double>()), human_bytes(taken), 100 * (taken / planned - 1));
  fmt::print("the process with its code: {}, {} at most\n", human_bytes(report["resident_bytes"].get<double>()),
             human_bytes(report["peak_bytes"].get<double>()));
}

engine::DeployedModel read_or_compile(const Library& library, const InferOptions& options) {
  if (!engine::is_model_file(options.model)) {
    deploy::CompileModelOptions compiled{.sizes = parse_bindings(options.bind)};
    if (options.batch > 0) compiled.otherwise_batches = {options.batch};
    return compiled_model(library, {.model = options.model}, compiled);
  }
  if (!options.bind.empty())
    fail(ErrorKind::usage, "--bind {}: '{}' has had its sizes since `weft compile`; leave it away, or bind them there",
         options.bind.front(), options.model);
  return engine::read_model(options.model);
}

}  // namespace

std::string output_file(const std::string& output) {
  std::string name = output;
  for (char& c : name)
    if (c == '/' || c == '\0') c = '_';
  return name + ".npy";
}

std::string range_of(const Tensor& tensor) {
  if (tensor.elements() == 0) return "empty";
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t where = -1, not_numbers = 0;
  for (int64_t index = 0; index < tensor.elements(); ++index) {
    const double value = load_element(tensor.dtype(), tensor.data(), index);
    not_numbers += std::isnan(value) ? 1 : 0;
    low = std::min(low, value);
    if (value > high || (where < 0 && value == high)) where = index;
    high = std::max(high, value);
  }
  if (where < 0) return "all NaN";
  const std::string range = fmt::format("{:.6g} to {:.6g}, the largest at {}", low, high, where);
  return not_numbers == 0 ? range : fmt::format("{}, {} of {} NaN", range, not_numbers, tensor.elements());
}

int infer_deployed(const Library& library, const InferOptions& options) {
  const int64_t cores = available_cores();
  const int64_t threads = options.threads > 0 ? options.threads : std::max<int64_t>(1, cores / options.streams);
  const auto device = library.device.make({.threads = static_cast<int>(threads), .kernels = library.kernels});
  const int64_t anonymous_before = program::anonymous_bytes();
  const program::MemoryGrowth growth;
  engine::EngineOptions engine_options;
  if (!options.precision.empty()) engine_options.precision = parse_dtype(options.precision);
  const OpRegistry ops = engine::is_model_file(options.model) ? ops_of_files(library) : library.ops;
  engine::Engine engine(read_or_compile(library, options), ops, *device, engine_options);
  const engine::DeployedModel& model = engine.model();
  const bool are_drawn = options.inputs.empty() && options.repeat > 0;
  const Inputs inputs = are_drawn ? drawn_inputs(engine, batch_of(options, engine, 1)) : read_inputs(options, model);
  if (options.top && inputs.pictures.empty())
    fail(ErrorKind::usage, "--top {}: it names classes of pictures, and none is given; leave it away", *options.top);
  const int64_t rows = inputs.tensors[0].shape().rank() > 0 ? inputs.tensors[0].shape()[0] : 1;
  if (rows == 0) fail(ErrorKind::usage, "the inputs have no rows; give some");
  const int64_t batch = batch_of(options, engine, rows);
  auto pool = std::make_unique<engine::StreamPool>(engine, static_cast<int>(options.streams), options.pins);
  const std::vector<Tensor> outputs = pool->run_rows(inputs.tensors, batch);

  ordered_json report{{"model", model.name}};
  report["outputs"] = ordered_json::array();
  if (!options.output_dir.empty()) make_directories(options.output_dir);
  for (size_t index = 0; index < outputs.size(); ++index) {
    const std::string& name = model.outputs[index].name;
    report["outputs"].push_back(
        {{"name", name}, {"type", to_string(outputs[index].type())}, {"values", range_of(outputs[index])}});
    if (!options.output_dir.empty())
      write_npy(std::filesystem::path(options.output_dir) / output_file(name), outputs[index]);
  }
  report["pictures"] =
      outputs.empty() ? ordered_json::array() : classes_of(inputs, outputs[0], model, options.top.value_or(1));
  if (options.repeat > 0) {
    const std::vector<Tensor> measured_rows = first_batch(inputs.tensors, batch);
    measure(*pool, measured_rows, 1);  // makes the plans and touches the memory
    const Repeated measured = measure(*pool, measured_rows, options.repeat);
    report["repeat"] = options.repeat;
    report["batch"] = batch;
    report["streams"] = options.streams;
    report["threads"] = threads;
    report["median_seconds"] = measured.median_seconds;
    report["rows_per_second"] = measured.rows_per_second;
    report["arena_bytes"] = pool->arena_bytes();
    report["constant_bytes"] = engine.constant_bytes();
    int64_t input_bytes = 0;  // of all rows, and of those that were measured
    for (const auto* tensors : {&inputs.tensors, &measured_rows})
      for (const Tensor& tensor : *tensors) input_bytes += tensor.bytes();
    report["planned_bytes"] = pool->arena_bytes() + engine.constant_bytes() + input_bytes;
    report["taken_bytes"] = program::anonymous_bytes() - anonymous_before + engine.mapped_constant_bytes();
    report["resident_bytes"] = program::resident_bytes();
    report["peak_bytes"] = program::peak_resident_bytes();
    report["grown_bytes"] = growth.peak();
  }
  std::vector<report::OpProfile> nodes;
  if (options.profiles) {
    pool.reset();  // libgomp lets threads sleep at once where there are more than cores, even if they are idle
    nodes = profiled(engine, first_batch(inputs.tensors, batch), batch, options.repeat);
    report["nodes"] = profile_json(nodes);
  }
  if (options.json)
    fmt::print("{}\n", report.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  else
    print_text(report);
  if (!nodes.empty() && !options.json)
    fmt::print("\nby op and kernel:\n{}\nby node:\n{}",
               report::time_table(report::sum_by_kernel(nodes), kProfileRows).text(),
               report::time_table(nodes, kProfileRows).text());
  return 0;
}

}  // namespace weft::cli
