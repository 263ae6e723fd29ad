#include "weft/run/checkpoint/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/json_numbers.h"

namespace weft::run {

namespace {

using nlohmann::json;
constexpr int kFormat = 1;

json optional_number(const std::optional<double>& value) { return value ? json(*value) : json(); }

std::optional<double> optional_number(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<double>();
}

json to_json(const step::PlateauState& p) {
  return {
      {"factor", p.factor}, {"best", optional_number(p.best)}, {"bad_epochs", p.bad_epochs}, {"cooldown", p.cooldown}};
}

step::PlateauState plateau_from(const json& j) {
  return {.factor = j.at("factor"),
          .best = optional_number(j.at("best")),
          .bad_epochs = whole_number(j.at("bad_epochs")),
          .cooldown = whole_number(j.at("cooldown"))};
}

json to_json(const step::AveragingState& a) { return {{"first_loss", a.first_loss}, {"period", a.period}}; }

step::AveragingState averaging_from(const json& j) {
  return {.first_loss = j.at("first_loss"), .period = whole_number(j.at("period"))};
}

json to_json(const step::Position& p) {
  return {{"epoch", p.epoch},
          {"step_in_epoch", p.step_in_epoch},
          {"step", p.step},
          {"loss_sum", p.loss_sum},
          {"correct", p.correct},
          {"samples", p.samples},
          {"epoch_seconds", p.epoch_seconds},
          {"train_seconds", p.train_seconds},
          {"step_seconds", p.step_seconds},
          {"epoch_wait_seconds", p.epoch_wait_seconds},
          {"wait_seconds", p.wait_seconds}};
}

step::Position position_from(const json& j) {
  return {.epoch = whole_number(j.at("epoch")),
          .step_in_epoch = whole_number(j.at("step_in_epoch")),
          .step = whole_number(j.at("step")),
          .loss_sum = j.at("loss_sum"),
          .correct = j.at("correct"),
          .samples = whole_number(j.at("samples")),
          .epoch_seconds = j.at("epoch_seconds"),
          .train_seconds = j.at("train_seconds"),
          .step_seconds = j.at("step_seconds"),
          .epoch_wait_seconds = j.value("epoch_wait_seconds", 0.0),
          .wait_seconds = j.value("wait_seconds", 0.0),
          .plateau = j.contains("plateau") ? plateau_from(j["plateau"]) : step::PlateauState{},
          .averaging = j.contains("averaging") ? averaging_from(j["averaging"]) : step::AveragingState{}};
}

json to_json(const step::EpochMetrics& m) {
  json root = {{"epoch", m.epoch},
               {"step", m.step},
               {"train_loss", std::isfinite(m.train_loss) ? json(m.train_loss) : json()},
               {"train_accuracy", optional_number(m.train_accuracy)},
               {"test_loss", optional_number(m.test_loss)},
               {"test_metrics", json::array()},
               {"train_seconds", m.train_seconds},
               {"items_per_second", m.items_per_second},
               {"step_seconds", m.step_seconds},
               {"input_wait_seconds", m.input_wait_seconds}};
  for (const auto& [name, value] : m.test_metrics)
    root["test_metrics"].push_back({{"name", name}, {"value", optional_number(value)}});
  return root;
}

MetricValues metrics_from(const json& j) {
  MetricValues metrics;
  if (j.contains("test_metrics")) {
    for (const json& one : j["test_metrics"])
      metrics.push_back({one.at("name").get<std::string>(), optional_number(one.at("value"))});
    return metrics;
  }
  // Of runs before metrics were entries.
  for (const char* name : {"accuracy", "token_accuracy", "mean_iou", "rmse", "r2"})
    if (const std::optional<double> value = optional_number(j.value(std::string("test_") + name, json())))
      metrics.push_back({name, value});
  return metrics;
}

step::EpochMetrics epoch_from(const json& j) {
  return {.epoch = whole_number(j.at("epoch")),
          .step = whole_number(j.at("step")),
          .train_loss = optional_number(j.at("train_loss")).value_or(NAN),
          .train_accuracy = optional_number(j.at("train_accuracy")),
          .test_loss = optional_number(j.at("test_loss")),
          .test_metrics = metrics_from(j),
          .train_seconds = j.at("train_seconds"),
          .items_per_second = j.value("items_per_second", 0.0),
          .step_seconds = j.value("step_seconds", 0.0),
          .input_wait_seconds = j.value("input_wait_seconds", 0.0)};
}

}  // namespace

bool is_better(const BestCheckpoint& one, const BestCheckpoint& other) {
  const auto counts = [](const std::optional<double>& value) { return value && std::isfinite(*value); };
  if (counts(one.score)) return !counts(other.score) || *one.score > *other.score;
  return counts(one.loss) && !counts(other.score) && (!counts(other.loss) || *one.loss < *other.loss);
}

std::string print_manifest(const Manifest& manifest) {
  json files = json::object();
  for (const auto& [name, record] : manifest.files) files[name] = {{"bytes", record.bytes}, {"crc32", record.checksum}};
  json root = {{"format", kFormat},
               {"spec_hash", manifest.spec_hash},
               {"seed", manifest.seed},
               {"position", to_json(manifest.position)},
               {"files", files}};
  if (manifest.position.plateau != step::PlateauState{})
    root["position"]["plateau"] = to_json(manifest.position.plateau);
  if (manifest.position.averaging != step::AveragingState{})
    root["position"]["averaging"] = to_json(manifest.position.averaging);
  if (manifest.last_epoch) root["last_epoch"] = to_json(*manifest.last_epoch);
  if (manifest.best)
    root["best"] = {{"step", manifest.best->step},
                    {"score", optional_number(manifest.best->score)},
                    {"loss", optional_number(manifest.best->loss)}};
  return root.dump(2) + "\n";
}

namespace {

/// Of runs before other metrics than accuracy could decide it has that name.
const json& score_of(const json& best) { return best.contains("score") ? best["score"] : best.at("accuracy"); }

}  // namespace

Manifest parse_manifest(std::string_view text, const std::string& name) {
  try {
    const json root = json::parse(text);
    const int64_t format = whole_number(root.at("format"));
    if (format != kFormat)
      fail(ErrorKind::data, "'{}' has format {}, this weft reads format {}", name, format, kFormat);
    Manifest manifest;
    manifest.spec_hash = root.at("spec_hash");
    manifest.seed = unsigned_number(root.at("seed"));
    manifest.position = position_from(root.at("position"));
    if (root.contains("last_epoch")) manifest.last_epoch = epoch_from(root["last_epoch"]);
    if (root.contains("best"))
      manifest.best = BestCheckpoint{.step = whole_number(root["best"].at("step")),
                                     .score = optional_number(score_of(root["best"])),
                                     .loss = optional_number(root["best"].value("loss", json()))};
    for (const auto& [file, record] : root.at("files").items())
      manifest.files[file] = {.bytes = unsigned_number(record.at("bytes")),
                              .checksum = static_cast<uint32_t>(unsigned_number(record.at("crc32")))};
    return manifest;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "'{}' is damaged: it is no whole manifest", name);
  }
}

}  // namespace weft::run
