#include "weft/comm/patience.h"

#include <algorithm>
#include <thread>

#include "weft/base/error.h"

namespace weft::comm {

namespace {

constexpr int kSpins = 200;  // some tens of microseconds, in which most answers come
constexpr int kYields = 50;
constexpr double kCheckSeconds = 0.05;
constexpr double kAlike = 0.8;  // of the longest silence: who is silent for so long fell silent at the same time

void relax() {
#if defined(__x86_64__)
  for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Whether all ranks of all other hosts fell silent as long ago as one of them: then it is this host that is cut off.
/// False of two hosts, where nobody can tell.
bool hears_no_other_host(const Communicator& communicator, double longest) {
  const std::vector<Member>& members = communicator.members();
  const int host = members[static_cast<size_t>(communicator.rank())].host_index;
  int last_host = 0;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const int other = members[static_cast<size_t>(rank)].host_index;
    if (other != host && communicator.seconds_silent(rank) < kAlike * longest) return false;
    last_host = std::max(last_host, other);
  }
  return last_host > 1;
}

}  // namespace

std::string name_of_rank(const Communicator& communicator, int rank) {
  return fmt::format("rank {} on host '{}'", communicator.shown_rank(rank),
                     communicator.members()[static_cast<size_t>(rank)].host);
}

void fail_wrong_size(const Communicator& communicator, int peer, int64_t expected, int64_t got) {
  fail(ErrorKind::communication,
       "{} sends {} bytes where {} receives {}; let the tensor have the same shape and type on both",
       name_of_rank(communicator, peer), got, name_of_rank(communicator, communicator.rank()), expected);
}

std::string name_of(const Purpose& purpose) {
  std::string text = fmt::format("[{}]", purpose.what);
  if (!purpose.subject.empty()) text += fmt::format(" '{}'", purpose.subject);
  if (!purpose.position.empty()) text += fmt::format(" at {}", purpose.position);
  return text;
}

double Patience::seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

void require_signs_of_life(Communicator& communicator, double silence_seconds, const Purpose& purpose) {
  const Communicator& run = communicator.whole_run();
  int lost = -1;
  double longest = silence_seconds;
  for (int rank = 0; rank < run.size(); ++rank) {
    if (rank == run.rank()) continue;
    const double silent = run.seconds_silent(rank);
    if (silent > longest) {
      longest = silent;
      lost = rank;
    }
  }
  if (lost < 0) return;
  const bool is_cut_off = hears_no_other_host(run, longest);
  communicator.give_up();
  if (is_cut_off)
    fail(ErrorKind::communication,
         "{}: no other host has given a sign of life for {:.1f} s: host '{}' is cut off from all others; see its "
         "network, then start again from the last checkpoint with --resume",
         name_of(purpose), longest, run.members()[static_cast<size_t>(run.rank())].host);
  fail(ErrorKind::communication,
       "{}: {} has given no sign of life for {:.1f} s: it died, was stopped, or its network is cut; look there, then "
       "start again from the last checkpoint with --resume",
       name_of(purpose), name_of_rank(run, lost), longest);
}

void Patience::check(int awaited) {
  const Clock::time_point now = Clock::now();
  if (std::chrono::duration<double>(now - last_check_).count() < std::min(kCheckSeconds, limits_.silence_seconds / 4))
    return;
  last_check_ = now;
  require_signs_of_life(communicator_, limits_.silence_seconds, purpose_);
  if (seconds() < limits_.wait_seconds) return;
  communicator_.give_up();
  const std::string who = awaited < 0 ? "the other ranks" : name_of_rank(communicator_, awaited);
  fail(ErrorKind::communication,
       "{}: {} gave signs of life but did not come within {:.0f} s; see what that process does, and start again from "
       "the last checkpoint with --resume where it is stuck",
       name_of(purpose_), who, limits_.wait_seconds);
}

void Patience::pause(int awaited) {
  ++looks_;
  if (looks_ <= kSpins + kYields) {
    if (looks_ <= kSpins)
      relax();
    else
      std::this_thread::yield();
    if (limits_.meter != nullptr) limits_.meter->looked();
    return;
  }
  // Longer waits may be less exact: a thousandth of what they took already.
  const double sleep = std::clamp(seconds() / 1000, 20e-6, 2e-3);
  std::this_thread::sleep_for(std::chrono::duration<double>(sleep));
  if (limits_.meter != nullptr) limits_.meter->looked(sleep);
  check(awaited);
}

void await(Communicator& communicator, Ticket ticket, int peer, const WaitLimits& limits, const Purpose& purpose) {
  if (limits.meter != nullptr) limits.meter->begin();
  for (Patience patience(communicator, limits, purpose); !communicator.test(ticket);) patience.pause(peer);
  if (limits.meter != nullptr) limits.meter->end();
}

}  // namespace weft::comm
