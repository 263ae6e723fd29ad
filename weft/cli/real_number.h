// The check of real numbers on the command line.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace weft::cli {

/// A number in [low, high]. CLI::Range takes "nan" for one, which is neither below nor above.
inline CLI::Validator real_number_in(double low, double high) {
  const auto wrong = [low, high](const std::string& text) {
    double value = 0;
    const bool is_in = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return is_in ? std::string() : fmt::format("'{}' is no number from {:g} to {:g}", text, low, high);
  };
  return {wrong, fmt::format("FLOAT in [{:g} - {:g}]", low, high)};
}

}  // namespace weft::cli
