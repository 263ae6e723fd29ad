// weft launch: the ranks of a training through mpirun; where one is lost, once more with those that remain. With
// --slurm as a batch job that does the same.
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/parse_number.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/launch/ask_hosts.h"
#include "weft/launch/copies_left.h"
#include "weft/launch/launch_hosts.h"
#include "weft/launch/launch_job.h"
#include "weft/launch/launched_ranks.h"
#include "weft/launch/rank_room.h"
#include "weft/launch/slurm_job.h"
#include "weft/run/run_directory.h"
#include "weft/spec/course.h"
#include "weft/spec/recipe.h"
#include "weft/train/interrupt.h"

namespace weft::cli {

namespace {

struct LaunchOptions {
  int ranks = 1, restarts = 0;
  std::string hosts;
  std::vector<std::string> words;  // of `weft train`
  bool slurm = false;
  launch::SlurmOptions batch = {};
};

constexpr const char* kCopies = "--copies";

/// The value of an option among words, as "--run DIR" or "--run=DIR"; empty where it is not given.
std::string value_of(const std::vector<std::string>& words, const std::string& option) {
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] == option && at + 1 < words.size()) return words[at + 1];
    if (words[at].starts_with(option + "=")) return words[at].substr(option.size() + 1);
  }
  return "";
}

std::string run_of(const std::vector<std::string>& words) {
  const std::string run = value_of(words, "--run");
  return run.empty() ? value_of(words, "--resume") : run;
}

/// What goes on with the run in a directory: what --resume takes beside it stays.
std::vector<std::string> resuming_words(const std::vector<std::string>& words, const std::string& run) {
  std::vector<std::string> resuming = {"train", "--resume", run};
  for (const char* flag : {"--quiet", "--json", "--tensorboard", kCopies})
    if (std::find(words.begin(), words.end(), flag) != words.end()) resuming.emplace_back(flag);
  if (const std::string threads = value_of(words, "--threads"); !threads.empty())
    resuming.insert(resuming.end(), {"--threads", threads});
  return resuming;
}

/// Of a run that has been begun.
launch::RankNeeds needs_of(const spec::RunSpec& spec) {
  launch::RankNeeds needs{.as_many_on_each = spec.virtual_ranks > 0,
                          .tensor = static_cast<int>(spec.mesh.tensor),
                          .pipeline = static_cast<int>(spec.mesh.pipeline),
                          .data = static_cast<int>(spec.mesh.data)};
  const int64_t micro_batches = spec.mesh.pipeline > 1 ? spec.pipeline.micro_batches : 1;
  if (spec.balance.grains == 0)  // else any number of ranks divides it
    for (const spec::Stage& stage : spec::stages_of(spec)) needs.divided.push_back(stage.batch / micro_batches);
  if (spec.virtual_ranks > 0) needs.divided.push_back(spec.virtual_ranks);
  if (const auto experts = spec.model.options.find("experts");
      spec.shard.experts == "data" && experts != spec.model.options.end())
    needs.divided.push_back(parse_number<int64_t>(experts->second).value_or(1));
  return needs;
}

/// The mesh of the ranks that are left, as options of `weft train`, where it is another.
std::vector<std::string> words_of_mesh(const launch::RankNeeds& before, const launch::PlacedRanks& placed) {
  std::vector<std::string> words;
  const auto set = [&](const char* axis, int ranks_before, int ranks) {
    if (ranks != ranks_before) words.insert(words.end(), {"--set", fmt::format("mesh.{}={}", axis, ranks)});
  };
  if (before.data != 0) set("data", before.data, placed.count / (placed.tensor * placed.pipeline));
  set("tensor", before.tensor, placed.tensor);
  set("pipeline", before.pipeline, placed.pipeline);
  return words;
}

