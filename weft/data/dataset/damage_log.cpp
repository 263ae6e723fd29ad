#include "weft/data/dataset/damage_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "weft/base/error.h"

namespace weft::data {

int64_t parse_damage_limit(const std::string& text, int64_t samples, const std::string& where) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const bool share = unit == "%";
  if (code != std::errc() || !(value >= 0) || (share ? value > 100 : !unit.empty() || value != std::floor(value)))
    fail(ErrorKind::usage, "{}: '{}' is no number of records; wants a whole number, or a share such as 1%", where,
         text);
  const double most = share ? value / 100 * static_cast<double>(samples) : value;
  return static_cast<int64_t>(std::min(most, static_cast<double>(samples)));
}

void DamageLog::add(int64_t number, const std::string& message) const {
  {
    const std::lock_guard lock(mutex_);
    if (!known_[static_cast<size_t>(number)].exchange(true)) {
      damaged_.push_back({number, message});
      ++count_;
    }
  }
  require_limit();
}

void DamageLog::require_limit() const {
  if (count_ <= limit_) return;
  constexpr size_t kShown = 3;
  std::string shown;
  const std::vector<DamagedSample> found = all();
  for (size_t at = 0; at < std::min(kShown, found.size()); ++at) shown += (at == 0 ? "" : "; ") + found[at].message;
  fail(ErrorKind::data, "[{}] {} of the {} {} are damaged, {}={} may be: {}{}; {}", words_.kind, count_.load(),
       samples_, words_.things, kDamageOption, limit_, shown, found.size() > kShown ? "; ..." : "", words_.next_step);
}

std::vector<DamagedSample> DamageLog::all() const {
  std::vector<DamagedSample> found;
  {
    const std::lock_guard lock(mutex_);
    found = damaged_;
  }
  std::sort(found.begin(), found.end(),
            [](const DamagedSample& one, const DamagedSample& other) { return one.number < other.number; });
  return found;
}

}  // namespace weft::data
