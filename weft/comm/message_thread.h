// The thread that moves messages between hosts while the rank computes. It runs any number of schedules at once, sleeps
// while none does, and keeps what goes wrong for the thread that waits for the result. Who has nothing else to do
// helps: so small collectives do not wait for a thread to wake up.
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
  /// Begins to send, then leaves the job to the thread. It stays until it was delivered.
  void submit(Job& job);
  /// Moves what can be moved now, unless the thread is at it.
  void help();
  /// Throws what went wrong on the thread.
  void rethrow() const;

 private:
  void run(const std::stop_token& stopped);
  void work(const std::stop_token& stopped);
  bool move_messages();

  const std::function<void()> wake_;
  std::mutex work_mutex_;  // guards the jobs under way; taken before the other one
  std::vector<Job*> jobs_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any bell_;
  size_t under_way_ = 0;
  std::exception_ptr error_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace weft::comm
