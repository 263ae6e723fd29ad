#include "weft/comm/mpi/session.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sysexits.h>
#include <unistd.h>

#include <array>
#include <atomic>
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
#include "weft/comm/mpi/end_watch.h"
#include "weft/comm/mpi/mpi_communicator.h"
#include "weft/comm/patience.h"
#include "weft/comm/schedules/schedule.h"

namespace weft::comm {

namespace {

/// Open MPI asks the receiver before it sends what is larger than a limit, 64 KB unless told otherwise. On a link that
/// is busy both ways question and answer each wait behind what was handed over before, and the link idles meanwhile.
/// Here receivers have said where it goes already, and no more is handed over than collectives.h allows: nothing of
/// that size is asked for. What a user sets stays.
void send_without_asking() {
  constexpr int64_t kLimitBytes = kLargestMessageBytes + 4096;  // and MPI's header
  setenv("OMPI_MCA_btl_tcp_eager_limit", std::to_string(kLimitBytes).c_str(), /*overwrite=*/0);
}

/// Ends the process where a call of MPI that nobody else bounds takes too long: a rank was stopped or lost in it, which
/// the others cannot be told.
class CallWatch {
 public:
  explicit CallWatch(std::string who)
      : who_(std::move(who)), thread_([this](const std::stop_token& over) { watch(over); }) {}

  /// Of a call of this thread; costs it two stores. `message` ends what is said, and outlives the call.
  template <typename Call>
  void bound(double seconds, const char* message, const Call& call) {
    message_ = message;
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    call();
    deadline_ = Clock::time_point::max();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void watch(const std::stop_token& over) {
    std::mutex mutex;
    std::condition_variable_any bell;
    std::unique_lock lock(mutex);
    while (!over.stop_requested()) {
      bell.wait_for(lock, over, std::chrono::milliseconds(250), [] { return false; });
      if (over.stop_requested() || Clock::now() < deadline_.load()) continue;
      fmt::print(stderr, "weft: {}: {}\n", who_, message_.load());
      std::fflush(nullptr);
      _exit(EX_TEMPFAIL);
    }
  }

  const std::string who_;
  std::atomic<Clock::time_point> deadline_ = Clock::time_point::max();
  std::atomic<const char*> message_ = "";
  std::jthread thread_;
};

}  // namespace

struct MpiSession::Impl {
  std::unique_ptr<MpiCommunicator> communicator;
  std::unique_ptr<CallWatch> watch = {};
  bool is_finished = false;
  bool is_reporter = false;

  CallWatch& watched() {
    if (!watch) watch = std::make_unique<CallWatch>(name_of_rank(*communicator, communicator->rank()));
    return *watch;
  }
};

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

void MpiSession::run(CollectiveKind kind, std::span<float> values, double limit_seconds) {
  impl_->watched().bound(limit_seconds,
                         "a collective of MPI does not end: a rank was stopped, or its network is cut; look which, and "
                         "measure again",
                         [&] { impl_->communicator->run(kind, values); });
}

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
  // Who has left a barrier falls silent, while others may still be in it: they would miss the wrong ones. Here nobody
  // falls silent before all have left the first.
  barrier(*impl_->communicator, "the end of the program, to which all had come");
  impl_->communicator->close();
  impl_->is_finished = true;
  watch_end(name_of_rank(*impl_->communicator, impl_->communicator->rank()));
  // MPI ends with a meeting of all ranks. Where one was stopped just before it, all that the others had to do is done.
  impl_->watched().bound(10,
                         "its work is done and written, but MPI does not end: another rank was stopped or lost at the "
                         "very end; see that no process of the job is left",
                         [] { MPI_Finalize(); });
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
