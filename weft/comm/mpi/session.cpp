#include "weft/comm/mpi/session.h"

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
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

namespace {

/// Open MPI asks the receiver before it sends what is larger than a limit, 64 KB unless told otherwise. On a link that
/// is busy both ways question and answer each wait behind what was handed over before, and the link idles meanwhile.
/// Here receivers have said where it goes already, and no more is handed over than collectives.h allows: nothing of
/// that size is asked for. What a user sets stays.
void send_without_asking() {
  constexpr int64_t kLimitBytes = (4 << 20) + 4096;  // the largest messages of collectives, and MPI's header
  setenv("OMPI_MCA_btl_tcp_eager_limit", std::to_string(kLimitBytes).c_str(), /*overwrite=*/0);
}

}  // namespace

MpiSession::MpiSession() : impl_(std::make_unique<Impl>()) {
  send_without_asking();
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

void MpiSession::run(CollectiveKind kind, std::span<float> values) { impl_->communicator->run(kind, values); }

std::string MpiSession::version() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string whole(text.data());
  return whole.substr(0, whole.find_first_of(",\n"));
}

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
