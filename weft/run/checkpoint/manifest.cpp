#include "weft/run/checkpoint/manifest.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/json_numbers.h"
#include "weft/base/seal.h"
#include "weft/graph/tensor_parts.h"

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

json to_json(const step::StoppingState& s) {
  return {{"best", optional_number(s.best)}, {"evaluations_since", s.evaluations_since}};
}

step::StoppingState stopping_from(const json& j) {
  return {.best = optional_number(j.at("best")), .evaluations_since = whole_number(j.at("evaluations_since"))};
}

json to_json(const MetricValues& metrics) {
  json list = json::array();
  for (const auto& [name, value] : metrics) list.push_back({{"name", name}, {"value", optional_number(value)}});
  return list;
}

MetricValues metrics_of_list(const json& list) {
  MetricValues metrics;
  for (const json& one : list) metrics.push_back({one.at("name").get<std::string>(), optional_number(one.at("value"))});
  return metrics;
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
          .stopping = j.contains("stopping") ? stopping_from(j["stopping"]) : step::StoppingState{},
          .validated_step = whole_number(j.value("validated_step", json(0))),
          .ended = j.value("ended", std::string()),
          .averaging = j.contains("averaging") ? averaging_from(j["averaging"]) : step::AveragingState{},
          .grains = j.value("grains", std::vector<int64_t>())};
}

json to_json(const step::EpochMetrics& m) {
  json root = {{"epoch", m.epoch},
               {"step", m.step},
               {"train_loss", std::isfinite(m.train_loss) ? json(m.train_loss) : json()},
               {"train_accuracy", optional_number(m.train_accuracy)},
               {"test_loss", optional_number(m.test_loss)},
               {"test_metrics", to_json(m.test_metrics)},
               {"train_seconds", m.train_seconds},
               {"items_per_second", m.items_per_second},
               {"step_seconds", m.step_seconds},
               {"input_wait_seconds", m.input_wait_seconds}};
  if (m.validation_loss) root["validation_loss"] = *m.validation_loss;
  if (!m.validation_metrics.empty()) root["validation_metrics"] = to_json(m.validation_metrics);
  return root;
}

MetricValues metrics_from(const json& j) {
  if (j.contains("test_metrics")) return metrics_of_list(j["test_metrics"]);
  MetricValues metrics;
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
          .validation_loss = optional_number(j.value("validation_loss", json())),
          .validation_metrics =
              j.contains("validation_metrics") ? metrics_of_list(j["validation_metrics"]) : MetricValues{},
          .test_loss = optional_number(j.at("test_loss")),
          .test_metrics = metrics_from(j),
          .train_seconds = j.at("train_seconds"),
          .items_per_second = j.value("items_per_second", 0.0),
          .step_seconds = j.value("step_seconds", 0.0),
          .input_wait_seconds = j.value("input_wait_seconds", 0.0)};
}

json to_json(const PartsRecord& parts) {
  json shardings = json::object();
  for (const auto& [name, sharding] : parts.shardings) shardings[name] = step::to_string(sharding);
  return {{"ranks", parts.ranks}, {"shardings", shardings}};
}

PartsRecord parts_from(const json& j, const std::string& name) {
  PartsRecord parts{.ranks = whole_number(j.at("ranks")), .shardings = {}};
  for (const auto& [tensor, text] : j.at("shardings").items()) {
    const step::StateSharding sharding = step::parse_state_sharding(text.get<std::string>());
    const int64_t count = parts_of(sharding), files = static_cast<int64_t>(sharding.on.size());
    const bool is_split = sharding.on.empty() && count > 1 && count == parts.ranks;
    const bool is_on_some =
        files > 0 && sharding.on.back() < parts.ranks && (sharding.is_replicated() || count == files);
    if ((!is_split && !is_on_some) || sharding.partial || !names_each_axis_once(sharding))
      fail(ErrorKind::data, "'{}' is damaged: '{}' of '{}' is no split over {} ranks", name, to_string(sharding),
           tensor, parts.ranks);
    parts.shardings.emplace(tensor, sharding);
  }
  return parts;
}

}  // namespace

