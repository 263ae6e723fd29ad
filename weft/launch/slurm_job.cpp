#include "weft/launch/slurm_job.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/launch/child_process.h"

namespace weft::launch {

namespace {

namespace fs = std::filesystem;

constexpr int kSecondsBeforeLimit = 60;              // for a checkpoint
constexpr std::chrono::seconds kSubmissionTime{60};  // a busy controller answers late

/// As one word of a shell.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

void require_one_line(const std::string& option, const std::string& value) {
  if (value.find_first_of("\n\r") != std::string::npos)
    fail(ErrorKind::usage, "{}: a value has several lines; give each on its own", option);
}

/// In a line of sbatch, where % and spaces have a meaning.
std::string log_of(const std::string& run) { return run + ".slurm-%j.log"; }

}  // namespace

std::string SlurmOptions::first_used() const {
  if (nodes > 0) return "--nodes";
  if (cpus_per_rank > 0) return "--cpus-per-rank";
  if (!time.empty()) return "--time";
  if (!partition.empty()) return "--partition";
  if (!lines.empty()) return "--sbatch";
  if (!setup.empty()) return "--setup";
  if (!script.empty()) return "--script";
  return dry_run ? "--dry-run" : "";
}

std::string slurm_script(const SlurmTraining& training, const SlurmOptions& options, const std::string& program) {
  std::string text = "#!/bin/bash\n# Written by `weft launch --slurm`; submit it again by `sbatch`.\n";
  const auto line = [&](const std::string& option) {
    require_one_line("--sbatch", option);
    text += "#SBATCH " + option + "\n";
  };
  line("--job-name=" + quoted("weft-" + fs::path(training.run).lexically_normal().filename().string()));
  line(fmt::format("--ntasks={}", training.ranks));
  if (options.nodes > 0) line(fmt::format("--nodes={}", options.nodes));
  if (options.cpus_per_rank > 0) line(fmt::format("--cpus-per-task={}", options.cpus_per_rank));
  if (!options.partition.empty()) line("--partition=" + options.partition);
  if (!options.time.empty()) line("--time=" + options.time);
  line("--output=" + quoted(log_of(training.run)));
  line("--open-mode=append");
  // A node that fails takes its ranks with it, not the job: weft goes on with the others.
  line("--no-kill");
  line(training.restarts > 0 ? "--requeue" : "--no-requeue");
  if (!options.time.empty()) line(fmt::format("--signal=B:USR1@{}", kSecondsBeforeLimit));
  for (const std::string& own : options.lines) line(own);
  for (const std::string& command : options.setup) {
    require_one_line("--setup", command);
    text += "\n" + command;
  }
  const std::string launch = fmt::format("{} launch -n {}{} --", quoted(program), training.ranks,
                                         training.restarts > 0 ? fmt::format(" --restarts {}", training.restarts) : "");
  text += fmt::format(R"(

if [[ -e {0}/spec.toml ]]; then
  {1} {2} &
else
  {1} {3} &
fi
launch=$!
time_is_up=
trap 'kill -TERM $launch 2>/dev/null' TERM INT            # a checkpoint, then the end
trap 'time_is_up=1; kill -TERM $launch 2>/dev/null' USR1  # a checkpoint, then back into the queue
wait $launch; code=$?
while kill -0 $launch 2>/dev/null; do wait $launch; code=$?; done
if [[ $time_is_up && $code -eq 130 && ${{SLURM_RESTART_COUNT:-0}} -lt {4} ]]; then
  echo "the time limit is near: job $SLURM_JOB_ID goes back into the queue"
  scontrol requeue "$SLURM_JOB_ID" && sleep 60
fi
exit $code
)",
                      quoted(training.run), launch, quoted(training.resuming_words), quoted(training.words),
                      training.restarts);
  return text;
}

int launch_in_slurm(const SlurmTraining& training, const SlurmOptions& options) {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const std::string text = slurm_script(training, options, program);
  if (options.dry_run) {
    fmt::print("{}", text);
    return 0;
  }
  const fs::path script =
      options.script.empty() ? fs::path(training.run).lexically_normal().string() + ".sbatch" : options.script;
  if (script.has_parent_path()) make_directories(script.parent_path());
  write_atomically(script, text);
  ChildProcess sbatch({"sbatch", "--parsable", script.string()}, ChildProcess::Output::kept);
  std::string said = sbatch.wait(kSubmissionTime);
  said.erase(said.find_last_not_of(" \n") + 1);
  if (!sbatch.has_ended())
    fail(ErrorKind::io, "sbatch gave no answer within {} s; see `scontrol ping`", kSubmissionTime.count());
  if (sbatch.exit_code() != 0) fail(ErrorKind::usage, "Slurm does not take '{}': {}", script.string(), said);
  const std::string job = said.substr(0, said.find(';'));  // "12;cluster"
  std::string log = log_of(training.run);
  log.replace(log.find("%j"), 2, job);
  fmt::print(
      "job {0}, by {1}\n  squeue -j {0}                        how it stands\n  tail -F {2}\n"
      "  scancel --batch --signal=TERM {0}    ends it after a checkpoint\n",
      job, script.string(), log);
  return 0;
}

}  // namespace weft::launch
