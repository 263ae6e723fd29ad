#include "weft/launch/job_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "weft/launch/process_table.h"

namespace weft::launch {

namespace {

// Open MPI's mpirun; PMIx; PMI 1 and 2.
constexpr std::array kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

template <size_t N>
int first_number(const std::array<const char*, N>& names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name)) return std::max(0, std::atoi(value));
  return 0;
}

pid_t parent_of(const std::vector<RunningProcess>& all, pid_t process) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.process == process; });
  return found == all.end() ? -1 : found->parent;
}

}  // namespace

int told_rank() { return first_number(kRankVariables); }
int told_ranks() { return first_number(std::array{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}); }
int told_ranks_on_host() { return first_number(std::array{"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}); }
int told_local_rank() {
  return first_number(std::array{"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"});
}

JobRanks::JobRanks(pid_t member) : program_(program_of(member)) {
  job_ = variable_of(member, "PMIX_NAMESPACE").value_or("");
  const int rank = rank_of(member);
  const std::vector<RunningProcess> all = running_processes();
  launcher_ = parent_of(all, member);
  // Between the two may stand a script that was started in place of the program.
  while (launcher_ > 1 && rank >= 0 && rank_of(launcher_) == rank) launcher_ = parent_of(all, launcher_);
}

int JobRanks::rank_of(pid_t process) {
  if (const auto known = ranks_.find(process); known != ranks_.end()) return known->second;
  // Of a child that has not become another program yet this says what the launcher itself was started with.
  if (variable_of(process, "PMIX_NAMESPACE").value_or("") != job_) return -1;
  for (const char* name : kRankVariables)
    if (const std::optional<std::string> rank = variable_of(process, name))
      return ranks_[process] = std::atoi(rank->c_str());
  return -1;
}

std::vector<JobRank> JobRanks::look() {
  std::vector<JobRank> found;
  if (launcher_ <= 0) return found;
  const std::vector<RunningProcess> all = running_processes();
  for (const RunningProcess& child : all) {
    if (child.parent != launcher_) continue;
    const int rank = rank_of(child.process);
    if (rank < 0) continue;
    // Where it is a script that has started the program, that one counts.
    std::vector<RunningProcess> family = {child};
    RunningProcess chosen = child;
    for (size_t at = 0; at < family.size(); ++at) {
      const RunningProcess one = family[at];
      if (program_of(one.process) == program_) {
        chosen = one;
        break;
      }
      std::copy_if(all.begin(), all.end(), std::back_inserter(family),
                   [&](const RunningProcess& other) { return other.parent == one.process; });
    }
    found.push_back({.rank = rank, .process = chosen.process, .is_stopped = chosen.state == 'T'});
  }
  std::sort(found.begin(), found.end(), [](const JobRank& a, const JobRank& b) { return a.rank < b.rank; });
  return found;
}

}  // namespace weft::launch
