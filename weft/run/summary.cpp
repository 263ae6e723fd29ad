#include "weft/run/summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weft::run {

namespace {

bool is_classifier(const Summary& s) {
  return std::any_of(s.test_metrics.begin(), s.test_metrics.end(),
                     [](const MetricValue& one) { return one.name == "accuracy"; });
}

/// Calls visit(key, field) for each field that the task has, in the order of the file.
template <typename AnySummary, typename Visit>
void visit_fields(AnySummary& s, const Visit& visit) {
  visit("model", s.model);
  visit("data", s.data);
  visit("task", s.task);
  visit("precision", s.precision);
  visit("ranks", s.ranks);
  visit("threads", s.threads);
  visit("parameters", s.parameters);
  visit("epochs", s.epochs);
  visit("steps", s.steps);
  visit("batch", s.batch);
  if (!s.batches.empty()) visit("batches", s.batches);
  if (!s.image_heights.empty()) visit("image_heights", s.image_heights);
  visit("seed", s.seed);
  visit("epochs_done", s.epochs_done);
  if (!s.ended.empty()) visit("ended", s.ended);
  for (auto& [name, value] : s.validation_metrics) visit("validation_" + name, value);
  if (!s.validation_metrics.empty()) visit("validation_loss", s.validation_loss);
  for (auto& [name, value] : s.test_metrics) visit("test_" + name, value);
  visit("test_loss", s.test_loss);
  if (!s.best.name.empty()) visit("best_" + s.best.name, s.best.value);
  visit("time_to_best", s.time_to_best);
  visit("time_to_target", s.time_to_target);
  if (is_classifier(s)) visit("train_accuracy", s.train_accuracy);
  visit("train_loss", s.train_loss);
  visit("train_seconds", s.train_seconds);
  visit(s.item + "_per_second", s.items_per_second);
  visit("step_seconds", s.step_seconds);
  visit("input_wait_seconds", s.input_wait_seconds);
  if (!s.rank_step_seconds.empty()) visit("rank_step_seconds", s.rank_step_seconds);
  if (!s.rank_grains.empty()) visit("rank_grains", s.rank_grains);
  if (s.loss_scale) visit("loss_scale", s.loss_scale);
  if (s.loss_scale) visit("skipped_steps", s.skipped_steps);
  visit("damaged_samples", s.damaged_samples);
  visit("compile_seconds", s.compile_seconds);
  visit("planned_peak_bytes", s.planned_peak_bytes);
  visit("arena_bytes", s.arena_bytes);
  visit("planned_total_bytes", s.planned_total_bytes);
  visit("rss_growth_bytes", s.rss_growth_bytes);
  visit("code_growth_bytes", s.code_growth_bytes);
  visit("peak_rss_bytes", s.peak_rss_bytes);
}

template <typename T>
void store(nlohmann::ordered_json& target, const T& value) {
  target = value;
}
void store(nlohmann::ordered_json& target, const std::optional<double>& value) {
  if (value)
    target = *value;
  else
    target = nullptr;
}

void store(nlohmann::ordered_json& target, const std::optional<Reached>& value) {
  target = nullptr;
  if (value)
    target = {{"metric", value->metric}, {"value", value->value}, {"seconds", value->seconds}, {"step", value->step}};
}

template <typename T>
void load(const nlohmann::ordered_json& source, T& value) {
  value = source.get<T>();
}
void load(const nlohmann::ordered_json& source, std::optional<double>& value) {
  if (!source.is_null()) value = source.get<double>();
}
void load(const nlohmann::ordered_json& source, std::optional<Reached>& value) {
  if (!source.is_null())
    value = {source.at("metric").get<std::string>(), source.at("value").get<double>(),
             source.at("seconds").get<double>(), source.at("step").get<int64_t>()};
}
/// Which metrics a file has, without their values.
void load_names(const nlohmann::ordered_json& root, Summary& summary) {
  const auto add = [](const std::string& key, const std::string& prefix, MetricValues& metrics) {
    if (key.starts_with(prefix) && key != prefix + "loss") metrics.push_back({key.substr(prefix.size()), {}});
  };
  for (const auto& [key, value] : root.items()) {
    add(key, "test_", summary.test_metrics);
    add(key, "validation_", summary.validation_metrics);
    if (key.starts_with("best_")) summary.best.name = key.substr(5);
  }
}

}  // namespace

std::string print_summary(const Summary& summary) {
  nlohmann::ordered_json root;
  visit_fields(summary, [&](const std::string& key, const auto& field) { store(root[key], field); });
  return root.dump(2) + "\n";
}

std::optional<Summary> parse_summary(std::string_view text) {
  try {
    const auto root = nlohmann::ordered_json::parse(text);
    Summary summary;  // task, item, stages and loss_scale decide which fields there are
    load_names(root, summary);
    for (const char* item : {"images", "rows", "tokens"})
      if (root.contains(std::string(item) + "_per_second")) summary.item = item;
    if (root.contains("batches")) load(root["batches"], summary.batches);
    if (root.contains("image_heights")) load(root["image_heights"], summary.image_heights);
    if (root.contains("rank_step_seconds")) load(root["rank_step_seconds"], summary.rank_step_seconds);
    if (root.contains("rank_grains")) load(root["rank_grains"], summary.rank_grains);
    if (root.contains("loss_scale")) summary.loss_scale = 0;
    if (root.contains("ended")) load(root["ended"], summary.ended);
    visit_fields(summary, [&](std::string_view key, auto& field) {
      constexpr std::string_view kNewer[] = {"ranks",       "step_seconds", "input_wait_seconds", "damaged_samples",
                                             "epochs_done", "time_to_best", "time_to_target",     "code_growth_bytes"};
      const bool is_newer = std::find(std::begin(kNewer), std::end(kNewer), key) != std::end(kNewer);
      if (is_newer && !root.contains(key)) return;  // runs of weft 0.1 before it had them
      load(root.at(std::string(key)), field);
    });
    return summary;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace weft::run
