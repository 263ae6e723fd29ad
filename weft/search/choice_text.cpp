// The table of what was chosen, and the same for programs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/search/auto_strategy.h"

namespace weft::search {

using predict::Strategy;

namespace {

constexpr size_t kShownRows = 12, kShownRefusals = 4;

std::string batches_of(const Strategy& of) {
  if (of.pipeline > 1) return fmt::format("{} x {} {}", of.micro_batches, of.rows(), of.schedule);
  return of.accumulate > 1 ? fmt::format("{} x {}", of.accumulate, of.rows()) : fmt::format("{}", of.rows());
}

std::string percent_more(double own, double best) {
  return best > 0 ? fmt::format("{:+.1f} %", 100 * (own / best - 1)) : "";
}

/// By what a strategy is slower than the chosen one: the part of a step that differs the most.
std::string largest_difference(const Estimate& own, const Estimate& best) {
  const std::pair<const char*, double> parts[] = {{"computing", own.computing - best.computing},
                                                  {"waiting for stages", own.waiting - best.waiting},
                                                  {"exchanges", own.exchange - best.exchange},
                                                  {"updates", own.update - best.update}};
  const auto* most = std::max_element(std::begin(parts), std::end(parts),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second > 0 ? fmt::format(", most of it {}", most->first) : "";
}

std::string why(const Choice& choice, size_t at) {
  const Ranked& one = choice.found.ranked[at];
  if (choice.found.chosen == at) return "chosen";
  if (!one.fits())
    return fmt::format("memory: needs {}{}, and {} are there", one.planned && one.estimate.fits ? "more than " : "",
                       human_bytes(one.planned && one.estimate.fits ? choice.memory_bytes : one.memory_bytes()),
                       human_bytes(choice.memory_bytes));
  if (!choice.found.chosen) return "";
  const Ranked& best = choice.found.ranked[*choice.found.chosen];
  // A plan and an estimate are not compared.
  const bool by_plans = choice.found.is_planned && one.planned;
  const double own = by_plans ? one.planned->seconds : one.estimate.seconds;
  const double other = by_plans ? best.planned->seconds : best.estimate.seconds;
  return fmt::format("time: {}{}{}", percent_more(own, other), largest_difference(one.estimate, best.estimate),
                     choice.found.is_planned && !by_plans ? ", by estimates" : "");
}

std::string twice_of(const Ranked& one) {
  std::string text = one.estimate.recomputed > 0 ? fmt::format("{} blocks", one.estimate.recomputed) : "-";
  if (one.estimate.in_file > 0) text += fmt::format(", {} in a file", one.estimate.in_file);
  return text;
}

/// The first rows, and behind them those that did not fit.
std::vector<size_t> shown_rows(const Found& found) {
  std::vector<size_t> rows;
  for (size_t at = 0; at < found.ranked.size() && rows.size() < kShownRows - 3; ++at)
    if (found.ranked[at].fits()) rows.push_back(at);
  for (size_t at = 0; at < found.ranked.size() && rows.size() < kShownRows; ++at)
    if (!found.ranked[at].fits()) rows.push_back(at);
  return rows;
}

std::string table_of(const Choice& choice) {
  Table table({{"data", Align::right},
               {"tensor", Align::right},
               {"pipeline", Align::right},
               {"zero", Align::right},
               {"batches x rows"},
               {"computed twice"},
               {"step", Align::right},
               {"memory", Align::right},
               {"why"}});
  for (const size_t at : shown_rows(choice.found)) {
    const Ranked& one = choice.found.ranked[at];
    const Strategy& s = one.strategy;
    table.add_row({fmt::format("{}", s.data()), fmt::format("{}", s.tensor), fmt::format("{}", s.pipeline),
                   fmt::format("{}", s.zero), batches_of(s), twice_of(one),
                   (one.planned && one.planned->fits ? "" : "~") +
                       human_duration(one.planned && one.planned->fits ? one.planned->seconds : one.estimate.seconds),
                   (one.planned && one.planned->fits ? "" : "~") + human_bytes(one.memory_bytes()), why(choice, at)});
  }
  return table.text();
}

}  // namespace

std::string describe(const Choice& choice) {
  const Found& found = choice.found;
  const Counts& counts = found.counts;
  std::string text = fmt::format("strategy of '{}' on {} of {} each: {}\n\n", choice.model,
                                 choice.start.ranks == 1 ? "1 rank" : fmt::format("{} ranks", choice.start.ranks),
                                 human_bytes(choice.memory_bytes), predict::describe(choice.strategy()));
  text += table_of(choice);
  text += fmt::format("~ estimated; the others are planned. {}\n",
                      found.is_planned ? "Plans decide among those that have one"
                                       : "Estimates decide: the plan of the fastest by estimates would be too large");
  text +=
      fmt::format("the model: {}; times: {}; exchanges: {}\n", choice.blocks, choice.times_from, choice.exchange_from);
  text += fmt::format(
      "{} strategies: {} left out by their bound, {} estimated ({} points of dynamic programming, {} graphs), {} "
      "planned; the best estimate is {:.2f} % above the lower bound\n",
      counts.candidates, counts.bounded, counts.estimated, counts.points, choice.graphs, counts.plans,
      100 * found.gap());
  for (size_t at = 0; at < std::min(kShownRefusals, found.refused.size()); ++at)
    text += fmt::format("not possible, {} strategies: {}\n", found.refused[at].strategies, found.refused[at].why);
  if (found.refused.size() > kShownRefusals)
    text += fmt::format("and {} other reasons\n", found.refused.size() - kShownRefusals);
  return text;
}

nlohmann::ordered_json to_json(const Choice& choice) {
  const Found& found = choice.found;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const size_t at : shown_rows(found)) {
    const Ranked& one = found.ranked[at];
    rows.push_back({{"strategy", predict::to_json(one.strategy)},
                    {"chosen", found.chosen == at},
                    {"planned", one.planned.has_value()},
                    {"fits", one.fits()},
                    {"step_seconds", one.planned && one.planned->fits ? one.planned->seconds : one.estimate.seconds},
                    {"memory_bytes", one.memory_bytes()},
                    {"why", why(choice, at)}});
  }
  nlohmann::ordered_json refused = nlohmann::ordered_json::array();
  for (const Refusal& refusal : found.refused)
    refused.push_back({{"why", refusal.why}, {"strategies", refusal.strategies}});
  return {{"model", choice.model},
          {"ranks", choice.start.ranks},
          {"memory_bytes", choice.memory_bytes},
          {"strategies", rows},
          {"refused", refused},
          {"counts",
           {{"candidates", found.counts.candidates},
            {"bounded", found.counts.bounded},
            {"estimated", found.counts.estimated},
            {"points", found.counts.points},
            {"graphs", choice.graphs},
            {"planned", found.counts.plans}}},
          {"gap", found.gap()}};
}

}  // namespace weft::search
