// The command line: sub-commands, messages on stderr as `weft: <message>`, exit codes.
#include "weft/cli/run.h"

#include <malloc.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/error_of.h"
#include "weft/base/say.h"
#include "weft/base/version.h"
#include "weft/cli/command.h"
#include "weft/cli/complete_words.h"
#include "weft/cli/mistyped.h"
#include "weft/launch/launched_ranks.h"

namespace weft::cli {

namespace {

int report(const std::string& message, int code) {
  std::fflush(stdout);
  say(message);
  return code;
}

int report_usage(const CLI::App& app, const CLI::ParseError& error, const Library& library) {
  if (!launch::speaks_for_launched_ranks()) return 2;  // all ranks have the same words
  return report(fmt::format("{}; see `{} --help`", explain_usage(app, error, library), words_of(command_of(app))), 2);
}

}  // namespace

int run(int argc, char** argv, const Library& library) {
  // Tensors get pages of their own, which go back to the system when they die: a fixed threshold instead of glibc's
  // growing one, so that converting the layout of a state leaves no holes and the plan's prediction of memory holds.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit becomes an error message like that of a full disk
  const std::string program = argc > 0 ? argv[0] : "weft";
  CLI::App app("weft trains deep networks on CPU servers.", "weft");
  app.set_version_flag("--version", "weft " + std::string(version()));
  app.require_subcommand(0, 1);  // behind a command, the name of one is a word like others: `weft man train`
  Action action;
  add_train(app, action, library, program);
  add_launch(app, action, library, program);
  add_init(app, action, library, program);
  add_data(app, action, library);
  add_pack(app, action, library, program);
  add_tune(app, action, library, program);
  add_eval(app, action, library);
  add_predict(app, action, library);
  add_import(app, action, library);
  add_compile(app, action, library);
  add_infer(app, action, library);
  add_export(app, action, library);
  add_quantize(app, action, library);
  add_explain(app, action, library);
  add_plot(app, action, library);
  add_compare(app, action, library);
  add_plan(app, action, library);
  add_rates(app, action, library);
  add_simulate(app, action, library);
  add_bench(app, action, library);
  add_cluster(app, action);
  add_graph(app, action, library);
  add_models(app, action, library);
  add_recipes(app, action, library);
  add_keys(app, action, library);
  add_ops(app, action, library);
  add_completion(app, action, program);
  add_man(app, action, library, program);
  add_check_steps(app, action, library);
  // The words may be anything: they are not parsed.
  if (argc > 1 && std::string(argv[1]) == kCompleteWords)
    return print_candidates(app, library, std::vector<std::string>(argv + 2, argv + argc));
  if (argc < 2) return report("no command given; see `weft --help`", 2);
  try {
    std::vector<std::string> words = with_help_as_option({argv, argv + argc});
    words.erase(words.begin());
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(words);
    if (!action) return report("no command given; see `weft --help`", 2);
    const int code = action();
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
    return code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return report_usage(app, error, library);
  } catch (...) {
    const Error error = error_of(std::current_exception());
    return report(error.what(), error.exit_code());
  }
}

}  // namespace weft::cli
