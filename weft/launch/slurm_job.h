// weft launch --slurm: the batch script of a training, and its submission.
#pragma once

#include <string>
#include <vector>

namespace weft::launch {

/// Of sbatch; empty or 0: not given.
struct SlurmOptions {
  int nodes = 0, cpus_per_rank = 0;
  std::string time, partition, script;
  std::vector<std::string> lines;  // further options of sbatch
  std::vector<std::string> setup;  // shell commands before the start
  bool dry_run = false;

  bool is_used() const { return !first_used().empty(); }
  /// The name of an option that was given.
  std::string first_used() const;
};

/// What the job trains.
struct SlurmTraining {
  int ranks = 1, restarts = 0;
  std::string run;                                 // directory
  std::vector<std::string> words, resuming_words;  // of `weft`: to begin, to go on
};

/// The script. In the job `weft launch` starts the ranks on its nodes, and starts them again where one was lost. The
/// script goes on with a run that is there, so that the job can be put back into the queue.
/// Error(usage) where an option is none that a script can hold.
std::string slurm_script(const SlurmTraining& training, const SlurmOptions& options, const std::string& program);

/// Writes the script and hands it to sbatch, then says how to follow the job; or only prints it.
int launch_in_slurm(const SlurmTraining& training, const SlurmOptions& options);

}  // namespace weft::launch
