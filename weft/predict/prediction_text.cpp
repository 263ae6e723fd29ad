// The tables of `weft plan`.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/predict/prediction.h"

namespace weft::predict {

namespace {

std::string bytes(double count) { return human_bytes(count); }

std::string share_of(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

/// The longest stage's step by parts.
std::string step_table(const Prediction& prediction) {
  const StagePrediction& stage = prediction.longest();
  const StepTime& time = stage.time;
  const double whole = stage.step().expected;
  Table table({{"part of a step"}, {"expected", Align::right}, {"share", Align::right}});
  const auto add = [&](const std::string& name, double seconds) {
    table.add_row({name, human_duration(seconds), share_of(seconds, whole)});
  };
  add("forward", time.of(Part::forward));
  add("backward", time.of(Part::backward));
  add("update", time.of(Part::update));
  if (prediction.strategy.ranks > 1) add("exchange, waited for", time.of(Part::exchange));
  if (time.of(Part::transfer) > 0) add("file of activations", time.of(Part::transfer));
  if (time.overhead_seconds > 0) add("between nodes", time.overhead_seconds);
  if (stage.loading_seconds)
    add("loading, waited for", *stage.loading_seconds);
  else
    table.add_row({"loading, waited for", "not known", "-"});
  table.add_rule();
  table.add_row({"step", human_duration(whole), "100 %"});
  if (prediction.strategy.ranks > 1)
    table.add_row({"exchange, hidden", human_duration(time.hidden_seconds), share_of(time.hidden_seconds, whole)});
  return table.text();
}

std::string memory_table(const Prediction& prediction) {
  const MemoryPrediction& memory = prediction.memory;
  Table table({{"memory of a rank, at its peak"}, {"bytes", Align::right}});
  const auto add = [&](const char* name, int64_t count) { table.add_row({name, bytes(static_cast<double>(count))}); };
  add("states", memory.states);
  add("activations", memory.activations);
  add("gradients", memory.gradients);
  add("buffers", memory.buffers);
  table.add_rule();
  add("all", memory.total());
  if (memory.file > 0) add("on disk", memory.file);
  return table.text();
}

/// Two lanes: what the rank does, a letter for each part, and when exchanges are under way.
std::string timeline_text(const Prediction& prediction) {
  constexpr size_t kColumns = 72;
  constexpr std::string_view kLetters = "FBUXT";
  const std::vector<Span>& spans = prediction.longest().time.timeline;
  double end = 0;
  for (const Span& span : spans) end = std::max(end, span.begin + span.seconds);
  if (end <= 0) return "";
  std::string rank, link(kColumns, ' ');
  for (size_t column = 0; column < kColumns; ++column) {
    const double from = end * static_cast<double>(column) / kColumns,
                 to = end * static_cast<double>(column + 1) / kColumns;
    std::array<double, kParts> shares{};
    double under_way = 0;
    for (const Span& span : spans) {
      const double inside = std::min(to, span.begin + span.seconds) - std::max(from, span.begin);
      if (inside <= 0) continue;
      (span.on_link ? under_way : shares[static_cast<size_t>(span.part)]) += inside;
    }
    const auto largest = std::max_element(shares.begin(), shares.end());
    rank += *largest > 0 ? kLetters[static_cast<size_t>(largest - shares.begin())] : ' ';
    if (under_way > (to - from) / 2) link[column] = 'x';
  }
  std::string text = fmt::format("a step   |{}|\n", rank);
  if (prediction.strategy.ranks > 1) text += fmt::format("exchange |{}|\n", link);
  return text + "F forward  B backward  U update  X exchange waited for  T file  x under way\n";
}

constexpr const char* kUnknownLength = "how long the run is, is not known: --samples N says it";

std::string cost_text(const Cost& cost) {
  if (cost.amount.expected <= 0)
    return fmt::format("{} {} per hour; {}", in_money(cost.per_hour), cost.currency, kUnknownLength);
  return fmt::format("{} {} ({} to {})", in_money(cost.amount.expected), cost.currency, in_money(cost.amount.low),
                     in_money(cost.amount.high));
}

std::string energy_text(const Energy& energy) {
  const Interval& all = energy.kilowatt_hours;
  if (all.expected <= 0) return fmt::format("up to {:.4g} W; {}", energy.peak_watts, kUnknownLength);
  return fmt::format("{:.3g} kWh ({:.3g} to {:.3g}), up to {:.4g} W", all.expected, all.low, all.high,
                     energy.peak_watts);
}

std::string to_target_text(const TimeToTarget& target) {
  if (target.reached == 0)
    return fmt::format("none of {} earlier runs on this machine reached {} {}", target.runs, target.metric,
                       target.target);
  return fmt::format("{} of {} earlier runs on this machine reached {} {}: {} in this one", target.reached, target.runs,
                     target.metric, target.target, in_words(target.seconds));
}

}  // namespace

std::string in_money(double amount) {
  return amount >= 0.1 || amount <= 0 ? fmt::format("{:.2f}", amount) : fmt::format("{:.2g}", amount);
}

std::string in_words(const Interval& seconds) {
  return fmt::format("{} ({} to {})", human_duration(seconds.expected), human_duration(seconds.low),
                     human_duration(seconds.high));
}

std::string describe(const Prediction& prediction) {
  const StepTime& time = prediction.longest().time;
  const double computing = time.by_source[0] + time.by_source[1] + time.by_source[2];
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row(
      {"run", fmt::format("{} on {}, {}", prediction.model, prediction.data.empty() ? "random input" : prediction.data,
                          describe(prediction.strategy))});
  table.add_row({"device", prediction.device});
  table.add_row({"step", in_words(prediction.step())});
  const Interval rate = prediction.samples_per_second().times(static_cast<double>(prediction.items_per_sample));
  table.add_row(
      {"rate", fmt::format("{:.4g} {}/s ({:.4g} to {:.4g})", rate.expected, prediction.item, rate.low, rate.high)});
  if (prediction.steps() > 0) {
    table.add_row({"whole run", fmt::format("{} for {} steps, {:.4g} epochs{}", in_words(prediction.run_seconds()),
                                            prediction.steps(), prediction.epochs,
                                            prediction.evaluation_seconds.expected > 0
                                                ? fmt::format("; {} of it evaluates",
                                                              human_duration(prediction.evaluation_seconds.expected))
                                                : "")});
  }
  for (const LinkTraffic& link : prediction.traffic)
    table.add_row({"traffic", fmt::format("{} per step and direction {}", bytes(link.bytes), link.link)});
  if (prediction.energy) table.add_row({"energy", energy_text(*prediction.energy)});
  if (prediction.cost) table.add_row({"cost", cost_text(*prediction.cost)});
  if (prediction.to_target) table.add_row({"target", to_target_text(*prediction.to_target)});
  table.add_row(
      {"known from", fmt::format("{}; of the computing {} is measured, {} interpolated, {} from rates",
                                 prediction.times_from, share_of(time.by_source[2], computing),
                                 share_of(time.by_source[1], computing), share_of(time.by_source[0], computing))});
  if (prediction.strategy.ranks > 1) table.add_row({"exchanges", prediction.exchange_from});
  return fmt::format("{}\n{}\n{}\n{}\nranges are of 80 %; nothing was trained\n", table.text(), step_table(prediction),
                     timeline_text(prediction), memory_table(prediction));
}

}  // namespace weft::predict
