#include "weft/infer/prediction_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace weft::infer {

namespace {

using nlohmann::ordered_json;

/// A field of CSV (RFC 4180, section 2).
std::string csv_field(const ordered_json& value) {
  const std::string text =
      value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

/// Column and value. Of classes the likeliest; of several values each, by its name where it has one.
std::vector<std::pair<std::string, ordered_json>> cells_of(const ordered_json& prediction) {
  std::vector<std::pair<std::string, ordered_json>> cells;
  for (const auto& [name, value] : prediction.items()) {
    if (name == "classes" && value.is_array()) {
      if (value.empty()) continue;
      for (const auto& [of_class, member] : value.front().items())
        cells.emplace_back(of_class == "name" ? "prediction" : of_class, member);
    } else if (value.is_object()) {
      for (const auto& [of_value, member] : value.items()) cells.emplace_back(of_value, member);
    } else if (value.is_array()) {
      for (size_t at = 0; at < value.size(); ++at) cells.emplace_back(fmt::format("{}_{}", name, at + 1), value[at]);
    } else {
      cells.emplace_back(name, value);
    }
  }
  return cells;
}

}  // namespace

void PredictionWriter::add(ordered_json of_file) {
  if (format_ == "text") return;
  if (format_ == "json") {
    all_.push_back(std::move(of_file));
    return;
  }
  for (const char* list : {"rows", "lines"}) {
    if (!of_file.contains(list)) continue;
    for (const ordered_json& one : of_file[list]) {
      ordered_json prediction = {{"file", of_file["file"]}};
      prediction.update(one);
      write(prediction);
    }
    return;
  }
  write(of_file);
}

void PredictionWriter::write(const ordered_json& prediction) {
  if (format_ == "jsonl") {
    fmt::print("{}\n", prediction.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    return;
  }
  const auto cells = cells_of(prediction);
  if (columns_.empty()) {
    for (const auto& [name, value] : cells) columns_.push_back(name);
    fmt::print("{}\n", fmt::join(columns_, ","));
  }
  std::vector<std::string> fields(columns_.size());
  for (const auto& [name, value] : cells)
    for (size_t at = 0; at < columns_.size(); ++at)
      if (columns_[at] == name) fields[at] = csv_field(value);
  fmt::print("{}\n", fmt::join(fields, ","));
}

void PredictionWriter::finish() {
  if (format_ == "json") fmt::print("{}\n", all_.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace weft::infer
