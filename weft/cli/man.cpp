// weft man: manual pages of this program and its commands.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/names.h"
#include "weft/cli/command.h"
#include "weft/cli/complete_words.h"
#include "weft/cli/man_page.h"

namespace weft::cli {

namespace {

struct ManOptions {
  std::string command, directory;
};

int man_command(const CLI::App& app, const Library& library, const ManOptions& options, const std::string& program) {
  std::vector<const CLI::App*> pages = visible_commands(app);
  if (!options.directory.empty()) {
    if (!options.command.empty())
      fail(ErrorKind::usage, "--directory takes the pages of all commands; leave '{}' away", options.command);
    pages.push_back(&app);
    make_directories(options.directory);
    for (const CLI::App* page : pages)
      write_atomically(std::filesystem::path(options.directory) / (name_of_page(*page, app, program) + ".1"),
                       man_page(*page, app, library, program));
    return 0;
  }
  const CLI::App* page = options.command.empty() ? &app : nullptr;
  std::vector<std::string> names;
  for (const CLI::App* one : pages) {
    names.push_back(one->get_name());
    if (one->get_name() == options.command) page = one;
  }
  if (page == nullptr)
    fail(ErrorKind::usage, "there is no command '{}'{}", options.command, suggestion(options.command, names));
  fmt::print("{}", man_page(*page, app, library, program));
  return 0;
}

}  // namespace

void add_man(CLI::App& app, Action& action, const Library& library, const std::string& program) {
  auto options = std::make_shared<ManOptions>();
  CLI::App* command = app.add_subcommand("man", "Print a manual page, or write those of all commands");
  command->add_option("COMMAND", options->command, "Of which it is; default: of the program")->type_name("COMMAND");
  command->add_option("--directory", options->directory, "Write the pages of all commands into this directory")
      ->type_name("DIR");
  command->footer("Example:\n  weft man train | man -l -");
  command->callback([options, program, &app, &action, &library] {
    action = [options, program, &app, &library] {
      return man_command(app, library, *options, name_of_program(program));
    };
  });
}

}  // namespace weft::cli
