// The text form of a TableEncoding, as it stands in a run's data.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/data/formats/table_encoding.h"

namespace weft::data {

namespace {

using nlohmann::json;
using Kind = TableColumn::Kind;
Kind parse_kind(const std::string& name) {
  for (const Kind kind : {Kind::number, Kind::category, Kind::ignored, Kind::label})
    if (name == name_of(kind)) return kind;
  fail(ErrorKind::data, "'{}' is no kind of column", name);
}

}  // namespace

std::string_view name_of(TableColumn::Kind kind) {
  constexpr std::string_view names[] = {"number", "category", "ignored", "label"};
  return names[static_cast<size_t>(kind)];
}

std::string TableEncoding::to_json() const {
  json columns = json::array();
  for (const TableColumn& column : columns_) {
    json entry = {{"name", column.name}, {"kind", name_of(column.kind)}};
    const bool values = column.kind == Kind::label && task_ == "regression";
    if (column.kind == Kind::number || values) {
      entry["mean"] = column.mean;
      entry["deviation"] = column.deviation;
    }
    if (column.kind == Kind::number) entry["can_miss"] = column.can_miss;
    if (column.kind == Kind::category) entry["categories"] = column.categories;
    columns.push_back(std::move(entry));
  }
  json root = {{"kind", "table"},     {"task", task_},       {"header", has_header_},
               {"missing", missing_}, {"classes", classes_}, {"separator", std::string(1, separator_)},
               {"columns", columns}};
  if (labels_.size() > 1) root["labels"] = labels_;  // in the order of the values
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

TableEncoding TableEncoding::from_json(const std::string& text) {
  try {
    const json root = json::parse(text);
    TableEncoding encoding;
    if (root.at("kind") != "table")
      fail(ErrorKind::data, "[csv] the model was not trained on a table; choose other data");
    encoding.task_ = root.at("task").get<std::string>();
    encoding.has_header_ = root.at("header");
    encoding.missing_ = root.at("missing").get<std::vector<std::string>>();
    encoding.classes_ = root.at("classes").get<std::vector<std::string>>();
    encoding.separator_ = root.at("separator").get<std::string>().at(0);
    for (const json& entry : root.at("columns")) {
      TableColumn& column = encoding.columns_.emplace_back();
      column.name = entry.at("name");
      column.kind = parse_kind(entry.at("kind"));
      column.mean = entry.value("mean", 0.0);
      column.deviation = entry.value("deviation", 1.0);
      column.can_miss = entry.value("can_miss", false);
      column.categories = entry.value("categories", std::vector<std::string>());
      if (column.kind == Kind::label) encoding.labels_.push_back(static_cast<int64_t>(encoding.columns_.size()) - 1);
    }
    if (root.contains("labels")) {
      auto labels = root["labels"].get<std::vector<int64_t>>();
      if (!std::is_permutation(labels.begin(), labels.end(), encoding.labels_.begin(), encoding.labels_.end()))
        fail(ErrorKind::data, "[csv] the run's encoding of the table is damaged");
      encoding.labels_ = std::move(labels);
    }
    if (encoding.labels_.empty()) fail(ErrorKind::data, "[csv] the run's encoding of the table names no label");
    return encoding;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "[csv] the model was not trained on a table, or its data.json is damaged");
  } catch (const std::out_of_range&) {
    fail(ErrorKind::data, "[csv] the run's encoding of the table is damaged");
  }
}

bool is_table(const DatasetInfo& info) {
  const json root = json::parse(info.encoding, nullptr, /*allow_exceptions=*/false);
  return root.is_object() && root.value("kind", json()) == "table";
}

}  // namespace weft::data
