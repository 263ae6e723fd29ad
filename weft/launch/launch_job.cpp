#include "weft/launch/launch_job.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "weft/launch/child_process.h"
#include "weft/launch/lasting.h"
#include "weft/launch/process_table.h"
#include "weft/launch/stalled_connections.h"

namespace weft::launch {

namespace {

using Clock = std::chrono::steady_clock;

// mpirun itself ends what is left of a job within one or two seconds of its first loss.
constexpr std::chrono::seconds kDesertedPatience{5};
constexpr std::chrono::seconds kLossPatience{3};
constexpr std::chrono::seconds kRequestInterval{5};  // what mpirun gets before there are ranks it hands to nobody
constexpr std::chrono::seconds kOrphanPatience{2};   // after the end of mpirun, for what it has started to end too
constexpr std::chrono::seconds kStallPatience{6};    // longer than ranks wait for a sign of life
constexpr std::chrono::milliseconds kTurn{200};      // between looks, at most
constexpr int kResends = 2;                          // fewer happen on any link

/// What mpirun has started on this host, looked up now and then: ranks, and what reaches other hosts.
class Started {
 public:
  void look(const ChildProcess& mpirun) {
    // The number of one that has ended may soon be that of another job's rank.
    std::erase_if(programs_, [](const auto& started) { return !lives(started.first, started.second); });
    bool has_ranks = false;
    for (const pid_t child : mpirun.children()) {
      const std::filesystem::path program = program_of(child);
      // Before a child becomes another program it is mpirun itself.
      if (program.empty() || program.filename() == "orterun" || program.filename() == "mpirun") continue;
      programs_[child] = program;
      has_ranks = has_ranks || program == own_program_;
    }
    had_ranks_ = had_ranks_ || has_ranks;
    without_ranks_.look(had_ranks_ && !has_ranks, Clock::now());
  }

  /// Once all ranks of this host have ended for so long while mpirun goes on.
  bool is_deserted() const { return without_ranks_.time() > kDesertedPatience; }

  /// A rank that runs; -1: none does.
  pid_t any_rank() const {
    for (const auto& [process, program] : programs_)
      if (program == own_program_ && lives(process, program)) return process;
    return -1;
  }

  /// After the end of mpirun: nobody may be left to write into the run directory, or to hold a step of a Slurm job.
  void end() const {
    for (const auto& [process, program] : programs_)
      if (program != own_program_ && lives(process, program)) kill(process, SIGTERM);
    for (const auto limit = Clock::now() + kOrphanPatience; any() && Clock::now() < limit;)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (const auto& [process, program] : programs_)
      if (lives(process, program)) kill(process, SIGKILL);
    for (const auto limit = Clock::now() + kOrphanPatience; any() && Clock::now() < limit;)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  /// And is no other one that has got its number.
  static bool lives(pid_t process, const std::filesystem::path& program) { return program_of(process) == program; }
  bool any() const {
    return std::any_of(programs_.begin(), programs_.end(),
                       [](const auto& started) { return lives(started.first, started.second); });
  }

  const std::filesystem::path own_program_ = program_of(getpid());
  std::map<pid_t, std::filesystem::path> programs_;
  bool had_ranks_ = false;
  Lasting without_ranks_{kTurn};
};

/// Hands a job the wish that it stop with a checkpoint.
class StopRequest {
 public:
  explicit StopRequest(const LaunchedJob& job) : has_ranks_here_(has_ranks_here(job.hosts)) {}

  /// At each look once it is wished.
  void pass_on(const ChildProcess& mpirun, const Started& started) {
    if (Clock::now() < next_) return;
    next_ = Clock::time_point::max();
    if (const pid_t rank = started.any_rank(); rank >= 0) {
      kill(rank, SIGTERM);
    } else if (has_ranks_here_) {
      mpirun.send(SIGTERM);
    } else {
      // After SIGTERM mpirun would give the ranks of other hosts one second for their checkpoint. This it hands on
      // only.
      mpirun.send(SIGUSR1);
      next_ = Clock::now() + kRequestInterval;
    }
  }

 private:
  const bool has_ranks_here_;
  Clock::time_point next_ = Clock::time_point::min();
};

std::vector<std::string> mpirun_words(const LaunchedJob& job) {
  std::vector<std::string> all = {"mpirun", "--oversubscribe", "-n", std::to_string(job.ranks)};
  if (!job.hosts.empty()) all.insert(all.end(), {"--host", print_hosts(job.hosts)});
  all.insert(all.end(), job.words.begin(), job.words.end());
  return all;
}

/// Notes for how long nothing has got through from mpirun to a host, for which it would wait a quarter of an hour.
class Stall {
 public:
  void look(const ChildProcess& mpirun) {
    const std::vector<std::string> peers = stalled_peers(mpirun.process(), kResends);
    const bool is_same = std::find(peers.begin(), peers.end(), peer_) != peers.end();
    if (!is_same) peer_ = peers.empty() ? "" : peers.front();
    same_.look(is_same, Clock::now());
  }
  std::optional<LostRank> lost_host() const {
    if (same_.time() < kStallPatience) return std::nullopt;
    return LostRank{.host = peer_, .reason = "cannot be reached any more: nothing gets through to it"};
  }

 private:
  std::string peer_;  // its address
  Lasting same_{kTurn};
};

void write_error_line(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fputc('\n', stderr);
}

}  // namespace

JobEnd run_job(const LaunchedJob& job, const std::function<bool()>& interrupted) {
  ChildProcess mpirun(mpirun_words(job), ChildProcess::Output::errors_taken);
  LaunchReports reports(write_error_line);
  Started started;
  StopRequest stop(job);
  bool is_over = false;
  Stall stall;
  std::optional<LostRank> unreachable;
  Lasting has_lost(kTurn);
  for (int looks = 0; !mpirun.has_ended(); ++looks) {
    reports.add(mpirun.read());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (looks % 5 == 4) {
      started.look(mpirun);
      stall.look(mpirun);
      has_lost.look(reports.lost().has_value(), Clock::now());
      if (!unreachable) unreachable = stall.lost_host();
      is_over = is_over || unreachable || started.is_deserted() || has_lost.time() > kLossPatience;
      if (is_over) mpirun.send(SIGKILL);
    }
    if (interrupted()) stop.pass_on(mpirun, started);
  }
  started.end();
  reports.add(mpirun.read());
  reports.finish();
  const std::optional<LostRank> said = reports.lost();
  return {.code = mpirun.exit_code(),
          .launcher_killed = mpirun.was_killed() && !is_over,
          .lost = said ? said : unreachable,
          .was_deserted = is_over && started.is_deserted(),
          .unstarted = reports.unstarted()};
}

}  // namespace weft::launch
