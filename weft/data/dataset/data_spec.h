// The text that names a data set, "csv:FILE?label=COL&split=0.1", taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::data {

struct DataSpec {
  std::string kind;      // "csv"
  std::string argument;  // "FILE": what stands before the last '?', but for kinds without options (idx, cifar10)
  std::vector<std::pair<std::string, std::string>> options;
};

/// In values, %26 stands for &, %3F for ?, %25 for %. Error(usage) for an option without "=".
DataSpec parse_data_spec(const std::string& text);
/// Reverses it.
std::string print_data_spec(const DataSpec& spec);
bool has_option(const std::string& text, const std::string& name);
/// `text` with one option given or replaced. Error(usage) where its kind has no options.
std::string with_option(const std::string& text, const std::string& name, const std::string& value);

/// The options of a spec, by name. All messages begin with the kind.
class SpecOptions {
 public:
  /// Error(usage) for an option that is not known, with the nearest, or that is given twice.
  SpecOptions(const DataSpec& spec, const std::vector<std::string>& known);

  const std::string& kind() const { return spec_.kind; }
  std::optional<std::string> find(const std::string& name) const;
  std::string text(const std::string& name, const std::string& fallback) const { return find(name).value_or(fallback); }
  /// Error(usage) for anything but a whole number in [low, high].
  int64_t integer(const std::string& name, int64_t fallback, int64_t low, int64_t high) const;
  /// Error(usage) for anything but a number in [0, 1).
  double fraction(const std::string& name, double fallback) const;
  /// Error(usage) with the choices.
  std::string choice(const std::string& name, const std::string& fallback,
                     const std::vector<std::string>& choices) const;
  /// Separated by commas.
  std::optional<std::vector<std::string>> list(const std::string& name) const;

 private:
  [[noreturn]] void reject(const std::string& name, const std::string& wanted) const;
  DataSpec spec_;
};

}  // namespace weft::data
