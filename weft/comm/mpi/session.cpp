#include "weft/comm/mpi/session.h"

#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/comm/mpi/mpi_communicator.h"

namespace weft::comm {

struct MpiSession::Impl {
  std::unique_ptr<MpiCommunicator> communicator;
  bool is_finished = false;
  bool is_reporter = false;
};

MpiSession::MpiSession() : impl_(std::make_unique<Impl>()) {
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    fail(ErrorKind::communication, "MPI does not start; does `mpirun -n 2 hostname` work here?");
  if (provided < MPI_THREAD_SERIALIZED)
    fail(ErrorKind::communication, "this MPI does not allow calls from several threads; use one that was built for it");
  impl_->communicator = std::make_unique<MpiCommunicator>();
}

MpiSession::~MpiSession() {
  if (!impl_->is_finished) abort(1);
}

Communicator& MpiSession::communicator() { return *impl_->communicator; }

void MpiSession::finish() {
  // Some may be writing a last checkpoint for long.
  barrier(*impl_->communicator, "the end of the program", {.silence_seconds = 5, .wait_seconds = 3600});
  impl_->communicator->close();
  impl_->is_finished = true;
  MPI_Finalize();
}

bool MpiSession::claims_report() {
  impl_->is_reporter = impl_->communicator->claims_report();
  return impl_->is_reporter;
}

void MpiSession::abort(int exit_code) {
  if (!impl_->is_reporter) std::this_thread::sleep_for(std::chrono::seconds(1));
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();  // not reached
}

}  // namespace weft::comm
