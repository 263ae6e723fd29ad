// In place of comm/mpi where weft is built without MPI (WEFT_MPI=OFF): a process is alone, and says so where it was
// started as one of several.
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/comm/mpi/end_watch.h"
#include "weft/comm/mpi/launcher.h"
#include "weft/comm/mpi/session.h"

namespace weft::comm {

namespace {

[[noreturn]] void fail_without_mpi() {
  fail(ErrorKind::usage, "this weft was built without MPI and runs on one process; configure it with -DWEFT_MPI=ON");
}

}  // namespace

struct MpiSession::Impl {};

MpiSession::MpiSession() { fail_without_mpi(); }
MpiSession::~MpiSession() = default;
Communicator& MpiSession::communicator() { fail_without_mpi(); }
void MpiSession::run(CollectiveKind, std::span<float>, double) { fail_without_mpi(); }
std::string MpiSession::version() const { return "none"; }
void MpiSession::finish() {}
bool MpiSession::claims_report() { return true; }
void MpiSession::abort(int exit_code) { std::exit(exit_code); }

void watch_end(const std::string&) {}

}  // namespace weft::comm
