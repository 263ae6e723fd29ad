#include "weft/base/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

namespace weft {

namespace {

/// Three significant digits; `value` is below 1000 unless the largest unit is exceeded.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/// Divides by 1000 until the value prints below 1000 (999.7 prints as 1000, so it goes on to 1.00 of the next unit).
template <size_t units>
std::string scaled(double value, const char* const (&names)[units], const char* separator) {
  size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < units) {
    value /= 1000;
    ++unit;
  }
  const std::string digits =
      unit == 0 && value == std::round(value) ? fmt::format("{:.0f}", value) : three_digits(value);
  return fmt::format("{}{}{}", digits, separator, names[unit]);
}

}  // namespace

std::string human_bytes(double bytes) {
  if (!std::isfinite(bytes)) return "?";
  return scaled(bytes, {"B", "kB", "MB", "GB", "TB", "PB", "EB"}, " ");
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  double factor = 1;
  if (constexpr std::string_view kPrefixes = "kMGT"; unit.size() > 1) {
    const char first = unit[0] == 'K' ? 'k' : unit[0];
    const size_t power = kPrefixes.find(first);
    if (power == std::string_view::npos) return std::nullopt;
    unit.remove_prefix(1);
    const bool is_binary = unit.starts_with('i');
    if (is_binary) unit.remove_prefix(1);
    factor = std::pow(is_binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  if (!unit.empty() && unit != "B") return std::nullopt;
  const double bytes = std::round(number * factor);
  if (!(bytes >= 1 && bytes <= 0x1p62)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::optional<double> parse_duration(std::string_view text) {
  double seconds = 0;
  for (bool is_first = true; !text.empty(); is_first = false) {
    double number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty() && !is_first) return std::nullopt;  // "1h 30": of what?
    const size_t unit = text.empty() ? 0 : std::string_view("smhd").find(text.front());
    if (unit == std::string_view::npos) return std::nullopt;
    constexpr double kSeconds[] = {1, 60, 3600, 86400};
    seconds += number * kSeconds[unit];
    if (!text.empty()) text.remove_prefix(1);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (!(seconds > 0 && std::isfinite(seconds))) return std::nullopt;
  return seconds;
}

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.2f} %", 100 * *share) : "-"; }

std::string human_count(double count) {
  if (!std::isfinite(count)) return "?";
  return scaled(count, {"", "k", "M", "G", "T", "P", "E"}, "");
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.9995)
    return fmt::format(
        "{} ms", seconds < 9.995e-3 ? fmt::format("{:.1f}", seconds * 1e3) : fmt::format("{:.0f}", seconds * 1e3));
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  if (seconds > 1e15) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}m {:02d}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h {:02d}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d {:02d}h", whole / 86400, whole / 3600 % 24);
}

std::string printable(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    // U+0080 to U+009f are control characters of two bytes in UTF-8.
    const auto next = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : 0);
    const bool is_long_control = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (is_long_control) ++at;
    if (is_long_control || byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t'))
      shown += fmt::format("\\x{:02x}", is_long_control ? next : byte);
    else
      shown += text[at];
  }
  return shown;
}

std::string quoted_for_shell(const std::string& text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || (c != '\0' && std::strchr("_-./+=:,%@", c) != nullptr);
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace weft
