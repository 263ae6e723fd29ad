// Reads the keys of one section of a machine file, with errors that name the key and the next step, and knows at the
// end which keys nobody asked for. For the files that parse machine files.
#pragma once

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft::machines {

class SectionReader {
 public:
  /// `section`: null where the file has none of that name; an empty name is the file itself.
  SectionReader(const toml::table* section, std::string path, std::string name)
      : section_(section), path_(std::move(path)), name_(std::move(name)) {}

  bool is_there() const { return section_ != nullptr; }
  std::string key(const std::string& key) const { return name_.empty() ? key : name_ + "." + key; }

  /// Above 0; Error(data) with `next_step` where it is missing.
  double positive(const char* key, const char* next_step) {
    const std::optional<double> value = number(key);
    if (!value) missing(key, next_step);
    if (!(*value > 0)) wrong(key, "has to be a number above 0", next_step);
    return *value;
  }
  double positive_or(const char* key, double fallback, const char* next_step) {
    return has(key) ? positive(key, next_step) : (known_.emplace_back(key), fallback);
  }
  /// 0 or above.
  double at_least_zero_or(const char* key, double fallback, const char* next_step) {
    const std::optional<double> value = number(key);
    if (value && !(*value >= 0)) wrong(key, "has to be a number, 0 or above", next_step);
    return value.value_or(fallback);
  }
  int count_or(const char* key, int fallback, const char* next_step) {
    known_.emplace_back(key);
    if (!has(key)) return fallback;
    const std::optional<int64_t> value = (*section_)[key].value_exact<int64_t>();
    if (!value || *value < 1 || *value > 10'000'000) wrong(key, "has to be a whole number from 1 on", next_step);
    return static_cast<int>(*value);
  }
  std::string text_or(const char* key, const std::string& fallback) {
    known_.emplace_back(key);
    if (!has(key)) return fallback;
    const std::optional<std::string> value = (*section_)[key].value_exact<std::string>();
    if (!value) wrong(key, "has to be a text in quotes", "");
    return *value;
  }
  /// Empty where it is missing.
  std::vector<double> numbers(const char* key, const char* next_step) {
    known_.emplace_back(key);
    if (!has(key)) return {};
    const toml::array* const list = (*section_)[key].as_array();
    std::vector<double> all;
    if (list == nullptr) wrong(key, "has to be a list of numbers", next_step);
    for (const toml::node& item : *list) {
      const std::optional<double> value = item.value<double>();
      if (!value || !std::isfinite(*value)) wrong(key, "has to be a list of numbers", next_step);
      all.push_back(*value);
    }
    return all;
  }
  bool has(const char* key) const { return section_ != nullptr && section_->contains(key); }
  void knows(const char* key) { known_.emplace_back(key); }

  /// Error(data) for a key that was not asked for.
  void refuse_others() const {
    if (section_ == nullptr) return;
    for (const auto& [name, value] : *section_)
      if (std::find(known_.begin(), known_.end(), name.str()) == known_.end())
        fail(ErrorKind::data, "'{}', line {}: there is no key '{}'{}", path_,
             static_cast<int64_t>(value.source().begin.line), key(std::string(name.str())),
             suggestion(std::string(name.str()), known_));
  }

  [[noreturn]] void missing(const char* name, const char* next_step) const {
    fail(ErrorKind::data, "'{}': {} is missing; {}", path_, key(name), next_step);
  }
  [[noreturn]] void wrong(const char* name, const std::string& what, const std::string& next_step) const {
    fail(ErrorKind::data, "{}: {} {}{}{}", place_of(name), key(name), what, next_step.empty() ? "" : "; ", next_step);
  }

 private:
  /// What is wrong may be that the key is missing: then there is no line.
  std::string place_of(const char* name) const {
    const toml::node* const node = section_ == nullptr ? nullptr : section_->get(name);
    if (node == nullptr) return fmt::format("'{}'", path_);
    return fmt::format("'{}', line {}", path_, static_cast<int64_t>(node->source().begin.line));
  }
  std::optional<double> number(const char* key) {
    known_.emplace_back(key);
    if (!has(key)) return std::nullopt;
    const std::optional<double> value = (*section_)[key].value<double>();
    if (!value || !std::isfinite(*value)) wrong(key, "has to be a number", "");
    return value;
  }

  const toml::table* section_;
  std::string path_, name_;
  std::vector<std::string> known_;
};

/// Error(data) with the line of what is no TOML.
toml::table parse_machine_file(std::string_view text, const std::string& path);
/// null where the file has no such section; Error(data) where the key is no section.
const toml::table* section_of(const toml::table& file, const char* name, const std::string& path);

}  // namespace weft::machines
