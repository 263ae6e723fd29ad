#include "weft/cli/tune/tune_worker.h"

#include <cstdlib>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/host_name.h"
#include "weft/base/say.h"
#include "weft/train/interrupt.h"
#include "weft/tune/training/worker.h"

namespace weft::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTokenVariable = "WEFT_TUNE_TOKEN";

struct TuneWorkerOptions {
  std::string tuner, token_file, folder, lost_after;
  int64_t trials = 0;
  bool quiet = false;
};

double silence_of(const std::string& lost_after) {
  if (lost_after.empty()) return tune::kSilenceSeconds;
  const std::optional<double> seconds = parse_duration(lost_after);
  if (!seconds || *seconds < 2)
    fail(ErrorKind::usage, "--lost-after '{}' is no duration of 2 s or more; write 15s or 1m", lost_after);
  return *seconds;
}

std::string token_of(const TuneWorkerOptions& options) {
  if (!options.token_file.empty()) return tune::read_token(options.token_file);
  if (const char* token = std::getenv(kTokenVariable); token != nullptr && *token != '\0') return token;
  fail(ErrorKind::usage,
       "a worker proves by the study's token that it may work: give --token-file FILE, a copy of the file `token` of "
       "the "
       "study's folder, or set {}",
       kTokenVariable);
}

int worker_command(const Library& library, const TuneWorkerOptions& options) {
  const train::InterruptGuard interrupt;
  const tune::WorkerOptions worker{
      .tuner = tune::parse_address(options.tuner),
      .token = token_of(options),
      .trials = options.trials,
      .folder = options.folder.empty() ? fs::temp_directory_path() / "weft-tune-worker" : fs::path(options.folder),
      .program = fs::read_symlink("/proc/self/exe").string(),
      .silence_seconds = silence_of(options.lost_after)};
  const tune::WorkerOutcome outcome = work_for(library, worker,
                                               {.note =
                                                    [&](const std::string& line) {
                                                      if (!options.quiet) say(printable(line));
                                                    },
                                                .stop_requested = [&] { return interrupt.requested(); }});
  const std::string trained = fmt::format("{} trial{} went back", outcome.trials, outcome.trials == 1 ? "" : "s");
  if (outcome.farewell.empty()) {
    say(fmt::format("stopped; {}", trained));
    return train::kInterruptedExitCode;
  }
  if (!options.quiet) say(fmt::format("{}; {}", printable(outcome.farewell), trained));
  return 0;
}

}  // namespace

std::unique_ptr<tune::WorkerServer> serve_workers(const Library& library, const tune::Study& study,
                                                  const std::string& address, const std::string& lost_after,
                                                  const std::string& program) {
  const tune::Address at = tune::parse_address(address);
  std::unique_ptr<tune::WorkerServer> server = tune::serve_study(library, study, at, silence_of(lost_after));
  say(fmt::format("workers on other hosts: `{} tune worker {} --token-file {}`, with a copy of that file", program,
                  tune::print_address({at.host.empty() ? host_name() : at.host, server->port()}),
                  quoted_for_shell((study.folder() / "token").string())));
  return server;
}

void add_tune_worker(CLI::App& tune, Action& action, const Library& library, const std::string& program) {
  auto options = std::make_shared<TuneWorkerOptions>();
  CLI::App* command = tune.add_subcommand("worker", "Train trials for a search on another host");
  command->footer(fmt::format(
      "The other host runs `{} tune ... --serve :PORT`. The data must lie at the same paths here.", program));
  command->add_option("HOST:PORT", options->tuner, "Where the tuner listens")->type_name("ADDRESS")->required();
  command
      ->add_option(
          "--token-file", options->token_file,
          fmt::format("A copy of the file `token` of the study's folder; default: what {} holds", kTokenVariable))
      ->type_name("FILE");
  command->add_option("--trials", options->trials, "At a time; default: the cores over the study's --threads")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  command
      ->add_option("--folder", options->folder,
                   "For runs while they train; default: weft-tune-worker among temporary files")
      ->type_name("DIR");
  command->add_option("--lost-after", options->lost_after, kLostAfterHelp);
  command->add_flag("--quiet", options->quiet, "No lines about trials");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return worker_command(library, *options); }; });
}

}  // namespace weft::cli
