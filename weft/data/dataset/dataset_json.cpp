#include "weft/data/dataset/dataset_json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/json_numbers.h"

namespace weft::data {

using nlohmann::json;

json to_json(const DatasetInfo& info) {
  json root = {{"name", info.name},
               {"task", info.task},
               {"sample_shape", info.sample_shape.dims()},
               {"sample_dtype", name_of(info.sample_dtype)},
               {"target_shape", info.target_shape.dims()},
               {"target_dtype", name_of(info.target_dtype)},
               {"classes", info.classes},
               {"class_names", info.class_names}};
  if (!info.targets.mean.empty()) {
    root["target_mean"] = info.targets.mean;
    root["target_deviation"] = info.targets.deviation;
  }
  if (info.vocabulary > 0) root["vocabulary"] = info.vocabulary;
  if (info.source_length > 0) root["source_length"] = info.source_length;
  if (!json::accept(info.encoding.empty() ? "{}" : info.encoding))
    fail(ErrorKind::usage, "'{}': the encoding in its info is no JSON; write JSON, or leave it empty", info.name);
  if (!info.encoding.empty()) root["encoding"] = json::parse(info.encoding);
  return root;
}

DatasetInfo info_from_json(const json& root, const std::string& name) {
  const auto dtype = [&](const char* key, DType fallback) {
    const std::optional<DType> parsed = parse_dtype(root.value(key, std::string(name_of(fallback))));
    if (!parsed) fail(ErrorKind::data, "'{}': {} is no type of numbers; make it anew", name, key);
    return *parsed;
  };
  DatasetInfo info;
  info.name = root.at("name");
  info.task = root.value("task", info.task);
  info.sample_shape = Shape(whole_numbers(root.at("sample_shape")));
  info.sample_dtype = dtype("sample_dtype", info.sample_dtype);
  info.target_shape = Shape(whole_numbers(root.value("target_shape", json::array())));
  info.target_dtype = dtype("target_dtype", info.target_dtype);
  info.vocabulary = whole_number(root.value("vocabulary", json(0)));
  info.source_length = whole_number(root.value("source_length", json(0)));
  info.classes = whole_number(root.at("classes"));
  info.class_names = root.at("class_names").get<std::vector<std::string>>();
  info.targets.mean = root.value("target_mean", std::vector<double>());
  info.targets.deviation = root.value("target_deviation", std::vector<double>());
  if (root.contains("encoding")) info.encoding = root["encoding"].dump();
  return info;
}

}  // namespace weft::data
