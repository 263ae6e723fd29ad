#include "weft/data/dataset/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/data/texts/csv_reader.h"

namespace weft::data {

bool sort_classes(std::vector<std::string>& names, bool decimal_comma) {
  std::vector<std::pair<double, std::string>> numbers;
  for (const std::string& name : names) {
    double value = 0;
    if (!parse_number(name, decimal_comma, value)) {
      std::sort(names.begin(), names.end());
      return false;
    }
    numbers.emplace_back(value, name);
  }
  std::sort(numbers.begin(), numbers.end());  // "1" before "1.0"
  for (size_t at = 0; at < names.size(); ++at) names[at] = std::move(numbers[at].second);
  return true;
}

std::string class_name(const std::vector<std::string>& names, int64_t index) {
  const auto position = static_cast<size_t>(index);
  return position < names.size() ? names[position] : fmt::format("class {}", index);
}

}  // namespace weft::data
