#include "weft/device/shared_exchanges.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace weft {

void SharedExchanges::add(const SharedExchanges& others) {
  for (const auto& [exchange, seconds] : others.times_) times_[exchange] = seconds;
}

std::optional<double> SharedExchanges::seconds(std::string_view op, int ranks, int64_t bytes) const {
  const std::string name(op);
  auto first = times_.lower_bound({name, ranks, 0});
  double longer = 1;
  if (first == times_.end() || std::get<std::string>(first->first) != name) {
    if (first == times_.begin()) return std::nullopt;
    const Key& largest = std::prev(first)->first;
    if (std::get<std::string>(largest) != name) return std::nullopt;
    const int most = std::get<int>(largest);
    longer = static_cast<double>(ranks) / most;
    first = times_.lower_bound({name, most, 0});
  }
  const int measured = std::get<int>(first->first);
  const auto above = times_.lower_bound({name, measured, bytes});
  if (above == first) return longer * above->second;
  const auto& [below_key, below] = *std::prev(above);
  const auto below_bytes = static_cast<double>(std::get<int64_t>(below_key));
  const double factor = static_cast<double>(bytes) / below_bytes;
  const bool is_beyond =
      above == times_.end() || std::get<std::string>(above->first) != name || std::get<int>(above->first) != measured;
  if (is_beyond) return longer * below * factor;
  const double power =
      std::log(above->second / below) / std::log(static_cast<double>(std::get<int64_t>(above->first)) / below_bytes);
  return longer * below * std::pow(factor, power);
}

}  // namespace weft