bool is_better(const BestCheckpoint& one, const BestCheckpoint& other) {
  const auto counts = [](const std::optional<double>& value) { return value && std::isfinite(*value); };
  if (counts(one.score) != counts(other.score)) return counts(one.score);
  if (counts(one.score)) return *one.score > *other.score || (*one.score == *other.score && one.step > other.step);
  return counts(one.loss) && (!counts(other.loss) || *one.loss < *other.loss);
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
  if (!manifest.position.grains.empty()) root["position"]["grains"] = manifest.position.grains;
  if (manifest.position.stopping != step::StoppingState{})
    root["position"]["stopping"] = to_json(manifest.position.stopping);
  if (manifest.position.validated_step > 0) root["position"]["validated_step"] = manifest.position.validated_step;
  if (!manifest.position.ended.empty()) root["position"]["ended"] = manifest.position.ended;
  if (manifest.last_epoch) root["last_epoch"] = to_json(*manifest.last_epoch);
  if (manifest.best)
    root["best"] = {{"step", manifest.best->step},
                    {"score", optional_number(manifest.best->score)},
                    {"loss", optional_number(manifest.best->loss)}};
  if (manifest.parts.ranks > 0) root["parts"] = to_json(manifest.parts);
  add_seal(root);
  return root.dump(2) + "\n";
}

namespace {

/// What no run can have counted or measured.
void require_sense(const Manifest& manifest, const std::string& name) {
  const auto require = [&](bool makes_sense, const char* field) {
    if (!makes_sense) fail(ErrorKind::data, "'{}' is damaged: its {} cannot be", name, field);
  };
  const auto is_time = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
  constexpr int64_t kMost = int64_t{1} << 53;
  const auto is_count = [](int64_t count) { return count >= 0 && count <= kMost; };
  const step::Position& p = manifest.position;
  require(is_count(p.epoch), "position.epoch");
  require(is_count(p.step_in_epoch) && p.step_in_epoch <= p.step, "position.step_in_epoch");
  require(is_count(p.step), "position.step");
  require(is_count(p.validated_step) && p.validated_step <= p.step, "position.validated_step");
  require(is_count(p.samples), "position.samples");
  require(std::isfinite(p.correct) && p.correct >= 0, "position.correct");
  for (const double seconds : {p.epoch_seconds, p.train_seconds, p.step_seconds, p.epoch_wait_seconds, p.wait_seconds})
    require(is_time(seconds), "time in position");
  require(p.plateau.factor > 0 && p.plateau.factor <= 1, "position.plateau.factor");
  require(is_count(p.plateau.bad_epochs) && is_count(p.plateau.cooldown), "position.plateau");
  require(is_count(p.stopping.evaluations_since), "position.stopping");
  require(std::isfinite(p.averaging.first_loss) && is_count(p.averaging.period), "position.averaging");
  require(std::all_of(p.grains.begin(), p.grains.end(), [&](int64_t share) { return share >= 1 && is_count(share); }),
          "position.grains");
  require(manifest.parts.ranks >= 0 && manifest.parts.ranks <= (int64_t{1} << 20), "parts.ranks");
  if (manifest.best) require(is_count(manifest.best->step) && manifest.best->step <= p.step, "best.step");
  if (manifest.last_epoch)
    require(is_count(manifest.last_epoch->epoch) && is_count(manifest.last_epoch->step) &&
                manifest.last_epoch->step <= p.step,
            "last_epoch");
}

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
    manifest.has_checksum = check_seal(root, name);
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
    if (root.contains("parts")) manifest.parts = parts_from(root["parts"], name);
    require_sense(manifest, name);
    return manifest;
  } catch (const json::exception&) {
    fail(ErrorKind::data, "'{}' is damaged: it is no whole manifest", name);
  }
}

int64_t ranks_with_parts(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / "manifest.json";
  std::error_code code;
  return std::filesystem::exists(file, code) ? parse_manifest(read_text(file), file.string()).parts.ranks : 0;
}

}  // namespace weft::run
