#include "weft/comm/message_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

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

MessageThread::MessageThread(std::function<void()> wake)
    : wake_(std::move(wake)), thread_([this](const std::stop_token& stopped) { run(stopped); }) {}

MessageThread::~MessageThread() {
  thread_.request_stop();
  thread_.join();
}

void MessageThread::reserve(size_t jobs) {
  const std::lock_guard lock(work_mutex_);
  jobs_.reserve(jobs);
}

void MessageThread::submit(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  {
    const std::lock_guard lock(work_mutex_);
    job.runner->begin(job.buffer);
    jobs_.push_back(&job);
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
  try {
    work(stopped);
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    wake_();
  }
}

void MessageThread::work(const std::stop_token& stopped) {
  Idleness idleness;
  while (!stopped.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      bell_.wait(lock, stopped, [this] { return under_way_ > 0; });
    }
    bool has_moved = false;
    {
      const std::lock_guard lock(work_mutex_);
      has_moved = move_messages();
    }
    if (has_moved)
      idleness.reset();
    else
      idleness.pause();
  }
}

/// Whether anything did.
bool MessageThread::move_messages() {
  bool has_moved = false;
  for (size_t i = 0; i < jobs_.size();) {
    Job& job = *jobs_[i];
    const size_t missing = job.runner->missing();
    const bool is_over = job.runner->advance();
    has_moved = has_moved || is_over || job.runner->missing() != missing;
    if (!is_over) {
      ++i;
      continue;
    }
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
    job.deliver();
    {
      const std::lock_guard lock(mutex_);
      --under_way_;
    }
    wake_();
  }
  return has_moved;
}

}  // namespace weft::comm
