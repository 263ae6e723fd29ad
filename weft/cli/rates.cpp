// weft rates: what this machine's processor and memory can do, as a file for `cost_profile`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "weft/base/cores.h"
#include "weft/base/files.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/program/cost_profile.h"
#include "weft/spec/run_spec.h"

namespace weft::cli {

namespace {

struct RatesOptions {
  std::string output;
  int64_t threads = 0;
};

int rates_command(const Library& library, const RatesOptions& options) {
  const int64_t threads = options.threads > 0 ? options.threads : available_cores();
  const std::string text = print_device_profile(program::measure_profile(library, static_cast<int>(threads)));
  if (!options.output.empty()) write_atomically(options.output, text);
  fmt::print("{}", text);
  if (!options.output.empty()) say(fmt::format("written to '{}'", options.output));
  return 0;
}

}  // namespace

void add_rates(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<RatesOptions>();
  CLI::App* command =
      app.add_subcommand("rates", "Measure this machine's rates, as a file that cost_profile = FILE reads");
  command->add_option("--output", options->output, "The file to write; default: none")->type_name("FILE");
  command->add_option("--threads", options->threads, "Default: all cores this process may use")
      ->check(CLI::Range(1, 1024));
  command->callback(
      [options, &action, &library] { action = [options, &library] { return rates_command(library, *options); }; });
}

}  // namespace weft::cli
