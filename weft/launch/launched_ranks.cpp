#include "weft/launch/launched_ranks.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/error_of.h"
#include "weft/base/say.h"
#include "weft/comm/host_share.h"
#include "weft/comm/mpi/launcher.h"
#include "weft/comm/mpi/session.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/comm/patience.h"
#include "weft/launch/job_ranks.h"
#include "weft/launch/start_watch.h"

namespace weft::launch {

namespace {

/// Each would train by itself, all in the same run directory.
void require_no_lone_tasks() {
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");  // srun's alone
  if (tasks != nullptr && std::atoi(tasks) > 1)
    fail(ErrorKind::usage,
         "srun has started {} tasks that know nothing of each other; add --mpi=pmix (`srun --mpi=list` shows what this "
         "Slurm has)",
         tasks);
}

void report(const std::string& message) {
  std::fflush(stdout);
  say(message);
}

std::unique_ptr<comm::MpiSession> start_session() {
  const StartWatch watch(kLostRankExitCode);
  return std::make_unique<comm::MpiSession>();
}

int run_ranks(comm::MpiSession& session, const std::function<int(comm::MpiSession& session)>& work) {
  comm::Communicator& ranks = session.communicator();
  try {
    int code = 0;
    try {
      comm::take_cores(&ranks);
      code = work(session);
    } catch (const comm::SharedError& error) {
      if (comm::is_first(&ranks)) report(error.what());
      code = error.exit_code();
    }
    session.finish();
    return code;
  } catch (...) {
    const Error error = error_of(std::current_exception());
    // That a rank is lost is found by all others; what else goes wrong is known here alone.
    const bool is_lost = error.kind() == ErrorKind::communication;
    if (!is_lost || session.claims_report())
      report(fmt::format("{}: {}", comm::name_of_rank(ranks, ranks.rank()), error.what()));
    session.abort(is_lost ? kLostRankExitCode : error.exit_code());
  }
}

}  // namespace

int on_launched_ranks(const std::function<int(comm::Communicator* ranks)>& work) {
  if (!comm::started_by_launcher()) {
    require_no_lone_tasks();
    return work(nullptr);
  }
  const std::unique_ptr<comm::MpiSession> session = start_session();
  if (session->communicator().size() > 1)
    return run_ranks(*session, [&](comm::MpiSession&) { return work(&session->communicator()); });
  try {
    comm::take_cores(&session->communicator());
    const int code = work(nullptr);
    session->finish();
    return code;
  } catch (...) {
    session->finish();
    throw;
  }
}

int between_ranks(const std::string& command, const std::function<int(comm::MpiSession& session)>& work) {
  if (!comm::started_by_launcher())
    fail(ErrorKind::usage, "`weft {0}` measures between ranks: run it as `mpirun -n 2 weft {0}`", command);
  return run_ranks(*start_session(), work);
}

bool speaks_for_launched_ranks() { return told_rank() == 0; }

std::function<void(const std::string& line)> note_of(const comm::Communicator* ranks) {
  return [is_first = comm::is_first(ranks)](const std::string& line) {
    if (is_first) say(line);
  };
}

int64_t batch_of_rank(int64_t batch, int ranks, std::string_view name) {
  if (batch % ranks != 0)
    fail(ErrorKind::usage, "{} {} cannot be shared by {} ranks alike; try --batch {}", name, batch, ranks,
         (batch / ranks + 1) * ranks);
  return batch / ranks;
}

}  // namespace weft::launch
