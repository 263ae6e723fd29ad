#include "weft/run/policies/policy_file.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/seal.h"

namespace weft::run {

namespace {

/// JSON has no infinity: null.
nlohmann::ordered_json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

double number_of(const nlohmann::json& value) {
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

nlohmann::ordered_json to_json(const RangeTest& test) {
  nlohmann::ordered_json json = {{"rule", kRangeRule}};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    json[name] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  add("chosen", test.chosen);
  add("steepest", test.steepest);
  add("lowest", test.lowest);
  auto rates = nlohmann::ordered_json::array(), losses = rates;
  for (const RatedLoss& step : test.steps) {
    rates.push_back(step.rate);
    losses.push_back(step.loss);
  }
  json["rates"] = rates;
  json["losses"] = losses;
  return json;
}

RangeTest range_of(const nlohmann::json& json) {
  std::vector<RatedLoss> steps;
  const auto& rates = json.at("rates");
  for (size_t at = 0; at < rates.size(); ++at)
    steps.push_back({rates.at(at).get<double>(), json.at("losses").at(at).get<double>()});
  RangeTest test = judge_range(std::move(steps));
  const auto read = [&](const char* name) {
    return json.at(name).is_null() ? std::nullopt : std::optional(json.at(name).get<double>());
  };
  test.chosen = read("chosen");  // as the run has it, whatever the rule is today
  test.steepest = read("steepest");
  test.lowest = read("lowest");
  return test;
}

}  // namespace

std::string print_policies(const Policies& policies) {
  nlohmann::ordered_json root = {{"learning_rate", policies.learning_rate},
                                 {"batch", policies.batch},
                                 {"warmup_steps", policies.warmup_steps},
                                 {"measured_samples", policies.measured_samples},
                                 {"run_samples", policies.run_samples}};
  if (policies.range) root["range_test"] = to_json(*policies.range);
  if (policies.noise)
    root["gradient_noise"] = {{"scale", number_or_null(policies.noise->scale.expected)},
                              {"low", number_or_null(policies.noise->scale.low)},
                              {"high", number_or_null(policies.noise->scale.high)},
                              {"measurements", policies.noise->measurements}};
  add_seal(root);
  return root.dump(1) + "\n";
}

std::optional<Policies> read_policies(const std::filesystem::path& file) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return std::nullopt;
  const nlohmann::json root = nlohmann::json::parse(read_text(file), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) fail(ErrorKind::data, "'{}' is damaged; remove it, or put the original back", file.string());
  check_seal(root, fmt::format("'{}'", file.string()));
  try {
    Policies policies{.learning_rate = root.at("learning_rate").get<double>(),
                      .batch = root.at("batch").get<int64_t>(),
                      .warmup_steps = root.at("warmup_steps").get<int64_t>(),
                      .measured_samples = root.at("measured_samples").get<int64_t>(),
                      .run_samples = root.at("run_samples").get<int64_t>()};
    if (root.contains("range_test")) policies.range = range_of(root["range_test"]);
    if (root.contains("gradient_noise")) {
      const auto& noise = root["gradient_noise"];
      policies.noise = predict::NoiseScale{
          .scale = {number_of(noise.at("low")), number_of(noise.at("scale")), number_of(noise.at("high"))},
          .measurements = noise.at("measurements").get<int64_t>()};
    }
    return policies;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "'{}' cannot be read: {}; remove it, or put the original back", file.string(), error.what());
  }
}

std::string describe_policies(const Policies& policies) {
  std::string text;
  if (policies.noise) {
    const predict::Interval& scale = policies.noise->scale;
    const auto samples = [](double of) { return std::isfinite(of) ? fmt::format("{:.3g}", of) : "any number"; };
    text += fmt::format("gradient noise scale: {} samples ({} to {}); batch {}, warm-up of {} steps\n",
                        samples(scale.expected), samples(scale.low), samples(scale.high), policies.batch,
                        policies.warmup_steps);
  }
  if (policies.range && policies.range->chosen)
    text +=
        fmt::format("learning rate {:.3g}, by a range test: the loss falls fastest at {:.3g} and is lowest at {:.3g}\n",
                    policies.learning_rate, *policies.range->steepest, *policies.range->lowest);
  else if (policies.range)
    text += fmt::format("learning rate {:.3g}, the optimizer's own: {}\n", policies.learning_rate,
                        policies.range->steps.empty() ? "the run is too short for a range test"
                                                      : "the range test shows no rate at which the loss falls");
  return text + fmt::format("measured with {:.2g} % of the run's samples\n",
                            policies.run_samples > 0 ? 100 * static_cast<double>(policies.measured_samples) /
                                                           static_cast<double>(policies.run_samples)
                                                     : 0);
}

}  // namespace weft::run
