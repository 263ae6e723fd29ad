// weft infer: runs a compiled model, a run or an ONNX model on inputs from files.
#include <CLI/CLI.hpp>
#include <algorithm>
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
#include "weft/cli/deploy/infer_deployed.h"
#include "weft/engine/model_file.h"
#include "weft/engine/onnx_session.h"
#include "weft/onnx/file/model_file.h"
#include "weft/tensor/npy.h"

namespace weft::cli {

namespace {

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
    if (values.contains(name))
      fail(ErrorKind::usage, "--input {}: there is a file for '{}' already; give one", text, name);
    values[name] = read_npy(file);
  }
  return values;
}

int infer_onnx(const Library& library, const InferOptions& options) {
  if (options.top)
    fail(ErrorKind::usage, "--top {}: it names classes of pictures, and none is given; leave it away", *options.top);
  if (!options.pins)
    fail(ErrorKind::usage,
         "--no-pin: an ONNX file that runs as it is leaves threads where the system puts them; leave it away, or add "
         "--streams, --batch or --json, for which the file is compiled");
  const int64_t threads = options.threads > 0 ? options.threads : available_cores();
  const auto device = library.device.make({.threads = static_cast<int>(threads), .kernels = library.kernels});
  engine::SessionOptions session_options;
  session_options.compile.threads = static_cast<int>(threads);
  const auto dtype = parse_dtype(options.precision.empty() ? "f32" : options.precision);
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
    if (tensor != nullptr && !fits(info, tensor->shape()))
      say(fmt::format("the output '{}' is {}, but the model says {}", info.name, describe(value), describe(info)));
    table.add_row({info.name, describe(value), tensor != nullptr ? range_of(*tensor) : "-"});
    if (options.output_dir.empty()) continue;
    if (tensor == nullptr)
      fail(ErrorKind::usage, "the output '{}' is {}, which no .npy file holds", info.name, describe(value));
    write_npy(std::filesystem::path(options.output_dir) / output_file(info.name), *tensor);
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

/// An ONNX file runs as it is, whatever its graphs: a plan for each size of its inputs. Pictures, streams and batches
/// are for models that are compiled.
int infer_command(const Library& library, const InferOptions& options) {
  std::error_code code;
  const bool is_onnx = !engine::is_model_file(options.model) && std::filesystem::is_regular_file(options.model, code);
  const bool has_pictures = std::any_of(options.inputs.begin(), options.inputs.end(),
                                        [](const std::string& input) { return !input.ends_with(".npy"); });
  if (options.profiles && options.repeat == 0)
    fail(ErrorKind::usage, "--profile: it says what takes the time of several runs; add --repeat 100");
  const bool is_session = is_onnx && !has_pictures && options.streams == 1 && options.batch == 0 && !options.json &&
                          options.bind.empty() && !options.profiles && !options.inputs.empty();
  return is_session ? infer_onnx(library, options) : infer_deployed(library, options);
}

}  // namespace

void add_infer(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<InferOptions>();
  CLI::App* command = app.add_subcommand("infer", "Run a compiled model, a run or an ONNX model on inputs from files");
  command->add_option("MODEL", options->model, "File of `weft compile`, ONNX file or run directory")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--input", options->inputs,
                   "NumPy file (.npy) of an input, pictures or a folder of them; the name may be left away where the "
                   "model has one; repeatable; default: with --repeat drawn numbers")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--output-dir", options->output_dir,
                   "Folder for the outputs, OUTPUT.npy each; default: none are written")
      ->type_name("DIR");
  command->add_option("--precision", options->precision, "Of convolutions and matrix products; default: as compiled")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  command
      ->add_option("--threads", options->threads, "Of each stream; default: all cores this process may use, shared out")
      ->check(CLI::Range(1, 1024));
  command->add_option("--streams", options->streams, "Runs at a time, over the same weights; default: 1")
      ->check(CLI::Range(1, 1024));
  command->add_option("--batch", options->batch, "Rows of each run; default: all rows, shared out among the streams")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  command
      ->add_option("--bind", options->bind,
                   "ONNX, compiled for it: size of another dimension that the model leaves open; repeatable")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  command->add_option("--top", options->top, "Classes of each picture to show; default: 1")
      ->check(CLI::Range(1, 1000000));
  command->add_flag("!--no-pin", options->pins, "Let the system choose the cores that threads run on");
  command->add_option("--repeat", options->repeat, "Run so often again on each stream, and print the median time")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  command->add_flag("--profile", options->profiles, "With --repeat: print what each op and node of a run takes");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return infer_command(library, *options); }; });
}

}  // namespace weft::cli
