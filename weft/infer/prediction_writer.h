// Predictions as a program reads them: JSON, JSON Lines or CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weft::infer {

class PredictionWriter {
 public:
  /// "text": nothing is written here. Of the others, "jsonl" and "csv" come as the files do.
  explicit PredictionWriter(std::string format) : format_(std::move(format)) {}

  /// What was predicted of a file: an object with "file", and perhaps a list "rows" or "lines" with an object for each.
  void add(nlohmann::ordered_json of_file);
  void finish();

 private:
  void write(const nlohmann::ordered_json& prediction);

  const std::string format_;
  nlohmann::ordered_json all_ = nlohmann::ordered_json::array();
  std::vector<std::string> columns_;  // of CSV: those of the first prediction
};

}  // namespace weft::infer
