// Reads a model's options: NAME=VALUE texts with defaults, limits and clear errors.
#pragma once

#include <string>
#include <vector>

#include "weft/models/model.h"

namespace weft::models {

/// Every function gives the fallback where the option is not set, and throws Error(usage), naming model, option and
/// what it wants, where its text is not of the kind or out of its limits.
class OptionReader {
 public:
  OptionReader(std::string model, const ModelOptions& options) : model_(std::move(model)), options_(options) {}

  int64_t integer(const std::string& name, int64_t fallback, int64_t smallest, int64_t largest) const;
  /// What the data decide, where `by_data` is not 0; another value of the option is an error then.
  int64_t integer_by_data(const std::string& name, int64_t by_data, int64_t fallback, int64_t smallest,
                          int64_t largest) const;
  double number(const std::string& name, double fallback, double smallest, double largest) const;
  /// Separated by commas: "512,256".
  std::vector<int64_t> integers(const std::string& name, std::vector<int64_t> fallback, int64_t smallest,
                                int64_t largest) const;
  /// In [0, 1).
  double probability(const std::string& name, double fallback) const;
  std::string choice(const std::string& name, const std::string& fallback,
                     const std::vector<std::string>& choices) const;

 private:
  const std::string* find(const std::string& name) const;
  [[noreturn]] void reject(const std::string& name, const std::string& wanted) const;

  std::string model_;
  const ModelOptions& options_;
};

/// "width" of "width=16: channels of the first layer".
std::string option_name(const std::string& described);
bool has_option(const ModelEntry& model, const std::string& name);

}  // namespace weft::models
