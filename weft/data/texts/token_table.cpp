#include "weft/data/texts/token_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/data/texts/utf8.h"

namespace weft::data {

namespace {

constexpr size_t kMostTokens = 65536;  // they are kept as 16 bits

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// ASCII marks that stand alone.
bool is_mark(char c) {
  const bool punctuation =
      (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return punctuation && c != '\'' && c != '-' && c != '_';
}

/// Calls visit(unit) for the units of a text in their order.
template <typename Visit>
void for_each_unit(std::string_view text, TextUnit unit, const std::string& name, const Visit& visit) {
  if (unit == TextUnit::character) {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      next_code_point(text, at, name);
      visit(text.substr(begin, at - begin));
    }
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at++;
    if (is_blank(text[begin])) continue;
    if (!is_mark(text[begin]))
      while (at < text.size() && !is_blank(text[at]) && !is_mark(text[at])) ++at;
    visit(text.substr(begin, at - begin));
  }
}

}  // namespace

std::string_view name_of(TextUnit unit) { return unit == TextUnit::word ? "word" : "character"; }

int64_t count_units(std::string_view text, TextUnit unit) {
  int64_t count = 0;
  for_each_unit(text, unit, "", [&](std::string_view) { ++count; });
  return count;
}

std::string describe_lengths(std::vector<int64_t> lengths, TextUnit unit) {
  check(!lengths.empty(), "lengths of some texts");
  std::sort(lengths.begin(), lengths.end());
  const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0), count = static_cast<double>(lengths.size());
  return fmt::format("{} to {} {}s, 99 % up to {}, mean {:.1f}", lengths.front(), lengths.back(), name_of(unit),
                     lengths[(lengths.size() - 1) * 99 / 100], sum / count);
}

TokenTable TokenTable::learn(const std::vector<std::string_view>& texts, TextUnit unit,
                             const std::vector<std::string>& special, const Limits& limits, const std::string& name) {
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string_view text : texts)
    for_each_unit(text, unit, name, [&](std::string_view found) { ++counts[std::string(found)]; });
  std::vector<std::pair<std::string, int64_t>> units(counts.begin(), counts.end());
  std::erase_if(units, [&](const auto& entry) { return entry.second < limits.at_least; });
  if (units.empty() && !counts.empty())
    fail(ErrorKind::data, "{}: no {} stands there {} times, so that none would be known; give more texts{}", name,
         name_of(unit), limits.at_least, unit == TextUnit::word ? ", or say unit=character" : "");
  if (static_cast<int64_t>(units.size()) > limits.most) {
    std::sort(units.begin(), units.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    units.resize(static_cast<size_t>(limits.most));
  }
  std::vector<std::string> names = special;
  for (const auto& [text, count] : units) names.push_back(text);
  // Bytewise, which for UTF-8 is the order of the code points.
  std::sort(names.begin() + static_cast<std::ptrdiff_t>(special.size()), names.end());
  return TokenTable(std::move(names), special.size(), unit, name);
}

TokenTable::TokenTable(std::vector<std::string> names, size_t special, TextUnit unit, const std::string& name)
    : names_(std::move(names)), special_(special), unit_(unit) {
  if (names_.size() <= special_ || names_.size() > kMostTokens)
    fail(ErrorKind::data, "{}: a vocabulary of {} {}s; want 1 to {}", name,
         names_.size() - std::min(special_, names_.size()), name_of(unit_), kMostTokens - special_);
  for (size_t token = special_; token < names_.size(); ++token)
    if (names_[token].empty() || !tokens_.emplace(names_[token], static_cast<uint16_t>(token)).second)
      fail(ErrorKind::data, "{}: the vocabulary is damaged: '{}' is there twice or empty", name, names_[token]);
}

std::string TokenTable::describe() const {
  constexpr size_t kShown = 100;
  const size_t units = names_.size() - special_;
  std::string text = fmt::format("{} {}{}", units, name_of(unit_), units == 1 ? "" : "s");
  if (unit_ == TextUnit::character && units <= kShown)
    text += fmt::format(": {}", fmt::join(names_.begin() + static_cast<std::ptrdiff_t>(special_), names_.end(), ""));
  return text;
}

std::vector<uint16_t> TokenTable::encode(std::string_view text, const std::string& where, int32_t unknown) const {
  std::vector<uint16_t> tokens;
  for_each_unit(text, unit_, where, [&](std::string_view found) {
    const auto known = tokens_.find(std::string(found));
    if (known == tokens_.end() && unknown < 0)
      fail(ErrorKind::data, "{}: the {} '{}' is not among the {} that the model knows; replace it", where,
           name_of(unit_), found, names_.size() - special_);
    tokens.push_back(known == tokens_.end() ? static_cast<uint16_t>(unknown) : known->second);
  });
  return tokens;
}

std::string TokenTable::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    check(token >= 0 && token < size(), "a token of the vocabulary");
    if (token < static_cast<int32_t>(special_)) continue;
    if (unit_ == TextUnit::word && !text.empty()) text += ' ';
    text += names_[static_cast<size_t>(token)];
  }
  return text;
}

}  // namespace weft::data
