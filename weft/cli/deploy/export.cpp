// weft export: the weights of a run as a safetensors file with PyTorch's names, or a run or model as an ONNX file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "weft/base/error.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/deploy/export_onnx.h"
#include "weft/graph/expression.h"
#include "weft/onnx/export/export_graph.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/file/model_writer.h"
#include "weft/run/loaded_run.h"
#include "weft/run/weights_file.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli {

namespace {

struct ExportOptions {
  std::string run, file;
  std::optional<std::string> checkpoint;  // nullopt: "auto"
  bool force = false;
  deploy::OnnxExportOptions onnx;
  std::vector<std::string> bind;
  std::optional<uint64_t> seed;  // nullopt: 0
};

bool is_model(const Library& library, const std::string& name) {
  return std::any_of(library.models.begin(), library.models.end(),
                     [&](const models::ModelEntry& entry) { return entry.name == name; });
}

/// A flag that was given would change nothing.
void refuse(bool is_given, const char* flag, const std::string& why) {
  if (is_given) fail(ErrorKind::usage, "{}: {}; leave it away", flag, why);
}

void refuse_onnx_flags(const ExportOptions& options) {
  const std::string why = fmt::format("'{}' holds weights alone, and this is for ONNX files", options.file);
  refuse(options.onnx.opset > 0, "--opset", why);
  refuse(options.onnx.batch > 0, "--batch", why);
  refuse(!options.bind.empty(), "--bind", why);
  refuse(options.onnx.preprocesses, "--preprocess", why);
  refuse(!options.onnx.licence.empty(), "--licence", why);
  refuse(options.seed.has_value(), "--seed", why);
}

int export_onnx(const Library& library, const ExportOptions& options) {
  std::error_code code;
  const bool is_run = std::filesystem::is_directory(options.run, code);
  const bool is_drawn = !is_run && is_model(library, options.run);
  const bool is_file = !is_run && !is_drawn && std::filesystem::path(options.run).extension() == ".onnx";
  refuse(!is_file && !options.bind.empty(), "--bind",
         fmt::format("it binds dimensions of ONNX files, and '{}' is none", options.run));
  refuse((is_drawn || is_file) && options.checkpoint, "--checkpoint",
         fmt::format("it is of a run, and '{}' is none", options.run));
  refuse(!is_drawn && options.seed, "--seed",
         fmt::format("it draws the weights of a model of `weft models`, and '{}' has its own", options.run));
  onnx::Model model;
  std::string what;
  if (is_drawn) {
    const uint64_t seed = options.seed.value_or(0);
    model = deploy::export_model(library, options.run, seed, options.onnx);
    what = fmt::format("'{}' with weights drawn from seed {}", options.run, seed);
  } else if (is_file) {
    model = deploy::export_file(library, onnx::read_model(options.run), parse_bindings(options.bind), options.onnx);
    what = fmt::format("'{}'", options.run);
  } else {
    const run::LoadedRun run = run::load_run(options.run, options.checkpoint.value_or("auto"), 0, library);
    deploy::OnnxExportOptions own = options.onnx;
    own.source = std::filesystem::path(options.run).lexically_normal().string();
    model = deploy::export_run(library, run, own);
    what = fmt::format("'{}' from {}", run.spec.model.name, run.checkpoint);
  }
  onnx::write_model(options.file, model);
  fmt::print("{}: an ONNX file (operators of version {}) with {} nodes and {} tensors of {}\n", options.file,
             model.opset(), model.graph.nodes.size(), model.graph.initializers.size(), what);
  return 0;
}

int export_command(const Library& library, const ExportOptions& options) {
  const std::filesystem::path path = options.file;
  if (path.extension() != ".safetensors" && path.extension() != ".onnx")
    fail(ErrorKind::usage, "'{}': weft export writes safetensors and ONNX files; name it '{}' or '{}'", options.file,
         std::filesystem::path(path).replace_extension(".safetensors").string(),
         std::filesystem::path(path).replace_extension(".onnx").string());
  std::error_code code;
  if (!options.force && std::filesystem::exists(path, code))
    fail(ErrorKind::usage, "'{}' is there already; give another name, or --force to replace it", options.file);
  if (path.extension() == ".onnx") return export_onnx(library, options);
  refuse_onnx_flags(options);
  const run::LoadedRun run = run::load_run(options.run, options.checkpoint.value_or("auto"), 0, library);
  SafetensorsFile file;
  for (const std::string& name : run.state.names()) file.tensors.emplace(name, run.state.plain(name));
  file.metadata = run::weights_metadata(run.spec, run.data);
  write_safetensors(path, file);
  fmt::print("{}: a safetensors file with {} tensors of '{}' from {}, under PyTorch's names\n", options.file,
             file.tensors.size(), run.spec.model.name, run.checkpoint);
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write a run for other programs: its weights, or all of it as ONNX");
  command->add_option("RUN", options->run, "Run directory; for ONNX also a model (see `weft models`), or an ONNX file")
      ->type_name("RUN|MODEL|FILE.onnx")
      ->required();
  command->add_option("FILE", options->file, "The file to write, FILE.safetensors or FILE.onnx")
      ->type_name("FILE")
      ->required();
  command->add_option("--checkpoint", options->checkpoint, kCheckpointHelp)->check(CLI::IsMember(checkpoint_names()));
  command
      ->add_option("--opset", options->onnx.opset,
                   fmt::format("ONNX: version of its operators; default: {}", onnx::kUsualOpset))
      ->check(CLI::Range(onnx::kOldestOpset, onnx::kNewestOpset));
  command->add_option("--batch", options->onnx.batch, "ONNX: of this size alone; default: of any")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  command
      ->add_option("--bind", options->bind,
                   "ONNX of an ONNX file: size of another dimension that the model leaves open; repeatable")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  command->add_flag("--preprocess", options->onnx.preprocesses,
                    "ONNX: read pixels as bytes [N,C,H,W], and resize and normalise them within");
  command->add_option("--licence", options->onnx.licence, "ONNX: for its metadata")->type_name("TEXT");
  command->add_option("--seed", options->seed, "ONNX of a model: of its weights");
  command->add_flag("--force", options->force, "Replace the file where it is there already");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return export_command(library, *options); }; });
}

}  // namespace weft::cli