/// Of one that has not come so far: as its options and its recipe say.
launch::RankNeeds needs_of(const Library& library, const std::vector<std::string>& words) {
  if (const std::optional<spec::RunSpec> spec = spec_of_words(library, words)) return needs_of(*spec);
  const int virtual_ranks = std::atoi(value_of(words, "--virtual-ranks").c_str());
  if (virtual_ranks < 1) return {};
  return {.divided = {virtual_ranks}, .as_many_on_each = true};
}

/// What its user has said already stays.
void prepare_environment() {
  const auto set = [](const char* name, const char* value) { setenv(name, value, /*overwrite=*/0); };
  if (geteuid() == 0) {  // Open MPI wants to be told twice
    set("OMPI_ALLOW_RUN_AS_ROOT", "1");
    set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  // mpirun and its daemons miss each other after six seconds in place of eight minutes, and end what they have
  // started.
  set("OMPI_MCA_oob_tcp_keepalive_time", "2");
  set("OMPI_MCA_oob_tcp_keepalive_intvl", "1");
  set("OMPI_MCA_oob_tcp_keepalive_probes", "4");
}

std::filesystem::path absolute_path(const std::string& run) {
  return std::filesystem::absolute(run).lexically_normal();
}

/// The hosts that do not see where this one would keep the run directory.
std::vector<std::string> hosts_with_own_disks(const std::vector<launch::HostSlots>& hosts, const std::string& run) {
  if (hosts.size() < 2) return {};
  const std::filesystem::path folder = absolute_path(run).parent_path();
  make_directories(folder);
  const std::filesystem::path probe = folder / fmt::format(".weft-probe-{}", getpid());
  write_atomically(probe, "weft launch asks its hosts whether they see this file\n");
  const std::vector<std::string> missing = launch::hosts_that_miss(hosts, probe);
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  return missing;
}

/// A restart goes on from the checkpoint, wherever the ranks are then. Hosts that do not share the run directory keep
/// copies of it.
void add_copies(std::vector<std::string>& words, const std::vector<launch::HostSlots>& hosts, const std::string& run) {
  if (std::find(words.begin(), words.end(), kCopies) != words.end()) return;
  const std::vector<std::string> own = hosts_with_own_disks(hosts, run);
  if (own.empty()) return;
  words.emplace_back(kCopies);
  say(fmt::format(
      "host{} '{}' {} not see the folder of '{}' on this host: each host with ranks keeps a full copy of the "
      "run directory, under the same path",
      own.size() == 1 ? "" : "s", fmt::join(own, "', '"), own.size() == 1 ? "does" : "do", run));
}

/// What a start takes after one that has lost a rank.
struct NextStart {
  launch::RankNeeds needs;
  std::vector<std::string> words;
  std::vector<std::string> holders = {};  // hosts of which one must have ranks; none: any may
  std::string refusal = {};               // why there is none
};

/// Of a run directory that all hosts share.
NextStart next_start(const Library& library, const std::vector<std::string>& words, const std::string& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::path(run) / "spec.toml", ignored))
    return {.needs = needs_of(library, words), .words = words};
  return {.needs = needs_of(run::RunDirectory::open(run).read_spec(library)), .words = resuming_words(words, run)};
}

/// Of copies on the hosts that are left, which it puts in their order. `before` had ranks.
NextStart next_start_of_copies(const Library& library, const std::vector<std::string>& words, const std::string& run,
                               std::vector<launch::HostSlots>& hosts, const std::vector<launch::HostSlots>& before) {
  using Next = launch::CopiesLeft::Next;
  launch::CopiesLeft left = launch::judge_copies(hosts, launch::find_run(hosts, absolute_path(run)), before);
  const std::string by_hand = fmt::format("`weft launch ... -- train --resume {} {}`", quoted_for_shell(run), kCopies);
  if (left.next == Next::no_trace)
    return {
        .needs = {},
        .words = {},
        .refusal = fmt::format("no host that is left had ranks of '{}', so none is sure to have its newest checkpoint; "
                               "nothing is begun anew: bring a host back that had ranks, or go on with what others "
                               "have, by {}",
                               run, by_hand)};
  if (left.next == Next::two_runs)
    return {
        .needs = {},
        .words = {},
        .refusal = fmt::format("the hosts that had ranks hold different runs under '{}'; move those away that are not "
                               "to go on, then {}",
                               run, by_hand)};
  for (const std::string& line : left.left_out) say(line);
  hosts = std::move(left.hosts);
  if (left.next == Next::begin) return {.needs = needs_of(library, words), .words = words};
  say(fmt::format("the run goes on from {} on host{} '{}'",
                  left.newest < 0 ? "its beginning, as it stands" : fmt::format("step {}, as it stands", left.newest),
                  left.holders.size() == 1 ? "" : "s", fmt::join(left.holders, "', '")));
  spec::RunSpec spec;
  spec::apply_recipe(spec, left.recipe, fmt::format("spec.toml on host '{}'", left.holders.front()), library);
  spec::resolve(spec, library);
  return {.needs = needs_of(spec), .words = resuming_words(words, run), .holders = left.holders};
}

