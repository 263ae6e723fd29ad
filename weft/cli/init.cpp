// weft init: a commented recipe for the data at hand, with what it will take.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/open_dataset.h"
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

struct OpenedData {
  std::string spec;
  std::unique_ptr<data::Dataset> training, test;
};

OpenedData open_both(const Library& library, const std::string& spec) {
  OpenedData opened{spec, data::open_dataset(library.data, spec, data::Split::train), nullptr};
  if (data::has_test_split(library.data, spec))
    opened.test = data::open_dataset(library.data, spec, data::Split::test, opened.training->info().encoding);
  return opened;
}

/// A table of which an error says that its labels are better predicted as numbers is opened once more for its values.
OpenedData open_data(const Library& library, const std::string& text) {
  try {
    return open_both(library, text);
  } catch (const Error& error) {
    data::DataSpec spec = data::parse_data_spec(text);
    const bool says_task = std::any_of(spec.options.begin(), spec.options.end(),
                                       [](const auto& option) { return option.first == "task"; });
    const std::string message = error.what();
    const size_t advice = message.find("; to predict the number, add task=regression");
    if (error.kind() != ErrorKind::data || spec.kind != "csv" || says_task || advice == message.npos) throw;
    spec.options.emplace_back("task", "regression");
    OpenedData opened = open_both(library, data::print_data_spec(spec));
    say(message.substr(0, advice) + ": the recipe predicts the number, by task=regression");
    return opened;
  }
}

int init_command(const Library& library, const InitOptions& options, const std::string& program) {
  const auto require_free = [&](const std::string& path) {
    std::error_code code;
    if (!options.force && path != "-" && std::filesystem::exists(std::filesystem::symlink_status(path, code)))
      fail(ErrorKind::usage, "'{}' exists; name another file with -o, or replace it with --force", path);
  };
  if (!options.output.empty()) require_free(options.output);
  const OpenedData opened = open_data(library, options.data);
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
