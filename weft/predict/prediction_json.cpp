// prediction.json.
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/predict/curves.h"
#include "weft/predict/prediction.h"

namespace weft::predict {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

ordered_json to_json(const Interval& interval) {
  return {{"low", interval.low}, {"expected", interval.expected}, {"high", interval.high}};
}
Interval interval_from(const json& row) {
  return {row.at("low").get<double>(), row.at("expected").get<double>(), row.at("high").get<double>()};
}

ordered_json to_json(const ExchangedBytes& bytes) {
  return {{"reduced_bytes", bytes.reduced},
          {"gathered_bytes", bytes.gathered},
          {"scattered_bytes", bytes.scattered},
          {"dealt_bytes", bytes.dealt},
          {"sent_bytes", bytes.sent}};
}
ExchangedBytes exchanged_from(const json& row) {
  return {.reduced = row.at("reduced_bytes").get<int64_t>(),
          .gathered = row.at("gathered_bytes").get<int64_t>(),
          .scattered = row.at("scattered_bytes").get<int64_t>(),
          .dealt = row.at("dealt_bytes").get<int64_t>(),
          .sent = row.at("sent_bytes").get<int64_t>()};
}

ordered_json to_json(const StepTime& time, bool with_timeline) {
  ordered_json row;
  for (int part = 0; part < kParts; ++part)
    row[std::string(name_of(static_cast<Part>(part))) + "_seconds"] = time.seconds[static_cast<size_t>(part)];
  row["exchange_hidden_seconds"] = time.hidden_seconds;
  row["overhead_seconds"] = time.overhead_seconds;
  row["spread"] = time.spread;
  row["rated_seconds"] = time.by_source[0];
  row["interpolated_seconds"] = time.by_source[1];
  row["measured_seconds"] = time.by_source[2];
  row["exchanged"] = ordered_json::object();
  for (const auto& [axis, bytes] : time.exchanged) row["exchanged"][axis] = to_json(bytes);
  if (!with_timeline) return row;
  ordered_json spans = ordered_json::array();
  for (const Span& span : time.timeline)
    spans.push_back({{"name", span.name},
                     {"part", name_of(span.part)},
                     {"on_link", span.on_link},
                     {"begin", span.begin},
                     {"seconds", span.seconds}});
  row["timeline"] = spans;
  return row;
}

StepTime time_from(const json& row) {
  StepTime time;
  for (int part = 0; part < kParts; ++part)
    time.seconds[static_cast<size_t>(part)] =
        row.at(std::string(name_of(static_cast<Part>(part))) + "_seconds").get<double>();
  time.hidden_seconds = row.at("exchange_hidden_seconds").get<double>();
  time.overhead_seconds = row.at("overhead_seconds").get<double>();
  time.spread = row.at("spread").get<double>();
  time.by_source = {row.at("rated_seconds").get<double>(), row.at("interpolated_seconds").get<double>(),
                    row.at("measured_seconds").get<double>()};
  // Runs of before have one sum of all axes, which nothing asks for.
  if (row.contains("exchanged"))
    for (const auto& [axis, bytes] : row.at("exchanged").items()) time.exchanged[axis] = exchanged_from(bytes);
  return time;
}

/// null where it is not known.
ordered_json to_json(const std::optional<double>& seconds) {
  return seconds ? ordered_json(*seconds) : ordered_json(nullptr);
}
std::optional<double> loading_from(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

ordered_json to_json(const MemoryPrediction& memory) {
  return {{"states_bytes", memory.states},
          {"activations_bytes", memory.activations},
          {"gradients_bytes", memory.gradients},
          {"buffers_bytes", memory.buffers},
          {"total_bytes", memory.total()},
          {"file_bytes", memory.file},
          {"at", memory.at}};
}

ordered_json to_json(const TimeToTarget& target) {
  return {{"metric", target.metric},
          {"target", target.target},
          {"share_of_steps", to_json(target.share)},
          {"seconds", to_json(target.seconds)},
          {"runs", target.runs},
          {"reached", target.reached},
          {"pace", target.pace},
          {"pace_spread", target.pace_spread}};
}

}  // namespace

ordered_json to_json(const Prediction& prediction, bool with_timeline) {
  ordered_json stages = ordered_json::array(), traffic = ordered_json::array();
  for (const StagePrediction& stage : prediction.stages)
    stages.push_back({{"first_step", stage.first_step},
                      {"steps", stage.steps},
                      {"batch", stage.batch},
                      {"accumulate", stage.accumulate},
                      {"image_height", stage.image_height},
                      {"step_seconds", to_json(stage.step())},
                      {"loading_seconds", to_json(stage.loading_seconds)},
                      {"parts", to_json(stage.time, with_timeline)}});
  for (const LinkTraffic& link : prediction.traffic)
    traffic.push_back({{"link", link.link}, {"bytes_per_step", link.bytes}});
  ordered_json root = {{"model", prediction.model},
                       {"data", prediction.data},
                       {"device", prediction.device},
                       {"strategy", to_json(prediction.strategy)},
                       {"interval", 0.8},
                       {"times_from", prediction.times_from},
                       {"exchange_from", prediction.exchange_from},
                       {"steps", prediction.steps()},
                       {"epochs", prediction.epochs},
                       {"item", prediction.item},
                       {"items_per_sample", prediction.items_per_sample},
                       {"step_seconds", to_json(prediction.step())},
                       {"samples_per_second", to_json(prediction.samples_per_second())},
                       {"run_seconds", to_json(prediction.run_seconds())},
                       {"evaluation_seconds", to_json(prediction.evaluation_seconds)},
                       {"memory", to_json(prediction.memory)},
                       {"traffic", traffic},
                       {"stages", stages}};
  if (prediction.energy)
    root["energy"] = {{"kilowatt_hours", to_json(prediction.energy->kilowatt_hours)},
                      {"peak_watts", prediction.energy->peak_watts}};
  if (prediction.cost)
    root["cost"] = {{"amount", to_json(prediction.cost->amount)},
                    {"per_hour", prediction.cost->per_hour},
                    {"currency", prediction.cost->currency}};
  if (prediction.to_target) root["to_target"] = to_json(*prediction.to_target);
  return root;
}

Prediction prediction_from(const json& root, const std::string& file) {
  try {
    Prediction prediction;
    prediction.model = root.at("model").get<std::string>();
    prediction.data = root.at("data").get<std::string>();
    prediction.device = root.at("device").get<std::string>();
    prediction.strategy = strategy_from(root.at("strategy"));
    prediction.times_from = root.at("times_from").get<std::string>();
    prediction.exchange_from = root.at("exchange_from").get<std::string>();
    prediction.epochs = root.at("epochs").get<double>();
    prediction.item = root.at("item").get<std::string>();
    prediction.items_per_sample = root.at("items_per_sample").get<int64_t>();
    prediction.evaluation_seconds = interval_from(root.at("evaluation_seconds"));
    const json& memory = root.at("memory");
    prediction.memory = {memory.at("states_bytes").get<int64_t>(),    memory.at("activations_bytes").get<int64_t>(),
                         memory.at("gradients_bytes").get<int64_t>(), memory.at("buffers_bytes").get<int64_t>(),
                         memory.at("file_bytes").get<int64_t>(),      memory.at("at").get<std::string>()};
    for (const json& link : root.at("traffic"))
      prediction.traffic.push_back({link.at("link").get<std::string>(), link.at("bytes_per_step").get<double>(), 0});
    for (const json& row : root.at("stages"))
      prediction.stages.push_back({.first_step = row.at("first_step").get<int64_t>(),
                                   .steps = row.at("steps").get<int64_t>(),
                                   .batch = row.at("batch").get<int64_t>(),
                                   .accumulate = row.at("accumulate").get<int64_t>(),
                                   .image_height = row.at("image_height").get<int64_t>(),
                                   .time = time_from(row.at("parts")),
                                   .loading_seconds = loading_from(row.at("loading_seconds"))});
    if (root.contains("energy"))
      prediction.energy = {interval_from(root.at("energy").at("kilowatt_hours")),
                           root.at("energy").at("peak_watts").get<double>()};
    if (root.contains("cost"))
      prediction.cost = Cost{.amount = interval_from(root.at("cost").at("amount")),
                             .per_hour = root.at("cost").value("per_hour", 0.0),
                             .currency = root.at("cost").at("currency").get<std::string>()};
    if (root.contains("to_target")) {
      const json& row = root.at("to_target");
      prediction.to_target = TimeToTarget{.metric = row.at("metric").get<std::string>(),
                                          .target = row.at("target").get<double>(),
                                          .share = interval_from(row.at("share_of_steps")),
                                          .seconds = interval_from(row.at("seconds")),
                                          .runs = row.at("runs").get<int64_t>(),
                                          .reached = row.at("reached").get<int64_t>(),
                                          .pace = row.value("pace", 1.0),
                                          .pace_spread = row.value("pace_spread", kUsualPaceSpread)};
    }
    return prediction;
  } catch (const json::exception& error) {
    fail(ErrorKind::data, "'{}' is no prediction of this weft ({}); remove it, or put the original back", file,
         error.what());
  }
}

}  // namespace weft::predict
