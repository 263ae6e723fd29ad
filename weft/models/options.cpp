#include "weft/models/options.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/parse_number.h"

namespace weft::models {

std::string option_name(const std::string& described) { return described.substr(0, described.find('=')); }

bool has_option(const ModelEntry& model, const std::string& name) {
  return std::any_of(model.options.begin(), model.options.end(),
                     [&](const std::string& described) { return option_name(described) == name; });
}

const std::string* OptionReader::find(const std::string& name) const {
  const auto found = options_.find(name);
  return found == options_.end() ? nullptr : &found->second;
}

void OptionReader::reject(const std::string& name, const std::string& wanted) const {
  fail(ErrorKind::usage, "[{}] option {} wants {}, got '{}'", model_, name, wanted, options_.at(name));
}

int64_t OptionReader::integer(const std::string& name, int64_t fallback, int64_t smallest, int64_t largest) const {
  const std::string* text = find(name);
  if (text == nullptr) return fallback;
  const auto number = parse_number<int64_t>(*text);
  if (!number || *number < smallest || *number > largest) {
    reject(name, fmt::format("a whole number from {} to {}", smallest, largest));
  }
  return *number;
}

int64_t OptionReader::integer_by_data(const std::string& name, int64_t by_data, int64_t fallback, int64_t smallest,
                                      int64_t largest) const {
  const int64_t value = integer(name, by_data > 0 ? by_data : fallback, smallest, largest);
  if (by_data > 0 && value != by_data) reject(name, fmt::format("{}, as the data have it; leave it away", by_data));
  return value;
}

double OptionReader::number(const std::string& name, double fallback, double smallest, double largest) const {
  const std::string* text = find(name);
  if (text == nullptr) return fallback;
  const auto number = parse_number<double>(*text);
  if (!number || !(*number >= smallest && *number <= largest)) {
    reject(name, fmt::format("a number from {} to {}", smallest, largest));
  }
  return *number;
}

std::vector<int64_t> OptionReader::integers(const std::string& name, std::vector<int64_t> fallback, int64_t smallest,
                                            int64_t largest) const {
  const std::string* text = find(name);
  if (text == nullptr) return fallback;
  std::vector<int64_t> numbers;
  for (size_t begin = 0; begin <= text->size();) {
    const size_t end = std::min(text->find(',', begin), text->size());
    const auto number = parse_number<int64_t>(std::string_view(*text).substr(begin, end - begin));
    if (!number || *number < smallest || *number > largest) {
      reject(name, fmt::format("whole numbers from {} to {}, separated by commas", smallest, largest));
    }
    numbers.push_back(*number);
    begin = end + 1;
  }
  return numbers;
}

double OptionReader::probability(const std::string& name, double fallback) const {
  const std::string* text = find(name);
  if (text == nullptr) return fallback;
  const auto number = parse_number<double>(*text);
  if (!number || !(*number >= 0 && *number < 1)) reject(name, "a number from 0 to below 1");
  return *number;
}

std::string OptionReader::choice(const std::string& name, const std::string& fallback,
                                 const std::vector<std::string>& choices) const {
  const std::string* text = find(name);
  if (text == nullptr) return fallback;
  if (std::find(choices.begin(), choices.end(), *text) == choices.end()) {
    reject(name, fmt::format("one of {}", fmt::join(choices, ", ")));
  }
  return *text;
}

}  // namespace weft::models
