#include "weft/comm/message_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "weft/base/error.h"

namespace weft::comm {

namespace {

using Clock = std::chrono::steady_clock;

/// Looks again at once, then sleeps a fiftieth of the time in which nothing came: cores are for computing.
class Idleness {
 public:
  void reset() { looks_ = 0; }
  void pause() {
    if (looks_++ == 0) since_ = Clock::now();
    if (looks_ < kLooks) {
      std::this_thread::yield();
      return;
    }
    const double idle = std::chrono::duration<double>(Clock::now() - since_).count();
    std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(idle / 50, 10e-6, 500e-6)));
  }

 private:
  static constexpr int kLooks = 20;
  int looks_ = 0;
  Clock::time_point since_;
};

}  // namespace

MessageThread::MessageThread(Communicator& communicator, int64_t most_bytes, std::function<void()> tell)
    : communicator_(communicator),
      most_bytes_(most_bytes),
      tell_(std::move(tell)),
      thread_([this](const std::stop_token& stopped) { run(stopped); }) {}

MessageThread::~MessageThread() {
  thread_.request_stop();
  thread_.join();
}

void MessageThread::reserve(size_t jobs) {
  const std::lock_guard work_lock(work_mutex_);
  const std::lock_guard lock(mutex_);
  reserved_ += jobs;
  jobs_.reserve(reserved_);
  submitted_.reserve(reserved_);
  taken_.reserve(reserved_);
}

void MessageThread::submit(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
    submitted_.push_back(&job);
    has_submitted_.store(true, std::memory_order_release);
  }
}

void MessageThread::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (is_awake_ || under_way_ == 0) return;
    is_awake_ = true;
  }
  bell_.notify_one();
}

void MessageThread::help() {
  const std::unique_lock lock(work_mutex_, std::try_to_lock);
  if (lock.owns_lock()) move_messages();
}

void MessageThread::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void MessageThread::run(const std::stop_token& stopped) {
  pthread_setname_np(pthread_self(), "weft messages");
  Idleness idleness;
  while (!stopped.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      if (under_way_ == 0) is_awake_ = false;
      bell_.wait(lock, stopped, [this] { return is_awake_; });
    }
    bool has_moved = false;
    {
      const std::lock_guard lock(work_mutex_);
      has_moved = move_messages();
      if (has_failed_) return;
    }
    if (has_moved)
      idleness.reset();
    else
      idleness.pause();
  }
}

/// Whether there were any.
bool MessageThread::take_submitted() {
  if (!has_submitted_.load(std::memory_order_acquire)) return false;
  {
    const std::lock_guard lock(mutex_);
    std::swap(submitted_, taken_);
    has_submitted_.store(false, std::memory_order_relaxed);
  }
  for (Job* const job : taken_) {
    job->runner->begin(job->buffer);
    const auto place = std::upper_bound(jobs_.begin(), jobs_.end(), job->priority,
                                        [](int64_t priority, const Job* other) { return priority < other->priority; });
    jobs_.insert(place, job);
  }
  const bool has_taken = !taken_.empty();
  taken_.clear();
  return has_taken;
}

/// Whether it is over. With its name in what goes wrong.
bool MessageThread::advance(Job& job) {
  try {
    return job.runner->advance();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", job.name, error.what()));
  }
}

/// Whether anything did. No job is looked at again after one has failed: its messages are void.
bool MessageThread::move_messages() {
  if (has_failed_) return false;
  try {
    return move_some();
  } catch (...) {
    has_failed_ = true;
    {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    tell_();
    return false;
  }
}

bool MessageThread::move_some() {
  const bool has_taken = take_submitted();
  if (has_taken) send();
  if (jobs_.empty()) return false;
  // Asking each message of each job is what most looks would spend their time on, in vain.
  const int64_t through = communicator_.progress();
  if (!has_taken && through == through_) return false;
  through_ = through;
  bool has_moved = false;
  size_t kept = 0, delivered = 0;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    Job& job = *jobs_[i];
    const size_t missing = job.runner->missing();
    const bool is_over = advance(job);
    has_moved = has_moved || is_over || job.runner->missing() != missing;
    if (is_over) {
      job.deliver();
      ++delivered;
    } else {
      jobs_[kept++] = &job;
    }
  }
  jobs_.resize(kept);
  if (has_moved) send();
  if (delivered > 0) {
    {
      const std::lock_guard lock(mutex_);
      under_way_ -= delivered;
    }
    tell_();
  }
  return has_moved;
}

void MessageThread::send() {
  int64_t bytes = 0;
  for (const Job* const job : jobs_)
    if (job->is_limited) bytes += job->runner->bytes_under_way();
  for (Job* const job : jobs_) {
    while (job->runner->can_send() && (!job->is_limited || bytes < most_bytes_)) {
      const int64_t before = job->runner->bytes_under_way();
      job->runner->send_next();
      if (job->is_limited) bytes += job->runner->bytes_under_way() - before;
    }
  }
}

}  // namespace weft::comm