/// A Slurm job that went back into the queue starts on hosts that it did not choose: a run that any of them has goes
/// on.
void resume_requeued(std::vector<std::string>& words, const std::vector<launch::HostSlots>& hosts,
                     const std::string& run) {
  const char* const restarts = std::getenv("SLURM_RESTART_COUNT");
  if (restarts == nullptr || std::atoi(restarts) == 0 || !value_of(words, "--resume").empty()) return;
  for (const launch::HeldRun& held : launch::find_run(hosts, absolute_path(run))) {
    if (!held.has_answered)
      fail(ErrorKind::io,
           "host '{}' does not say whether it has the run '{}' that this job began; nothing is begun anew", held.host,
           run);
    if (held.recipe.empty()) continue;
    words = resuming_words(words, run);
    return;
  }
}

int launch_here(const Library& library, const LaunchOptions& options, const std::string& program) {
  const std::string run = run_of(options.words);
  prepare_environment();
  const train::InterruptGuard interrupt;
  launch::RankRoom room = launch::find_room(options.hosts, options.ranks);
  std::vector<std::string> words = options.words;
  if (options.restarts > 0) add_copies(words, room.hosts, run);
  if (!run.empty()) resume_requeued(words, room.hosts, run);
  const std::vector<std::string> first_words = words;
  const bool has_copies = std::find(words.begin(), words.end(), kCopies) != words.end();
  launch::PlacedRanks placed{options.ranks, launch::place_ranks(room.hosts, options.ranks)};
  for (int start = 0;; ++start) {
    launch::LaunchedJob job{.ranks = placed.count, .hosts = placed.hosts, .words = words};
    job.words.insert(job.words.begin(), program);
    const launch::JobEnd end = launch::run_job(job, [&] { return interrupt.requested(); });
    if (interrupt.requested()) return train::kInterruptedExitCode;
    if (!end.unstarted.empty())
      fail(ErrorKind::io, "{}; start fewer ranks there, or raise the limits of processes and files (`ulimit -u -n`)",
           end.unstarted);
    // Somebody told a rank to stop, which told the others: all have saved.
    if (end.code == train::kInterruptedExitCode && !end.lost && !end.launcher_killed) return end.code;
    if (!launch::lost_a_rank(end)) return end.code;
    if (start == options.restarts) {
      say(describe(end) +
          (options.restarts > 0 ? fmt::format("; that was start {} of at most {}", start + 1, start + 1) : ""));
      return end.code;
    }
    room.take_away(end, job.hosts);
    const NextStart next = has_copies ? next_start_of_copies(library, first_words, run, room.hosts, job.hosts)
                                      : next_start(library, first_words, run);
    if (!next.refusal.empty()) {
      say(describe(end) + "; " + next.refusal);
      return end.code;
    }
    placed = launch::usable_ranks(room.hosts, std::min(placed.count, room.slots), next.needs, next.holders);
    if (placed.count == 0) {
      say(describe(end) + "; nothing is left to go on with");
      return end.code;
    }
    words = next.words;
    const std::vector<std::string> mesh = words_of_mesh(next.needs, placed);
    words.insert(words.end(), mesh.begin(), mesh.end());
    say(fmt::format("{}; start {} of at most {}, on {} {}{}: `weft {}`", describe(end), start + 2, options.restarts + 1,
                    placed.count, placed.count == 1 ? "rank" : "ranks",
                    placed.hosts.empty() ? "" : " of " + launch::print_hosts(placed.hosts), fmt::join(words, " ")));
  }
}

