#include "weft/comm/mpi/session.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sysexits.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/comm/mpi/mpi_communicator.h"
#include "weft/comm/patience.h"

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

/// MPI ends with a meeting of all ranks that nobody bounds. Where one was stopped just before it, the others end the
/// process: all they had to do is done.
class BoundedEnd {
 public:
  explicit BoundedEnd(std::string who)
      : thread_([who = std::move(who)](const std::stop_token& over) {
          std::mutex mutex;
          std::condition_variable_any bell;
          std::unique_lock lock(mutex);
          bell.wait_for(lock, over, std::chrono::seconds(10), [] { return false; });
          if (over.stop_requested()) return;
          fmt::print(stderr,
                     "weft: {}: its work is done and written, but MPI does not end: another rank was stopped or lost "
                     "at the very end; see that no process of the job is left\n",
                     who);
          std::fflush(nullptr);
          _exit(EX_TEMPFAIL);
        }) {}

 private:
  std::jthread thread_;
};

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
  const BoundedEnd end(name_of_rank(*impl_->communicator, impl_->communicator->rank()));
  MPI_Finalize();
}

bool MpiSession::claims_report() {
  impl_->is_reporter = impl_->communicator->claims_report();
  return impl_->is_reporter;
}

void MpiSession::abort(int exit_code) {
  if (!impl_->is_reporter) std::this_thread::sleep_for(std::chrono::seconds(1));
  impl_->communicator->give_up();  // no other thread calls MPI any more
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();  // not reached
}

}  // namespace weft::comm
