// A small thread per rank that says "I live" several times per second, whatever the rank computes or writes, and
// watches who else does: on this host by counters in shared memory, elsewhere by tiny messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace weft::comm {

/// Time is counted in this rank's own turns, so that a pause of the whole machine makes nobody look dead.
class SignsOfLife {
 public:
  /// A counter that a rank's thread moves; null where the rank is on another host.
  using Counter = std::atomic<uint64_t>;
  /// `exchange(heard)` sends this rank's sign to the other hosts and sets heard[peer] for those that it got signs of.
  using Exchange = std::function<void(std::vector<char>& heard)>;

  SignsOfLife(int rank, std::vector<Counter*> counters, Exchange exchange);
  ~SignsOfLife() { stop(); }
  double seconds_silent(int peer) const { return silent_[static_cast<size_t>(peer)].load(std::memory_order_relaxed); }
  void stop();

 private:
  void run(const std::stop_token& stopped);

  const int rank_;
  const std::vector<Counter*> counters_;
  const Exchange exchange_;
  std::vector<std::atomic<double>> silent_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace weft::comm
