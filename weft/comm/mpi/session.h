// MPI from start to end of a program, with the communicator of all ranks.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"

namespace weft::comm {

/// One per process, under a launcher only (launcher.h). Ranks are those of MPI_COMM_WORLD. Members of one host are
/// those that MPI says share memory and that may open each other's; where that is not permitted each rank counts as a
/// host of its own. For tests, the environment variable WEFT_RANKS_PER_HOST=N makes hosts of N ranks each.
class MpiSession {
 public:
  /// Error(communication) where MPI cannot be used.
  MpiSession();
  /// Without finish() before it ends all ranks, as abort(1).
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  Communicator& communicator();

  /// MPI's own collective, in place, to be compared with. Sums, where it sums; tensors that have parts hold as many
  /// elements for each rank; the root is rank 0. The rank gives no signs of life meanwhile; after
  /// `limit_seconds` it says that this does not end, and ends the process with 75 (EX_TEMPFAIL).
  void run(CollectiveKind kind, std::span<float> values, double limit_seconds);
  /// "Open MPI v4.1.4"
  std::string version() const;

  /// The ordinary end: waits for all ranks, then leaves MPI. Error(communication) naming a rank that was lost; where
  /// one is stopped after all had come, says so and ends the process with 75 (EX_TEMPFAIL) after ten seconds. From then
  /// on watch_end (end_watch.h) looks after this process: it should end.
  void finish();

  /// For errors that several ranks find: true for the first rank of this host that asks.
  bool claims_report();
  /// Ends all ranks of the job with this exit code, whatever they do. Call it after the error was printed; ranks whose
  /// host has another reporter leave that one a second.
  [[noreturn]] void abort(int exit_code);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::comm
