#include "weft/run/metrics_history.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/base/files.h"

namespace weft::run {

namespace {

void add_record(std::map<std::string, MetricCurve>& curves, const nlohmann::json& record, int64_t step) {
  for (const auto& [name, value] : record.items()) {
    if (name == "step" || (!value.is_number() && !value.is_null())) continue;
    MetricCurve& curve = curves[name];
    curve.steps.push_back(step);
    curve.values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
}

}  // namespace

MetricsHistory read_metrics(const std::filesystem::path& path) {
  MetricsHistory history;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return history;
  std::istringstream lines(read_text(path));
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) continue;
    const auto step = record["step"].get<int64_t>();
    const auto kind = record.value("kind", nlohmann::json());
    if (kind == "step") add_record(history.by_step, record, step);
    if (kind == "validation") add_record(history.by_validation, record, step);
    if (kind == "noise") add_record(history.by_noise, record, step);
    if (kind == "epoch") add_record(history.by_epoch, record, step);
  }
  return history;
}

}  // namespace weft::run
