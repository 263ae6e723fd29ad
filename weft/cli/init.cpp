// weft init: a commented recipe for the data at hand, with what it will take.
#include <CLI/CLI.hpp>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/cli/starting_data.h"
#include "weft/program/forecast.h"
#include "weft/run/starting_recipe.h"

namespace weft::cli {

namespace {

constexpr double kMeasuredSeconds = 0.3;  // of steps, for the forecast

struct InitOptions {
  std::string data, output;
  int64_t threads = 0;
  bool force = false;
};

int init_command(const Library& library, const InitOptions& options, const std::string& program) {
  const auto require_free = [&](const std::string& path) {
    std::error_code code;
    if (!options.force && path != "-" && std::filesystem::exists(std::filesystem::symlink_status(path, code)))
      fail(ErrorKind::usage, "'{}' exists; name another file with -o, or replace it with --force", path);
  };
  if (!options.output.empty()) require_free(options.output);
  const OpenedData opened = open_for_recipe(library, options.data);
  const data::DatasetInfo& info = opened.training->info();
  const std::string path = options.output.empty() ? info.name + ".toml" : options.output;
  require_free(path);
  if (!info.note.empty()) say(info.note);

  const run::StartingRecipe recipe = run::choose_recipe(opened.spec, *opened.training, opened.test.get());
  spec::RunSpec resolved = recipe.spec;
  resolved.threads = options.threads;
  spec::resolve(resolved, library);
  program::PreparedRun run(library, resolved);
  const program::Forecast expected = program::forecast(run, kMeasuredSeconds);
  const std::string takes = fmt::format("{}{} and {} on {} threads", resolved.stop.patience > 0 ? "at most " : "",
                                        program::in_words(expected.run),
                                        human_bytes(static_cast<double>(run.planned_total_bytes)), resolved.threads);
  const std::string holds = run::describe_data(run.run_data);
  const std::string heading = fmt::format(
      "A recipe to start from, made by `weft init` for '{}': {}.\n"
      "`weft train` with this file takes {}; change what you like. What it leaves out has defaults: `spec.toml` of the "
      "run lists every key. Paths are as seen from where weft is started.",
      opened.spec, holds, takes);
  const std::string text = spec::print_recipe(recipe.spec, heading, recipe.keys, library);
  if (path == "-") {
    fmt::print("{}", text);
    return 0;
  }
  write_atomically(path, text);
  fmt::print("{}: {} on {}; {}\nnext, try:\n  {} train {}\n", path, recipe.spec.model.name, holds, takes, program,
             quoted_for_shell(path));
  return 0;
}

}  // namespace

void add_init(CLI::App& app, Action& action, const Library& library, const std::string& program) {
  auto options = std::make_shared<InitOptions>();
  CLI::App* command = app.add_subcommand("init", "Write a commented recipe for the data at hand, to start from");
  command->add_option("SPEC", options->data, data::dataset_forms(library.data) + " (`weft data --help` explains them)")
      ->type_name("SPEC")
      ->required();
  command->add_option("-o,--output", options->output, "The recipe's file, - for standard output; default: NAME.toml")
      ->type_name("FILE");
  command->add_option("--threads", options->threads, "For the forecast; default: all cores this process may use")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--force", options->force, "Replace the file where there is one");
  command->callback([options, program, &action, &library] {
    action = [options, program, &library] { return init_command(library, *options, program); };
  });
}

}  // namespace weft::cli
