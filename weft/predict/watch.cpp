#include "weft/predict/watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"

namespace weft::predict {

namespace {

constexpr double kSlack = 1.05;            // of the range's ends: what is hardly outside is not worth a line
constexpr double kMuchSlower = 1.5;        // than at the beginning of the stage
constexpr double kLeastSeconds = 2;        // for which steps have to be outside: less is a moment
constexpr double kVagueSpread = 0.35;      // from which on a range is of rates alone, and says little
constexpr double kMemorySlack = 1.1;       // of all planned memory
constexpr int64_t kMemoryRest = 96 << 20;  // of the C library, threads, code

}  // namespace

Watch::Watch(Prediction prediction) : prediction_(std::move(prediction)) {}

const StagePrediction* Watch::stage_of(int64_t step) const {
  const StagePrediction* found = nullptr;
  for (const StagePrediction& stage : prediction_.stages)
    if (stage.first_step <= step) found = &stage;
  return found;
}

bool Watch::add(int64_t step, double seconds) {
  if (const StagePrediction* stage = stage_of(step); stage != stage_) {
    stage_ = stage;
    count_ = 0;
    skipped_ = 0;
    first_median_ = 0;
    outside_ = slower_ = {};
  }
  if (stage_ == nullptr || skipped_++ < kFirstSteps) return false;
  window_[count_++] = seconds;
  if (count_ < kWindow) return false;
  count_ = 0;
  const auto middle = window_.begin() + kWindow / 2;
  std::nth_element(window_.begin(), middle, window_.end());
  median_ = *middle;
  if (first_median_ == 0) first_median_ = median_;
  return true;
}

bool Watch::lasts(Since& since, bool is_so, int64_t step) const {
  if (!is_so) {
    since = {};
    return false;
  }
  if (since.seconds == 0) since.step = step + 1 - static_cast<int64_t>(kWindow);
  since.seconds += median_ * static_cast<double>(kWindow);
  return since.seconds >= kLeastSeconds;
}

std::optional<std::string> Watch::on_step(int64_t step, double seconds) {
  const auto count = [seconds](Taken& taken) {
    ++taken.steps;
    taken.seconds += seconds;
  };
  count(all_);
  if (all_.steps > kFirstSteps) count(steady_);
  if (!add(step, seconds)) return std::nullopt;
  const Interval range = stage_->step();
  const bool is_slow = median_ > kSlack * range.high, is_fast = kSlack * median_ < range.low;
  const bool is_outside = stage_->time.spread < kVagueSpread && (is_slow || is_fast);
  if (lasts(outside_, is_outside, step) && !said_range_) {
    said_range_ = true;
    said_slower_ = said_slower_ || is_slow;
    return fmt::format("steps take {} since step {}, {} than predicted: {}; {}", human_duration(median_), outside_.step,
                       is_slow ? "more" : "less", in_words(range),
                       is_slow ? "see whether other programs use these cores or links, and `weft explain` where the "
                                 "time goes"
                               : "`weft rates --ops` measures this machine anew");
  }
  if (lasts(slower_, median_ > kMuchSlower * first_median_, step) && !said_slower_) {
    said_slower_ = true;
    return fmt::format(
        "steps take {} since step {}, {:.1f} times as long as before ({}; predicted {}); see whether other programs "
        "use these cores or links",
        human_duration(median_), slower_.step, median_ / first_median_, human_duration(first_median_), in_words(range));
  }
  return std::nullopt;
}

std::optional<double> Watch::run_seconds() const {
  if (steady_.steps == 0) return std::nullopt;
  const auto steps = static_cast<double>(prediction_.steps());
  const double beside = beside_.steps == 0 ? prediction_.evaluation_seconds.expected
                                           : beside_.seconds * steps / static_cast<double>(beside_.steps);
  return steady_.seconds / static_cast<double>(steady_.steps) * steps + beside;
}

bool Watch::is_news(int64_t grown_bytes) const {
  const auto planned = static_cast<double>(prediction_.memory.total());
  const double most = kMemorySlack * planned + static_cast<double>(kMemoryRest);
  return !said_memory_ && static_cast<double>(grown_bytes) > most;
}

std::optional<std::string> Watch::on_memory(int64_t step, int64_t grown_bytes) {
  if (!is_news(grown_bytes)) return std::nullopt;
  said_memory_ = true;
  const auto planned = static_cast<double>(prediction_.memory.total());
  return fmt::format(
      "at step {} the run takes {} of memory, more than the {} that are planned: something beside the plan keeps "
      "memory, such as the reading of the data",
      step, human_bytes(static_cast<double>(grown_bytes)), human_bytes(planned));
}

}  // namespace weft::predict
