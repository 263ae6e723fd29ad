// The report of `weft eval` on each class: scores and confusions, as text, JSON and CSV.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "weft/train/confusion_matrix.h"

namespace weft::report {

/// There may be fewer names than classes: the others are called "class 3".
struct ClassReport {
  train::ConfusionMatrix matrix;
  std::vector<std::string> names;

  std::string name(int64_t label) const;
  /// Tables for the terminal: the scores of every class and the whole matrix or, of many classes, the worst of both.
  std::string text() const;
  /// Adds "classes", "mean_...", "most_confused" and, of no more than a hundred classes, "confusion_matrix".
  void add_to(nlohmann::ordered_json& root) const;
  /// The whole matrix: a line of the predicted classes' names, then a line per true class. RFC 4180.
  void write_csv(const std::filesystem::path& path) const;
};

}  // namespace weft::report
