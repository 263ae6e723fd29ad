#include "weft/cli/forecast/simulate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "weft/base/format.h"
#include "weft/base/table.h"

namespace weft::cli {

namespace {

double watts_of(const SimulationReport& report) {
  if (!report.cluster.device) return 0;
  return report.ranks * report.cluster.device->watts(std::min(1.0, report.busy_seconds / report.seconds));
}

nlohmann::ordered_json campaign_json(const SimulationReport& report) {
  auto rows = nlohmann::ordered_json::array();
  for (const simulate::Campaign::Row& row : report.campaign.rows) {
    const double interval = row.settings.checkpoint_interval_seconds;
    rows.push_back({{"policy", row.policy},
                    {"checkpoint_interval_seconds",
                     std::isfinite(interval) ? nlohmann::ordered_json(interval) : nlohmann::ordered_json(nullptr)},
                    {"goodput", row.outcome.goodput()},
                    {"failures", row.outcome.failures},
                    {"lost_seconds", row.outcome.lost_seconds},
                    {"checkpoint_seconds", row.outcome.checkpoint_seconds},
                    {"down_seconds", row.outcome.down_seconds},
                    {"slowed_seconds", row.outcome.slowed_seconds}});
  }
  const simulate::RunModel& model = report.run_model;
  const double mean = model.failures_per_second() > 0 ? 1 / model.failures_per_second() : 0;
  return {{"device_hours", report.campaign_device_hours},
          {"checkpoint_seconds", model.checkpoint_seconds},
          {"mean_seconds_between_failures", mean},
          {"young_interval_seconds", simulate::young_interval(model.checkpoint_seconds, mean)},
          {"daly_interval_seconds", simulate::daly_interval(model.checkpoint_seconds, mean)},
          {"policies", rows}};
}

/// Buckets that go the same way in one row.
std::string collectives_text(const SimulationReport& report) {
  struct Sum {
    int count = 0;
    double bytes = 0, seconds = 0;
  };
  std::map<std::string, Sum> sums;
  for (size_t index = 0; index < report.step.collectives.size(); ++index) {
    const simulate::CollectiveCost& cost = report.step.collectives[index];
    const simulate::StepCollective& collective = report.program.collectives[index];
    Sum& sum = sums[fmt::format("{}, {}", simulate::name_of(collective.kind), cost.algorithm)];
    ++sum.count;
    sum.bytes += collective.bytes;
    sum.seconds += cost.seconds();
  }
  if (sums.empty()) return "";
  Table table({{"exchanged"}, {"number", Align::right}, {"tensors", Align::right}, {"alone", Align::right}});
  for (const auto& [name, sum] : sums)
    table.add_row({name, std::to_string(sum.count), human_bytes(sum.bytes), human_duration(sum.seconds)});
  return "\n" + table.text();
}

std::string work_text(const SimulationReport& report) {
  if (report.transformer) return "";
  Table table({{"a rank computes"}, {"time", Align::right}, {"share", Align::right}});
  for (const auto& [work, seconds] : simulate::seconds_by_work(report.program))
    table.add_row({work, human_duration(seconds), percent(seconds / report.program.compute_seconds)});
  return "\n" + table.text();
}

std::string campaign_text(const SimulationReport& report) {
  if (report.campaign.rows.empty()) return "";
  const simulate::RunModel& model = report.run_model;
  std::string text = fmt::format(
      "\n{} device-hours, a failure every {}, checkpoints of {}\n", human_count(report.campaign_device_hours),
      model.failures_per_second() > 0 ? human_duration(1 / model.failures_per_second()) : "never",
      human_duration(model.checkpoint_seconds));
  Table table({{"policy"},
               {"interval", Align::right},
               {"goodput", Align::right},
               {"failures", Align::right},
               {"repeated", Align::right},
               {"checkpoints", Align::right},
               {"down", Align::right}});
  for (const simulate::Campaign::Row& row : report.campaign.rows) {
    const double interval = row.settings.checkpoint_interval_seconds;
    table.add_row({row.policy, std::isfinite(interval) ? human_duration(interval) : "none",
                   percent(row.outcome.goodput()), std::to_string(row.outcome.failures),
                   percent(row.outcome.lost_seconds / row.outcome.seconds),
                   percent(row.outcome.checkpoint_seconds / row.outcome.seconds),
                   percent(row.outcome.down_seconds / row.outcome.seconds)});
  }
  return text + table.text();
}

}  // namespace

int SimulationReport::hosts() const { return (ranks + cluster.devices_per_host - 1) / cluster.devices_per_host; }

double SimulationReport::run_seconds() const {
  const double busy = static_cast<double>(steps) * busy_seconds, others = static_cast<double>(steps) * seconds - busy;
  return others + (cluster.device ? cluster.device->throttled_seconds(busy) : busy);
}

bool SimulationReport::fits() const { return !cluster.device || memory_bytes <= cluster.device->memory_bytes; }

std::string SimulationReport::why_not() const {
  return fmt::format("'{}' does not fit: a rank needs {}, and '{}' has {}: {}", model, human_bytes(memory_bytes),
                     cluster.device->name, human_bytes(cluster.device->memory_bytes), next_step);
}

std::string SimulationReport::title() const {
  return fmt::format("{} on {} x {}, {}", model, ranks, cluster.device ? cluster.device->name : "device", cluster.name);
}

std::string SimulationReport::json() const {
  const double samples = static_cast<double>(batch) / seconds;
  nlohmann::ordered_json root = {{"model", model},
                                 {"cluster", cluster.name},
                                 {"device", cluster.device ? cluster.device->name : ""},
                                 {"ranks", ranks},
                                 {"hosts", hosts()},
                                 {"batch", batch},
                                 {"parameters", parameters},
                                 {"step_seconds", seconds},
                                 {"samples_per_second", samples},
                                 {"busy_seconds", busy_seconds},
                                 {"flops_per_step", flops},
                                 {"flops_per_second_per_rank", flops / seconds / ranks},
                                 {"bytes_sent_per_host", bytes_sent},
                                 {"memory_bytes", memory_bytes},
                                 {"state_bytes", state_bytes}};
  if (cluster.device) root["device_memory_bytes"] = cluster.device->memory_bytes;
  root["fits"] = fits();
  if (!strategy.empty()) root["strategy"] = strategy;
  if (tokens_per_sample > 0)
    root["tokens_per_second_per_rank"] = samples * static_cast<double>(tokens_per_sample) / ranks;
  if (of_linear > 0) root["of_linear"] = of_linear;
  if (transformer) {
    root["tensor_seconds"] = transformer->tensor_seconds;
    root["exchange_seconds"] = transformer->exchange_seconds;
    root["update_seconds"] = transformer->update_seconds;
    root["activation_bytes"] = transformer->memory.activations;
    root["buffer_bytes"] = transformer->memory.buffers;
  } else {
    root["exchange_seconds"] = step.exchange_seconds;
    root["waiting_seconds"] = step.waiting_seconds;
    root["collectives"] = step.collectives.size();
    for (const auto& [work, time] : simulate::seconds_by_work(program)) root["seconds_by_work"][work] = time;
  }
  if (watts_of(*this) > 0) root["watts"] = watts_of(*this);
  if (steps > 0) {
    const double hours = run_seconds() / 3600;
    root["run_hours"] = hours;
    if (watts_of(*this) > 0) root["run_kwh"] = hours * watts_of(*this) / 1000;
    if (price_per_host_hour() > 0) root["run_price"] = hours * hosts() * price_per_host_hour();
  }
  if (!campaign.rows.empty()) root["campaign"] = campaign_json(*this);
  return root.dump(2);
}

std::string SimulationReport::text() const {
  const double samples = static_cast<double>(batch) / seconds;
  std::string text = fmt::format("{}\n", title());
  if (!strategy.empty()) text += fmt::format("strategy: {}\n", strategy);
  Table table({{""}, {"", Align::right}});
  table.add_row({"parameters", human_count(parameters)});
  table.add_row({"batch, all ranks", std::to_string(batch)});
  table.add_row({"step", human_duration(seconds)});
  table.add_row({"of it the slowest rank computes", human_duration(busy_seconds)});
  if (tokens_per_sample > 0)
    table.add_row({"tokens/s", human_count(samples * static_cast<double>(tokens_per_sample))});
  else
    table.add_row({"samples/s", fmt::format("{:.1f}", samples)});
  table.add_row({"TFLOP/s per rank", fmt::format("{:.2f}", flops / seconds / ranks / 1e12)});
  if (of_linear > 0) table.add_row({"of linear", fmt::format("{:.3f}", of_linear)});
  table.add_row({"sent per host and step", human_bytes(bytes_sent)});
  table.add_row({"memory of a rank", human_bytes(memory_bytes)});
  table.add_row({"of it states", human_bytes(state_bytes)});
  if (transformer) {
    table.add_row({"messages of the tensor axis", human_duration(transformer->tensor_seconds)});
    table.add_row({"gradients and weights exchanged", human_duration(transformer->exchange_seconds)});
    table.add_row({"update", human_duration(transformer->update_seconds)});
  }
  if (watts_of(*this) > 0) table.add_row({"power of the devices", fmt::format("{:.1f} kW", watts_of(*this) / 1000)});
  if (steps > 0) {
    const double run = run_seconds();
    table.add_row({fmt::format("run of {} steps", steps), human_duration(run)});
    if (watts_of(*this) > 0) table.add_row({"its energy", fmt::format("{:.1f} kWh", run * watts_of(*this) / 3.6e6)});
    if (price_per_host_hour() > 0)
      table.add_row({"its price",
                     fmt::format("{:.2f} {}", run / 3600 * hosts() * price_per_host_hour(), cluster.price.currency)});
  }
  text += table.text();
  text += work_text(*this) + collectives_text(*this) + campaign_text(*this);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace weft::cli
