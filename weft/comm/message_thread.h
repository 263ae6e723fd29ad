// The thread that moves messages between hosts while the rank computes. It runs any number of schedules at once, sleeps
// while none does, and keeps what goes wrong for the thread that waits for the result. Who has nothing else to do
// helps: so small collectives do not wait for a thread to wake up.
//
// The link is one, and what is handed to the system can no longer be overtaken: so no more bytes are handed over than
// keep the link busy, and of the jobs that have something to send the most urgent goes first (Peng et al. 2019,
// "ByteScheduler", section 4: credits). Ranks never wait for each other in a circle: all that a peer may send is
// received as soon as a job was submitted, and a job is over only when all of it was sent, so that what a rank awaits
// before it submits the next job is not held up by those that have submitted that one. That is so where ranks submit
// the same jobs in the same order. Messages from rank to rank, which a peer may await in another order, go without a
// limit.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "weft/comm/runner.h"

namespace weft::comm {

class MessageThread {
 public:
  struct Job {
    std::string name;  // of what is moved, for errors
    std::unique_ptr<ScheduleRunner> runner;
    float* buffer = nullptr;
    int64_t priority = 0;           // lower goes first; among equals who was submitted first
    bool is_limited = true;         // whether it counts among the bytes that are sent at once, and waits for others
    std::function<void()> deliver;  // called on the thread when the buffer holds the sums
  };

  /// Keeps the communicator, over which all schedules run. `most_bytes`: sent at once. `tell`: called after the
  /// delivery of one job or more, and after an error.
  MessageThread(Communicator& communicator, int64_t most_bytes, std::function<void()> tell);
  ~MessageThread();

  /// Before jobs are submitted for the first time: so many more may be under way.
  void reserve(size_t jobs);
  /// Leaves the job to the thread, once that is woken. It stays until it was delivered.
  void submit(Job& job);
  void wake();
  /// Moves what can be moved now, unless the thread is at it; it need not be awake. What goes wrong is kept too.
  void help();
  /// Throws what went wrong, after which nothing moves any more.
  void rethrow() const;

 private:
  void run(const std::stop_token& stopped);
  bool move_messages();
  bool move_some();
  static bool advance(Job& job);
  bool take_submitted();
  void send();

  Communicator& communicator_;
  const int64_t most_bytes_;
  const std::function<void()> tell_;
  std::mutex work_mutex_;    // guards the jobs under way; taken before the other one
  std::vector<Job*> taken_;  // just now
  std::vector<Job*> jobs_;   // the most urgent first
  int64_t through_ = 0;      // messages, when they were last asked
  bool has_failed_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any bell_;
  std::vector<Job*> submitted_;
  std::atomic<bool> has_submitted_ = false;  // set with it; read without the mutex, as most looks find none
  size_t reserved_ = 0, under_way_ = 0;
  bool is_awake_ = false;
  std::exception_ptr error_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace weft::comm
