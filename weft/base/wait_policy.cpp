#include "weft/base/wait_policy.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace weft {

namespace {

#if defined(_OPENMP) && defined(__GNUC__) && !defined(__clang__)
constexpr bool kHasLibgomp = true;
#else
constexpr bool kHasLibgomp = false;
#endif

bool user_has_chosen() { return std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr; }

double own_seconds() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Seconds that the cores of this process's affinity mask have computed and been idle since the system began.
struct CoreTimes {
  double busy = 0, idle = 0;
  int cores = 0;
};

/// /proc/stat: "cpu3 user nice system idle iowait irq softirq ..." in ticks (proc(5)). No cores where it says nothing.
CoreTimes read_core_times() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  CoreTimes times;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return times;
  const double tick = 1.0 / static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  std::ifstream lines("/proc/stat");
  for (std::string line; std::getline(lines, line) && line.starts_with("cpu");) {
    std::istringstream words(line.substr(3));
    int core = 0;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft_irq = 0;
    if (line[3] == ' ' || !(words >> core >> user >> nice >> system >> idle >> wait >> irq >> soft_irq)) continue;
    if (core >= CPU_SETSIZE || !CPU_ISSET(core, &allowed)) continue;
    times.busy += tick * (user + nice + system + irq + soft_irq);
    times.idle += tick * (idle + wait);
    ++times.cores;
  }
  return times;
}

/// Asked again and again, gives the use since the last time.
class CoreMeter {
 public:
  CoreMeter() { measure(); }
  CoreUse measure() {
    const auto now = std::chrono::steady_clock::now();
    const CoreTimes times = read_core_times();
    const double own = own_seconds(), seconds = std::chrono::duration<double>(now - last_time_).count();
    CoreUse use{.others = 0, .idle = 0, .all = static_cast<double>(times.cores)};
    if (seconds > 0 && times.cores > 0) {
      use.others = std::max(0.0, times.busy - last_.busy - (own - last_own_)) / seconds;
      use.idle = std::max(0.0, times.idle - last_.idle) / seconds;
    }
    last_time_ = now;
    last_ = times;
    last_own_ = own;
    return use;
  }

 private:
  std::chrono::steady_clock::time_point last_time_ = std::chrono::steady_clock::now();
  CoreTimes last_ = {};
  double last_own_ = 0;
};

}  // namespace

bool ContentionJudge::judge(const CoreUse& use) {
  // The system itself takes some hundredths of a core, and ticks count in hundredths of a second.
  constexpr double kOthers = 0.25, kFewOthers = 0.1, kNoIdle = 0.15, kMuchIdle = 0.3;
  constexpr int kQuietIntervals = 10;
  const bool is_quiet = use.others < kFewOthers || use.idle > kMuchIdle * use.all;
  quiet_intervals_ = is_quiet ? quiet_intervals_ + 1 : 0;
  if (use.others > kOthers && use.idle < kNoIdle * use.all) is_contended_ = true;
  if (quiet_intervals_ >= kQuietIntervals) is_contended_ = false;
  return is_contended_;
}

/// More threads of OpenMP than cores, all asleep: then libgomp's waits spin a hundred times only (its manual,
/// "GOMP_SPINCOUNT"). They belong to a thread of their own, and end with it.
class SpinWatch::Throttle {
 public:
  Throttle() : owner_([this] { hold(); }) {}
  ~Throttle() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    owner_.join();
  }
  Throttle(const Throttle&) = delete;
  Throttle& operator=(const Throttle&) = delete;

 private:
  void hold() {
#ifdef _OPENMP
    [[maybe_unused]] const int threads = omp_get_num_procs() + 1;
#pragma omp parallel num_threads(threads)
    started_.fetch_add(1, std::memory_order_relaxed);
#endif
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::atomic<int> started_ = 0;  // so that the compiler keeps the threads
  std::thread owner_;             // last: begins when all else is there
};

SpinWatch::SpinWatch() {
  if (!kHasLibgomp || user_has_chosen()) return;
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {  // no thread is left for it: waits then spin as libgomp has it
  }
}

SpinWatch::~SpinWatch() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  watcher_.join();
}

void SpinWatch::watch() {
  ContentionJudge judge;
  CoreMeter meter;
  std::unique_ptr<Throttle> throttle;
  std::unique_lock lock(mutex_);
  const auto interval = std::chrono::milliseconds(ContentionJudge::kIntervalMilliseconds);
  while (!changed_.wait_for(lock, interval, [this] { return ends_; })) {
    const bool is_contended = judge.judge(meter.measure());
    if (!is_contended) throttle.reset();
    if (!is_contended || throttle != nullptr) continue;
    try {
      throttle = std::make_unique<Throttle>();
    } catch (const std::system_error&) {
      return;
    }
  }
}

}  // namespace weft
