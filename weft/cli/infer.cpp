// weft infer: runs an ONNX model on inputs from files.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/engine/onnx_session.h"
#include "weft/onnx/file/model_file.h"
#include "weft/tensor/element.h"
#include "weft/tensor/npy.h"

namespace weft::cli {

namespace {

struct InferOptions {
  std::string model, output_dir, precision = "f32";
  std::vector<std::string> inputs;
  int64_t threads = 0, repeat = 0;
};

/// NAME=FILE, or FILE where the model has one input only.
std::map<std::string, onnx::HostValue> read_inputs(const InferOptions& options,
                                                   const std::vector<onnx::ValueInfo>& wanted) {
  std::map<std::string, onnx::HostValue> values;
  for (const std::string& text : options.inputs) {
    std::string name, file = text;
    for (const onnx::ValueInfo& info : wanted)
      if (text.starts_with(info.name + "=")) {
        name = info.name;
        file = text.substr(name.size() + 1);
      }
    if (name.empty() && wanted.size() == 1) name = wanted[0].name;
    if (name.empty())
      fail(ErrorKind::usage,
           "--input {}: the model has {} inputs; write NAME=FILE, with a name that `weft import {}` shows", text,
           wanted.size(), options.model);
    values[name] = read_npy(file);
  }
  return values;
}

std::string file_name_of(const std::string& output) {
  std::string name = output;
  for (char& c : name)
    if (c == '/' || c == '\0') c = '_';
  return name + ".npy";
}

/// "-1.25 to 3.5, the largest at 17"
std::string range_of(const Tensor& tensor) {
  if (tensor.elements() == 0) return "empty";
  double low = load_element(tensor.dtype(), tensor.data(), 0), high = low;
  int64_t where = 0;
  for (int64_t index = 1; index < tensor.elements(); ++index) {
    const double value = load_element(tensor.dtype(), tensor.data(), index);
    low = std::min(low, value);
    if (value > high) where = index;
    high = std::max(high, value);
  }
  return fmt::format("{:.6g} to {:.6g}, the largest at {}", low, high, where);
}

int infer_command(const Library& library, const InferOptions& options) {
  const int64_t threads = options.threads > 0 ? options.threads : available_cores();
  const auto device = library.device.make({.threads = static_cast<int>(threads), .kernels = library.kernels});
  engine::SessionOptions session_options;
  session_options.compile.threads = static_cast<int>(threads);
  const auto dtype = parse_dtype(options.precision);
  if (dtype != DType::f32 && !device->computes_fast(*dtype))
    fail(ErrorKind::usage, "--precision {}: {}; leave it away", options.precision, device->what_lacks(*dtype));
  session_options.compile.precision.dtype = *dtype;
  session_options.on_plan = [](const engine::PlanCost& cost) {
    say(fmt::format("planned {} nodes in {}: {} for results, {} for constants", cost.nodes,
                    human_duration(cost.seconds), human_bytes(static_cast<double>(cost.arena_bytes)),
                    human_bytes(static_cast<double>(cost.constant_bytes))));
  };
  engine::OnnxSession session(onnx::read_model(options.model), library.ops, *device, session_options);
  const auto inputs = read_inputs(options, session.inputs());
  const auto outputs = session.run(inputs);
  if (!options.output_dir.empty()) make_directories(options.output_dir);
  Table table({{"output"}, {"type"}, {"values"}});
  for (const onnx::ValueInfo& info : session.model().graph.outputs) {
    const onnx::HostValue& value = outputs.at(info.name);
    const Tensor* tensor = value.tensor();
    table.add_row({info.name, describe(value), tensor != nullptr ? range_of(*tensor) : "-"});
    if (options.output_dir.empty()) continue;
    if (tensor == nullptr)
      fail(ErrorKind::usage, "the output '{}' is {}, which no .npy file holds", info.name, describe(value));
    write_npy(std::filesystem::path(options.output_dir) / file_name_of(info.name), *tensor);
  }
  fmt::print("{}", table.text());
  if (options.repeat == 0) return 0;
  std::vector<double> seconds;
  for (int64_t turn = 0; turn < options.repeat; ++turn) {
    const auto started = std::chrono::steady_clock::now();
    session.run(inputs);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  fmt::print("median of {} runs: {}\n", options.repeat, human_duration(seconds[seconds.size() / 2]));
  return 0;
}

}  // namespace

void add_infer(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<InferOptions>();
  CLI::App* command = app.add_subcommand("infer", "Run an ONNX model on inputs from files");
  command->add_option("MODEL", options->model, "ONNX file")->required()->type_name("FILE");
  command
      ->add_option("--input", options->inputs,
                   "NumPy file (.npy) of an input; the name may be left away where the model has one; repeatable")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--output-dir", options->output_dir,
                   "Folder for the outputs, OUTPUT.npy each; default: none are written")
      ->type_name("DIR");
  command->add_option("--precision", options->precision, "Of convolutions and matrix products")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  command->add_option("--threads", options->threads, "Default: all cores this process may use")
      ->check(CLI::Range(1, 1024));
  command->add_option("--repeat", options->repeat, "Run so often again, and print the median time")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  command->callback(
      [options, &action, &library] { action = [options, &library] { return infer_command(library, *options); }; });
}

}  // namespace weft::cli
