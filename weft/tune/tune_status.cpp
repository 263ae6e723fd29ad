#include "weft/tune/tune_status.h"

#include <algorithm>

namespace weft::tune {

TuneStatus status_of(const StudySettings& settings, const std::vector<StudyTrial>& trials, int64_t wanted,
                     int64_t places, std::optional<double> seconds_left) {
  TuneStatus status{.wanted = wanted, .best = best_trial(settings, trials), .seconds_left = seconds_left};
  double seconds = 0;
  for (const StudyTrial& trial : trials) {
    status.running += trial.state == StudyTrial::State::running;
    status.failed += trial.state == StudyTrial::State::failed;
    status.refused += trial.state == StudyTrial::State::refused;
    status.done += trial.state != StudyTrial::State::running && trial.state != StudyTrial::State::refused &&
                   trial.state != StudyTrial::State::interrupted;
    seconds += trial.seconds;
  }
  if (wanted > 0 && status.done > 0) {
    const double left = static_cast<double>(std::max<int64_t>(0, wanted - status.done)) * seconds /
                        static_cast<double>(status.done * std::max<int64_t>(1, places));
    status.seconds_left = std::min(left, status.seconds_left.value_or(left));
  }
  return status;
}

}  // namespace weft::tune
