#include "weft/spec/data_description.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/json_numbers.h"
#include "weft/base/seal.h"
#include "weft/data/dataset/dataset_json.h"

namespace weft::spec {

using nlohmann::json;

std::string print_data_description(const DataDescription& d) {
  json root = data::to_json(d.info);
  root["samples"] = d.samples;
  if (!d.target_checksum.empty()) root["target_checksum"] = d.target_checksum;
  root["mean"] = d.statistics.mean;
  root["deviation"] = d.statistics.deviation;
  add_seal(root);
  return root.dump(2) + "\n";
}

DataDescription parse_data_description(std::string_view text, const std::string& name) {
  try {
    const json root = json::parse(text);
    DataDescription d;
    check_seal(root, name);
    d.info = data::info_from_json(root, name);
    d.samples = whole_number(root.value("samples", json(0)));
    d.target_checksum = root.value("target_checksum", "");
    d.statistics.mean = root.at("mean").get<std::vector<float>>();
    d.statistics.deviation = root.at("deviation").get<std::vector<float>>();
    if (d.samples < 0 || !data::can_be(d.statistics))
      fail(ErrorKind::data, "'{}' is damaged: its samples, mean or deviation cannot be; put the original back", name);
    return d;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "'{}' is damaged: it does not describe the data; train in a new run directory", name);
  }
}

std::string difference_of(const DataDescription& then, const DataDescription& now) {
  const data::DatasetInfo &a = then.info, &b = now.info;
  if (a.sample_shape != b.sample_shape)
    return fmt::format("{} were {}, now {}", a.item(), to_string(a.sample_shape), to_string(b.sample_shape));
  if (then.samples != 0 && then.samples != now.samples)
    return fmt::format("there were {} samples, now {}", then.samples, now.samples);
  if (a.classes != b.classes) return fmt::format("there were {} classes, now {}", a.classes, b.classes);
  const bool checked = !then.target_checksum.empty() && !now.target_checksum.empty();
  if (checked && then.target_checksum != now.target_checksum)
    return a.target_kind() == data::TargetKind::values ? "samples have other values to predict"
                                                       : "samples have other labels";
  const auto& [mean_then, deviation_then] = then.statistics;
  const auto& [mean_now, deviation_now] = now.statistics;
  if (mean_then != mean_now)
    return fmt::format("the mean was [{}], now [{}]", fmt::join(mean_then, ", "), fmt::join(mean_now, ", "));
  if (deviation_then != deviation_now)
    return fmt::format("the deviation was [{}], now [{}]", fmt::join(deviation_then, ", "),
                       fmt::join(deviation_now, ", "));
  const auto parsed = [](const std::string& encoding) { return encoding.empty() ? json() : json::parse(encoding); };
  if (parsed(a.encoding) != parsed(b.encoding)) return "what the files hold is encoded otherwise";
  return "";
}

}  // namespace weft::spec