int launch_command(const Library& library, const LaunchOptions& options, const std::string& program) {
  if (options.words.empty() || options.words.front() != "train")
    fail(
        ErrorKind::usage,
        "weft launch starts `weft train`; write `weft launch -n {0} -- train ...`, and other commands on several ranks "
        "as `mpirun -n {0} weft {1}`",
        options.ranks, options.words.empty() ? "explain RUN" : fmt::format("{}", fmt::join(options.words, " ")));
  const std::string run = run_of(options.words);
  if ((options.restarts > 0 || options.slurm) && run.empty())
    fail(ErrorKind::usage, "{} wants to know the run directory; add --run DIR to the options of train",
         options.slurm ? "--slurm" : "--restarts");
  if (!options.slurm) {
    if (options.batch.is_used())
      fail(ErrorKind::usage, "{} belongs to a batch job; add --slurm", options.batch.first_used());
    return launch_here(library, options, program);
  }
  if (!options.hosts.empty()) fail(ErrorKind::usage, "Slurm chooses the hosts; leave --hosts away, or --slurm");
  return launch::launch_in_slurm({.ranks = options.ranks,
                                  .restarts = options.restarts,
                                  .run = run,
                                  .words = options.words,
                                  .resuming_words = resuming_words(options.words, run)},
                                 options.batch);
}

}  // namespace

void add_launch(CLI::App& app, Action& action, const Library& library, const std::string& program) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command = app.add_subcommand("launch", "Train on several ranks, and go on where one of them is lost");
  command->add_option("-n,--ranks", options->ranks, "Processes that train as one")
      ->required()
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--restarts", options->restarts,
                   "How often to go on from the newest checkpoint, with the ranks and hosts that remain, when one was "
                   "lost; default 0")
      ->check(CLI::Range(0, 1'000'000));
  command->add_option("--hosts", options->hosts,
                      "Such as node1:2,node2:2; those that no rank needs are spare; default: this host, or those of "
                      "the Slurm job");
  command->add_flag("--slurm", options->slurm, "Write a batch script and submit it");
  launch::SlurmOptions& batch = options->batch;
  command->add_option("--nodes", batch.nodes, "With --slurm: hosts that share the ranks; default: as Slurm has them")
      ->check(CLI::PositiveNumber);
  command->add_option("--cpus-per-rank", batch.cpus_per_rank, "With --slurm; default: as Slurm has it")
      ->check(CLI::PositiveNumber);
  command->add_option("--time", batch.time,
                      "With --slurm: limit, such as 12:00:00; a minute before it a checkpoint is made, and the job "
                      "goes back into the queue as long as --restarts allows");
  command->add_option("--partition", batch.partition, "With --slurm");
  command
      ->add_option("--sbatch", batch.lines,
                   "With --slurm: a further option of sbatch, such as --account=me; repeatable")
      ->allow_extra_args(false);
  command
      ->add_option("--setup", batch.setup,
                   "With --slurm: a shell command before the start, such as 'module load openmpi'; repeatable")
      ->allow_extra_args(false);
  command->add_option("--script", batch.script, "With --slurm: where the script is written; default: RUN.sbatch")
      ->type_name("FILE");
  command->add_flag("--dry-run", batch.dry_run, "With --slurm: print the script; write and submit nothing");
  command->add_option("COMMAND", options->words, "After --: train with its options")->type_name("WORD")->required();
  command->callback([options, program, &action, &library] {
    action = [options, program, &library] { return launch_command(library, *options, program); };
  });
}

}  // namespace weft::cli
