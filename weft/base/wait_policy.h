// How long OpenMP's threads spin before they sleep, where they wait for each other.
// libgomp spins for milliseconds. That is fast while every thread has a core of its own. As soon as another process
// wants a core, a thread spins away the time that the thread it waits for needs, and a step takes a hundred times as
// long. With a short spin each wait costs a system call, half as much again for small steps. So weft spins long while
// it is alone, and short while it is not (docs/performance.md, "Shared machines").
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace weft {

/// How much of the cores that this process may use went elsewhere in an interval, in cores.
struct CoreUse {
  double others = 0;  // to other processes
  double idle = 0;
  double all = 1;
};

/// Tells whether others want the cores, by their use in equal intervals of time.
class ContentionJudge {
 public:
  static constexpr int kIntervalMilliseconds = 100;

  /// True while others want the cores: from an interval on in which others computed and hardly a core was idle, until
  /// they have not for a second.
  bool judge(const CoreUse& use);

 private:
  int quiet_intervals_ = 0;
  bool is_contended_ = false;
};

/// While it lives, threads that wait for each other in this process spin only shortly whenever other processes want its
/// cores. Does nothing where the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT, where no thread can be started, and in
/// a build without libgomp. One per process is enough; `weft` has one. Costs a thread that sleeps.
class SpinWatch {
 public:
  SpinWatch();
  ~SpinWatch();
  SpinWatch(const SpinWatch&) = delete;
  SpinWatch& operator=(const SpinWatch&) = delete;

 private:
  class Throttle;
  void watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread watcher_;
};

}  // namespace weft
