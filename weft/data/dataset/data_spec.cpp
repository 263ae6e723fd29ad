#include "weft/data/dataset/data_spec.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/base/parse_number.h"

namespace weft::data {

namespace {

constexpr std::pair<const char*, char> kEscapes[] = {{"%25", '%'}, {"%26", '&'}, {"%3F", '?'}, {"%3f", '?'}};

/// The oldest kinds have none: what looks like one belongs to a path.
bool takes_options(const std::string& kind) { return kind != "fashion-mnist" && kind != "idx" && kind != "cifar10"; }

std::string unescape(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto* escape = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                      [&](const auto& known) { return text.compare(at, 3, known.first) == 0; });
    const bool found = escape != std::end(kEscapes);
    out += found ? escape->second : text[at];
    at += found ? 3 : 1;
  }
  return out;
}

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "%26" : c == '?' ? "%3F" : c == '%' ? "%25" : std::string(1, c);
  return out;
}

template <typename Number>
bool parse_whole(const std::string& text, Number& number) {
  const std::optional<Number> parsed = weft::parse_number<Number>(text);
  if (parsed) number = *parsed;
  return parsed.has_value();
}

}  // namespace

DataSpec parse_data_spec(const std::string& text) {
  const size_t colon = text.find(':');
  DataSpec spec{
      .kind = text.substr(0, colon), .argument = colon == text.npos ? "" : text.substr(colon + 1), .options = {}};
  const size_t mark = spec.argument.rfind('?');
  if (!takes_options(spec.kind) || mark == std::string::npos) return spec;
  const std::string options = spec.argument.substr(mark + 1);
  spec.argument.resize(mark);
  for (size_t begin = 0; begin < options.size();) {
    const size_t end = std::min(options.find('&', begin), options.size());
    const std::string option = options.substr(begin, end - begin);
    const size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0)
      fail(ErrorKind::usage,
           "[{}] '{}' is no option: write NAME=VALUE, several with & between them (a path that holds a ? needs another "
           "? "
           "behind it)",
           spec.kind, option);
    spec.options.emplace_back(option.substr(0, equals), unescape(option.substr(equals + 1)));
    begin = end + 1;
  }
  return spec;
}

std::string print_data_spec(const DataSpec& spec) {
  std::string text = spec.kind;
  if (!spec.argument.empty() || !spec.options.empty()) text += ":" + spec.argument;
  char separator = '?';
  for (const auto& [name, value] : spec.options) {
    text += separator + name + "=" + escape(value);
    separator = '&';
  }
  const bool needs_end = spec.options.empty() && takes_options(spec.kind) && spec.argument.find('?') != text.npos;
  return needs_end ? text + "?" : text;
}

bool has_option(const std::string& text, const std::string& name) {
  const DataSpec spec = parse_data_spec(text);
  return std::any_of(spec.options.begin(), spec.options.end(), [&](const auto& one) { return one.first == name; });
}

std::string with_option(const std::string& text, const std::string& name, const std::string& value) {
  DataSpec spec = parse_data_spec(text);
  std::erase_if(spec.options, [&](const auto& option) { return option.first == name; });
  spec.options.emplace_back(name, value);
  const std::string changed = print_data_spec(spec);
  if (parse_data_spec(changed).options.size() != spec.options.size())
    fail(ErrorKind::usage, "data '{}' lies in memory and has no option '{}'; leave it away", text, name);
  return changed;
}

SpecOptions::SpecOptions(const DataSpec& spec, const std::vector<std::string>& known) : spec_(spec) {
  std::vector<std::string> seen;
  for (const auto& [name, value] : spec.options) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(ErrorKind::usage, "[{}] there is no option '{}'{}", spec.kind, name, suggestion(name, known));
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      fail(ErrorKind::usage, "[{}] the option '{}' is given twice; leave one away", spec.kind, name);
    seen.push_back(name);
  }
}

void SpecOptions::reject(const std::string& name, const std::string& wanted) const {
  fail(ErrorKind::usage, "[{}] {}={}: wants {}", spec_.kind, name, *find(name), wanted);
}

std::optional<std::string> SpecOptions::find(const std::string& name) const {
  for (const auto& [key, value] : spec_.options)
    if (key == name) return value;
  return std::nullopt;
}

int64_t SpecOptions::integer(const std::string& name, int64_t fallback, int64_t low, int64_t high) const {
  const std::optional<std::string> given = find(name);
  if (!given) return fallback;
  int64_t value = 0;
  if (!parse_whole(*given, value) || value < low || value > high)
    reject(name, fmt::format("a whole number from {} to {}", low, high));
  return value;
}

double SpecOptions::fraction(const std::string& name, double fallback) const {
  const std::optional<std::string> given = find(name);
  if (!given) return fallback;
  double value = 0;
  if (!parse_whole(*given, value) || !(value >= 0 && value < 1)) reject(name, "a number from 0 to below 1");
  return value;
}

std::string SpecOptions::choice(const std::string& name, const std::string& fallback,
                                const std::vector<std::string>& choices) const {
  const std::optional<std::string> given = find(name);
  if (!given) return fallback;
  if (std::find(choices.begin(), choices.end(), *given) == choices.end())
    reject(name, fmt::format("one of: {}", fmt::join(choices, " ")));
  return *given;
}

std::optional<std::vector<std::string>> SpecOptions::list(const std::string& name) const {
  const std::optional<std::string> given = find(name);
  if (!given) return std::nullopt;
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= given->size();) {
    const size_t end = std::min(given->find(',', begin), given->size());
    items.push_back(given->substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

}  // namespace weft::data
