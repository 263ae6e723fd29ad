// weft compile: a run, a model or an ONNX file as one file to deploy.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/number_list.h"
#include "weft/cli/command.h"
#include "weft/cli/deploy/compiled_model.h"
#include "weft/cli/options.h"
#include "weft/engine/engine.h"
#include "weft/engine/model_file.h"

namespace weft::cli {

namespace {

struct CompileCommandOptions {
  ModelSource source;
  std::string file, batch, precision = "f32", mean, deviation, classes, licence;
  std::vector<std::string> bind;
  int64_t resize = 0;
  bool force = false, json = false;
};

std::vector<float> parse_reals(const std::string& text, const char* option) {
  if (text.empty()) return {};
  const auto numbers = parse_number_list<float>(text);
  if (!numbers)
    fail(ErrorKind::usage, "{} {}: write a number for each channel, such as 0.485,0.456,0.406", option, text);
  return *numbers;
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

deploy::CompileModelOptions read_options(const CompileCommandOptions& options) {
  deploy::CompileModelOptions result;
  if (!options.batch.empty()) result.batches = parse_dimensions(options.batch, "--batch");
  result.precision = *parse_dtype(options.precision);
  result.sizes = parse_bindings(options.bind);
  result.mean = parse_reals(options.mean, "--mean");
  result.deviation = parse_reals(options.deviation, "--deviation");
  if (result.mean.empty() != result.deviation.empty())
    fail(ErrorKind::usage, "--mean and --deviation belong together; give both or none");
  result.resize = options.resize;
  if (!options.classes.empty()) result.classes = read_lines(options.classes);
  result.licence = options.licence;
  return result;
}

int compile_command(const Library& library, const CompileCommandOptions& options) {
  std::error_code code;
  if (!options.force && std::filesystem::exists(options.file, code))
    fail(ErrorKind::usage, "'{}' is there already; give another name, or --force to replace it", options.file);
  const engine::DeployedModel model = compiled_model(library, options.source, read_options(options));
  // What the file would be refused for is found before it is written.
  const auto device = library.device.make({.threads = 1, .kernels = library.kernels});
  const OpRegistry ops = ops_of_files(library);
  [[maybe_unused]] const engine::Engine opened(model, ops, *device, {.precision = DType::f32});
  engine::write_model(options.file, model);
  int64_t bytes = 0;
  for (const auto& [hash, constant] : model.constants) bytes += constant->type().bytes();
  if (options.json) {
    auto batches = nlohmann::ordered_json::array();
    for (const engine::DeployedGraph& graph : model.graphs)
      if (graph.batch > 0) batches.push_back(graph.batch);
    fmt::print("{}\n", nlohmann::ordered_json{{"file", options.file},
                                              {"model", model.name},
                                              {"batches", batches},
                                              {"constants", model.constants.size()},
                                              {"constant_bytes", bytes},
                                              {"file_bytes", std::filesystem::file_size(options.file)}}
                           .dump(2));
    return 0;
  }
  std::string batches;
  for (const engine::DeployedGraph& graph : model.graphs)
    batches += graph.batch == 0 ? "any batch" : fmt::format("{}{}", batches.empty() ? "batch " : ", ", graph.batch);
  fmt::print("{}: '{}' for {}, {} constants of {}\n", options.file, model.name, batches, model.constants.size(),
             human_bytes(static_cast<double>(bytes)));
  return 0;
}

}  // namespace

void add_compile(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<CompileCommandOptions>();
  CLI::App* command = app.add_subcommand("compile", "Write a run or a model as one file for inference");
  command->add_option("MODEL", options->source.model, "Run directory, ONNX file or model (see `weft models`)")
      ->type_name("FILE")
      ->required();
  command->add_option("FILE", options->file, "The file to write, such as model.weft")->type_name("FILE")->required();
  command->add_option("--batch", options->batch, "Sizes of the batch, such as 1,16; default: any")->type_name("SIZES");
  command
      ->add_option("--precision", options->precision,
                   "Of convolutions and matrix products, where `weft infer` is not told otherwise")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  command->add_option("--bind", options->bind, "ONNX: size of another dimension that the model leaves open; repeatable")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  command->add_option("--mean", options->mean, "Of each channel, of pixels in 0 to 1; default: as the model says");
  command->add_option("--deviation", options->deviation, "Standard deviations likewise");
  command
      ->add_option("--resize", options->resize,
                   "Shorter side of pictures before their middle is cut; with --mean; default: fitted")
      ->check(CLI::Range(int64_t{1}, int64_t{65536}));
  command->add_option("--classes", options->classes, "Names of the classes, one a line; default: as the model says")
      ->type_name("FILE");
  command->add_option("--licence", options->licence, "For the metadata")->type_name("TEXT");
  command->add_option("--checkpoint", options->source.checkpoint, kCheckpointHelp)
      ->check(CLI::IsMember(checkpoint_names()));
  command->add_option("--seed", options->source.seed, "Of a model of `weft models`: of its weights");
  command->add_flag("--force", options->force, "Replace the file where it is there already");
  command->add_flag("--json", options->json, "Print JSON; its batches are empty where any one will do");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return compile_command(library, *options); }; });
}

}  // namespace weft::cli
