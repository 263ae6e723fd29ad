// weft export: the weights of a run as one safetensors file with PyTorch's names.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "weft/base/error.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/run/loaded_run.h"
#include "weft/run/weights_file.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli {

namespace {

struct ExportOptions {
  std::string run, file, checkpoint = "auto";
  bool force = false;
};

int export_command(const Library& library, const ExportOptions& options) {
  const std::filesystem::path path = options.file;
  if (path.extension() != ".safetensors")
    fail(ErrorKind::usage, "'{}': weft export writes safetensors files; name it '{}'", options.file,
         std::filesystem::path(path).replace_extension(".safetensors").string());
  std::error_code code;
  if (!options.force && std::filesystem::exists(path, code))
    fail(ErrorKind::usage, "'{}' is there already; give another name, or --force to replace it", options.file);
  const run::LoadedRun run = run::load_run(options.run, options.checkpoint, 0, library);
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
  CLI::App* command = app.add_subcommand("export", "Write a run's weights for other programs");
  command->add_option("RUN", options->run, "Run directory")->type_name("RUN")->required();
  command->add_option("FILE", options->file, "The safetensors file to write")->type_name("FILE")->required();
  command->add_option("--checkpoint", options->checkpoint, kCheckpointHelp)->check(CLI::IsMember(checkpoint_names()));
  command->add_flag("--force", options->force, "Replace the file where it is there already");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return export_command(library, *options); }; });
}

}  // namespace weft::cli
