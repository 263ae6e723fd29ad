#include "weft/library/key.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/parse_number.h"

namespace weft {

namespace {

[[noreturn]] void fail_kind(const Key& key, const KeyValue& value, const std::string& where) {
  fail(ErrorKind::usage, "{}: {} wants {}{}, got {}", where, key.name, kind_of(key), key.automatic ? ", or auto" : "",
       shown(value));
}

void require_range(const Key& key, double value, const std::string& where) {
  if (value >= key.low && value <= key.high) return;  // false for NaN
  if (key.low == kAboveZero)
    fail(ErrorKind::usage, "{}: {} = {} is out of range: above 0, at most {}", where, key.name, value, key.high);
  fail(ErrorKind::usage, "{}: {} = {} is out of range: {} to {}", where, key.name, value, key.low, key.high);
}

void require_choice(const Key& key, const std::string& value, const std::string& where) {
  const auto& choices = key.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
    fail(ErrorKind::usage, "{}: {} = '{}' is not known; choose one of: {}", where, key.name, value,
         fmt::join(choices, ", "));
}

/// "[1, 0.1]" or "1,0.1"
bool parse_list(std::string text, std::vector<double>& list) {
  std::erase(text, ' ');
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::optional<double> number = parse_number<double>(std::string_view(text).substr(begin, end - begin));
    if (!number) return false;
    list.push_back(*number);
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::string_view kind_of(const Key& key) {
  constexpr std::string_view kinds[] = {"a text", "a whole number", "a number", "true or false",
                                        "a list of numbers, such as [1, 0.1]"};
  return key.takes_number ? "a number or a text" : kinds[key.value.index()];
}

std::string shown(const KeyValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("'{}'", *text);
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return fmt::format("[{}]", fmt::join(*list, ", "));
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::get<bool>(value) ? "true" : "false";
}

KeyValue checked_value(const Key& key, const KeyValue& value, const std::string& where) {
  const auto* text = std::get_if<std::string>(&value);
  if (key.automatic && text != nullptr && *text == "auto") return *key.automatic;
  const auto* whole = std::get_if<int64_t>(&value);
  if (std::holds_alternative<double>(key.value) && whole != nullptr)
    return checked_value(key, static_cast<double>(*whole), where);
  const bool is_number = whole != nullptr || std::holds_alternative<double>(value);
  if (key.takes_number && is_number) return checked_value(key, shown(value), where);
  if (value.index() != key.value.index()) fail_kind(key, value, where);
  if (text != nullptr) require_choice(key, *text, where);
  if (whole != nullptr) require_range(key, static_cast<double>(*whole), where);
  if (const auto* real = std::get_if<double>(&value)) require_range(key, *real, where);
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    for (const double element : *list) require_range(key, element, where);
  return value;
}

KeyValue read_value(const Key& key, const std::string& text) {
  std::vector<double> list;
  if (std::holds_alternative<bool>(key.value) && (text == "true" || text == "false")) return text == "true";
  if (std::holds_alternative<int64_t>(key.value))
    if (const std::optional<int64_t> whole = parse_number<int64_t>(text)) return *whole;
  if (std::holds_alternative<double>(key.value))
    if (const std::optional<double> real = parse_number<double>(text)) return *real;
  if (std::holds_alternative<std::vector<double>>(key.value) && parse_list(text, list)) return list;
  return text;
}

}  // namespace weft
