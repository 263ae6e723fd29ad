// weft launch: the ranks of a training through mpirun; where one is lost, once more with those that remain.
#include <fmt/ranges.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "weft/base/error.h"
#include "weft/cli/child_process.h"
#include "weft/cli/command.h"
#include "weft/cli/launched_ranks.h"
#include "weft/cli/options.h"
#include "weft/train/course.h"
#include "weft/train/interrupt.h"
#include "weft/train/run_directory.h"

namespace weft::cli {

namespace {

struct LaunchOptions {
  int ranks = 1, restarts = 0;
  std::string hosts;
  std::vector<std::string> words;  // of `weft train`
};

/// The value of an option among words, as "--run DIR" or "--run=DIR"; empty where it is not given.
std::string value_of(const std::vector<std::string>& words, const std::string& option) {
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] == option && at + 1 < words.size()) return words[at + 1];
    if (words[at].starts_with(option + "=")) return words[at].substr(option.size() + 1);
  }
  return "";
}

/// What goes on with the run in a directory: what --resume takes beside it stays.
std::vector<std::string> resuming_words(const std::vector<std::string>& words, const std::string& run) {
  std::vector<std::string> resuming = {"train", "--resume", run};
  for (const char* flag : {"--quiet", "--json", "--tensorboard"})
    if (std::find(words.begin(), words.end(), flag) != words.end()) resuming.emplace_back(flag);
  if (const std::string threads = value_of(words, "--threads"); !threads.empty())
    resuming.insert(resuming.end(), {"--threads", threads});
  return resuming;
}

/// As many as remain of so many without one, and as divide the batches of the run.
int remaining_ranks(int ranks, const train::RunSpec& spec) {
  const std::vector<train::Stage> stages = train::stages_of(spec);
  const auto divides = [&](int count) {
    return std::all_of(stages.begin(), stages.end(),
                       [&](const train::Stage& stage) { return stage.batch % count == 0; });
  };
  do --ranks;
  while (!divides(ranks));
  return ranks;
}

std::vector<std::string> mpirun_words(const LaunchOptions& options, int ranks, const std::string& program,
                                      const std::vector<std::string>& words) {
  std::vector<std::string> all = {"mpirun", "--quiet", "--oversubscribe", "-n", std::to_string(ranks)};
  if (!options.hosts.empty()) all.insert(all.end(), {"--host", options.hosts});
  all.push_back(program);
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

/// Tells when the ranks of this host have ended while mpirun goes on waiting, as for a host that cannot be reached.
class DesertedLauncher {
 public:
  explicit DesertedLauncher(std::string program) : program_(std::move(program)) {}

  bool is_found(const ChildProcess& mpirun) {
    const auto now = std::chrono::steady_clock::now();
    const std::vector<pid_t> children = mpirun.children();
    const bool has_ranks = std::any_of(children.begin(), children.end(), [&](pid_t child) { return is_rank(child); });
    had_ranks_ = had_ranks_ || has_ranks;
    if (has_ranks || !had_ranks_) since_ = now;
    return now - since_ > kPatience;
  }

 private:
  static constexpr std::chrono::seconds kPatience{5};  // mpirun itself ends what is left of a job within one or two

  bool is_rank(pid_t process) const {
    std::error_code code;
    return std::filesystem::equivalent(fmt::format("/proc/{}/exe", process), program_, code);
  }

  const std::string program_;
  bool had_ranks_ = false;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

/// Waits for the ranks. What asks this program to stop is handed to one of them, which tells the others: they end after
/// the same step with a checkpoint. A second time ends all at once.
int wait_for(ChildProcess& mpirun, const train::InterruptGuard& interrupt) {
  bool told = false;
  DesertedLauncher deserted("/proc/self/exe");
  for (int looks = 0; !mpirun.has_ended(); ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (looks % 5 == 4 && deserted.is_found(mpirun)) mpirun.send(SIGKILL);
    if (told || !interrupt.requested()) continue;
    told = true;
    const std::vector<pid_t> ranks = mpirun.children();
    if (ranks.empty())
      mpirun.send(SIGTERM);
    else
      kill(ranks.front(), SIGTERM);
  }
  return mpirun.exit_code();
}

/// Whether a rank was killed, or found by the others to be gone; not where the training itself has failed.
bool lost_a_rank(int code) { return code == kLostRankExitCode || code > 128; }

int launch_command(const LaunchOptions& options, const std::string& program) {
  std::vector<std::string> words = options.words;
  if (words.empty() || words.front() != "train")
    fail(ErrorKind::usage, "weft launch starts `weft train`; write `weft launch -n {} -- train ...`", options.ranks);
  std::string run = value_of(words, "--run");
  if (run.empty()) run = value_of(words, "--resume");
  if (options.restarts > 0 && run.empty())
    fail(ErrorKind::usage, "--restarts wants to know the run directory; add --run DIR to the options of train");
  if (geteuid() == 0) {  // Open MPI wants to be told twice
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  }
  const train::InterruptGuard interrupt;
  int ranks = options.ranks;
  for (int start = 0;; ++start) {
    ChildProcess mpirun(mpirun_words(options, ranks, program, words));
    const int code = wait_for(mpirun, interrupt);
    if (interrupt.requested()) return train::kInterruptedExitCode;
    if (!lost_a_rank(code) || start == options.restarts || ranks == 1) return code;
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::path(run) / "spec.toml", ignored)) {
      ranks = remaining_ranks(ranks, train::RunDirectory::open(run).read_spec());
      words = resuming_words(options.words, run);
    }
    say(fmt::format("a rank was lost (exit code {}); start {} of at most {}, on {} {}: `weft {}`", code, start + 2,
                    options.restarts + 1, ranks, ranks == 1 ? "rank" : "ranks", fmt::join(words, " ")));
  }
}

}  // namespace

void add_launch(CLI::App& app, Action& action, const std::string& program) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command = app.add_subcommand("launch", "Train on several ranks, and go on where one of them is lost");
  command->add_option("-n,--ranks", options->ranks, "Processes that train as one")
      ->required()
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--restarts", options->restarts,
                   "How often to go on from the newest checkpoint, with the ranks that remain, when one was lost; "
                   "default 0")
      ->check(CLI::Range(0, 1'000'000));
  command->add_option("--hosts", options->hosts, "Such as node1:2,node2:2, as mpirun has it; default: this host");
  command->add_option("COMMAND", options->words, "After --: train with its options")->required();
  command->callback(
      [options, program, &action] { action = [options, program] { return launch_command(*options, program); }; });
}

}  // namespace weft::cli
