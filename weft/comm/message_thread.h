// The thread that moves messages between hosts while the rank computes. It runs any number of schedules at once, sleeps
// while none does, and keeps what goes wrong for the thread that waits for the result.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "weft/comm/runner.h"

namespace weft::comm {

class MessageThread {
 public:
  struct Job {
    std::unique_ptr<ScheduleRunner> runner;
    float* buffer = nullptr;
    std::function<void()> deliver;  // called on the thread when the buffer holds the sums
  };

  /// `wake`: called after each delivery, and after an error.
  explicit MessageThread(std::function<void()> wake);
  ~MessageThread();

  /// Before a job is submitted for the first time: so many may be under way.
  void reserve(size_t jobs);
  /// The job stays until it was delivered.
  void submit(Job& job);
  bool is_idle() const;
  /// Throws what went wrong on the thread.
  void rethrow() const;

 private:
  void run(const std::stop_token& stopped);
  void work(const std::stop_token& stopped);

  const std::function<void()> wake_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any bell_;
  std::vector<Job*> submitted_;
  size_t under_way_ = 0, reserved_ = 0;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace weft::comm
