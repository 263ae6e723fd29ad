#include "weft/comm/mpi/signs_of_life.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace weft::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTurnSeconds = 0.1;
constexpr double kLongestTurn = 0.2;  // what takes longer was a pause of this rank itself

}  // namespace

SignsOfLife::SignsOfLife(int rank, std::vector<Counter*> counters, Exchange exchange)
    : rank_(rank),
      counters_(std::move(counters)),
      exchange_(std::move(exchange)),
      silent_(counters_.size()),
      thread_([this](const std::stop_token& stopped) { run(stopped); }) {}

void SignsOfLife::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void SignsOfLife::run(const std::stop_token& stopped) {
  std::vector<uint64_t> seen(counters_.size(), 0);
  std::vector<char> heard(counters_.size(), 0);
  std::mutex mutex;
  std::condition_variable_any bell;
  for (Clock::time_point before = Clock::now(); !stopped.stop_requested();) {
    counters_[static_cast<size_t>(rank_)]->fetch_add(1, std::memory_order_relaxed);
    std::fill(heard.begin(), heard.end(), 0);
    exchange_(heard);
    const Clock::time_point now = Clock::now();
    const double turn = std::min(kLongestTurn, std::chrono::duration<double>(now - before).count());
    before = now;
    for (size_t peer = 0; peer < counters_.size(); ++peer) {
      if (const Counter* counter = counters_[peer]) {
        const uint64_t count = counter->load(std::memory_order_relaxed);
        heard[peer] = count != seen[peer] ? 1 : 0;
        seen[peer] = count;
      }
      silent_[peer].store(heard[peer] != 0 ? 0 : silent_[peer].load(std::memory_order_relaxed) + turn,
                          std::memory_order_relaxed);
    }
    std::unique_lock lock(mutex);
    bell.wait_for(lock, stopped, std::chrono::duration<double>(kTurnSeconds), [] { return false; });
  }
}

}  // namespace weft::comm
