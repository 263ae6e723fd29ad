#include "weft/planner/offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/plot/figure.h"

namespace weft::planner {

namespace {

constexpr size_t kMostRows = 24, kMostRefused = 5;

/// Predictions that were made, each once: the price of a machine changes none.
class Predictions {
 public:
  Predictions(const Library& library, const predict::PlannedModel& model, predict::Place here)
      : library_(library), model_(model), here_(std::move(here)) {}

  /// Error(usage) where there is no such run; the same at each call.
  const predict::Prediction& of(const machines::ClusterFile* cluster, const predict::Strategy& strategy) {
    const auto [found, is_new] = made_.try_emplace({cluster, predict::to_json(strategy).dump()});
    Made& made = found->second;
    if (is_new) {
      try {
        predict::Place place = here_;
        place.cluster = cluster;
        made.prediction = predict::predict_on(library_, model_, strategy, place);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;
        made.why_not = error.what();
      }
    }
    if (!made.why_not.empty()) fail(ErrorKind::usage, "{}", made.why_not);
    return made.prediction;
  }

  /// What the candidate leaves open, chosen. Error(usage) where no strategy trains there.
  predict::Strategy strategy_of(const Candidate& candidate) {
    if (!candidate.is_open) return candidate.strategy;
    const auto [found, is_new] = chosen_.try_emplace({candidate.cluster, candidate.strategy.ranks});
    Chosen& chosen = found->second;
    if (is_new) {
      try {
        predict::Place place = here_;
        place.cluster = candidate.cluster;
        chosen =
            fastest_planned(search::choose_strategy(library_, model_, place, candidate.strategy, kLimitsOfChoices));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;
        chosen.why_not = error.what();
      }
    }
    if (!chosen.strategy) fail(ErrorKind::usage, "{}", chosen.why_not);
    return *chosen.strategy;
  }

  /// What all of the work takes one device, if nothing were lost by dividing it; 0: it does not fit there.
  double alone(const Candidate& candidate) {
    predict::Strategy one = candidate.strategy;
    one.ranks = one.tensor = one.pipeline = 1;
    one.zero = one.averaging_period = 0;
    one.compression = "none";
    try {
      return of(candidate.cluster, one).run_seconds().low;
    } catch (const Error&) {
      return 0;
    }
  }

  /// Bytes of all states, which a checkpoint has.
  double whole_states(const Candidate& candidate, const predict::Prediction& prediction) {
    const predict::Strategy& strategy = candidate.strategy;
    const double own =
        static_cast<double>(prediction.memory.states) * static_cast<double>(strategy.tensor * strategy.pipeline);
    if (strategy.zero == 0) return own;
    if (strategy.zero == 3) return own * static_cast<double>(strategy.data());
    predict::Strategy plain = candidate.strategy;
    plain.zero = 0;
    try {
      return static_cast<double>(of(candidate.cluster, plain).memory.states * plain.tensor * plain.pipeline);
    } catch (const Error&) {  // they do not fit a rank: it has at least all weights
      return own;
    }
  }

 private:
  struct Made {
    predict::Prediction prediction;
    std::string why_not;
  };
  struct Chosen {
    std::optional<predict::Strategy> strategy;
    std::string why_not;
  };
  /// Of those with plans: a plan that would be too large to be made says neither time nor memory of the run.
  static Chosen fastest_planned(const search::Choice& choice) {
    for (const search::Ranked& one : choice.found.ranked)
      if (one.planned && one.planned->fits) return {one.strategy, ""};
    return {std::nullopt, fmt::format("the plans of the strategies of {} ranks would be too large to be made; choose "
                                      "one with --set, such as mesh.tensor or fewer pipeline.micro_batches",
                                      choice.start.ranks)};
  }
  const Library& library_;
  const predict::PlannedModel& model_;
  const predict::Place here_;
  std::map<std::pair<const machines::ClusterFile*, std::string>, Made> made_;
  std::map<std::pair<const machines::ClusterFile*, int64_t>, Chosen> chosen_;  // by ranks
};

Offer offer_of(Predictions& predictions, const predict::PlannedModel& model, Candidate candidate) {
  candidate.strategy = predictions.strategy_of(candidate);
  Offer offer{.candidate = candidate, .prediction = predictions.of(candidate.cluster, candidate.strategy)};
  const predict::Interval own = offer.prediction.run_seconds();
  if (own.expected <= 0)
    fail(ErrorKind::usage, "the length of the run is not known: give --samples, or put the recipe's data here");
  const predict::Strategy& strategy = candidate.strategy;
  const double states = predictions.whole_states(candidate, offer.prediction);
  const bool is_divided = strategy.zero > 0 || strategy.tensor * strategy.pipeline > 1;
  offer.restarts = restarts_of(*candidate.cluster, strategy.hosts(), candidate.spot, own.expected, states, is_divided);
  offer.seconds = own.times(offer.restarts.factor);
  offer.cost = offer.seconds.times(candidate.price_per_hour() / 3600);
  if (model.sample_seconds > 0)
    offer.cores_per_device =
        model.sample_seconds * offer.prediction.samples_per_second().expected / static_cast<double>(strategy.ranks);
  return offer;
}

std::string machine_of(const Candidate& candidate) {
  return candidate.cluster->name + (candidate.spot ? ", spot" : "");
}

std::string cost_text(const predict::Interval& cost, const std::string& currency) {
  return cost.expected > 0 ? fmt::format("{} ({} to {}) {}", predict::in_money(cost.expected),
                                         predict::in_money(cost.low), predict::in_money(cost.high), currency)
                           : "no price";
}

std::string goal_text(const Goal& goal) {
  std::string text;
  if (goal.deadline_seconds) text += human_duration(*goal.deadline_seconds);
  if (goal.budget)
    text += fmt::format("{}a budget of {}", text.empty() ? "" : " and ", predict::in_money(*goal.budget));
  return text;
}

std::string line_of(const Offer& offer) {
  return fmt::format("{}, {}: {}, {}", machine_of(offer.candidate), predict::describe(offer.candidate.strategy),
                     predict::in_words(offer.seconds), cost_text(offer.cost, offer.candidate.cluster->price.currency));
}

std::string restarts_text(const Restarts& restarts) {
  if (restarts.mean_seconds_between <= 0) return "-";
  return fmt::format("{:.2g}, saves every {}", restarts.expected, human_duration(restarts.interval_seconds));
}

}  // namespace

Evaluator evaluator_of(const Library& library, const predict::PlannedModel& model, const predict::Place& here) {
  const auto predictions = std::make_shared<Predictions>(library, model, here);
  return {.offer = [&model, predictions](const Candidate& of) { return offer_of(*predictions, model, of); },
          .least_seconds =
              [predictions](const Candidate& of) {
                return predictions->alone(of) / static_cast<double>(of.strategy.ranks);
              }};
}

std::string describe(const Found& found, const Goal& goal) {
  Table table({{""},
               {"machines"},
               {"strategy"},
               {"time, with restarts"},
               {"cost"},
               {"interruptions"},
               {"cores a device, to load", Align::right}});
  const std::set<size_t> front(found.front.begin(), found.front.end());
  size_t rows = 0;
  for (size_t at = 0; at < found.offers.size(); ++at) {
    const Offer& offer = found.offers[at];
    const bool is_chosen = found.best == at || found.nearest == at;
    if (!front.contains(at) && !is_chosen && rows >= kMostRows) continue;
    ++rows;
    table.add_row({found.best == at      ? "chosen"
                   : found.nearest == at ? "nearest"
                   : front.contains(at)  ? "front"
                                         : "",
                   machine_of(offer.candidate), predict::describe(offer.candidate.strategy),
                   predict::in_words(offer.seconds), cost_text(offer.cost, offer.candidate.cluster->price.currency),
                   restarts_text(offer.restarts),
                   offer.cores_per_device > 0 ? fmt::format("{:.1f}", offer.cores_per_device) : "-"});
  }
  std::string text = table.text();
  text += fmt::format("\n{} plans compared{}; ranges are of 80 %, and a goal is met where their upper ends meet it\n",
                      found.offers.size(),
                      found.left_out > 0 ? fmt::format(", {} more could not be better", found.left_out) : "");
  for (size_t at = 0; at < std::min(kMostRefused, found.refused.size()); ++at)
    text += fmt::format("not possible: {}, {}\n", machine_of(found.refused[at].candidate), found.refused[at].why);
  if (found.refused.size() > kMostRefused)
    text += fmt::format("not possible: {} more\n", found.refused.size() - kMostRefused);
  if (found.best)
    text += fmt::format("chosen: {}\n", line_of(found.offers[*found.best]));
  else if (found.nearest)
    text += fmt::format("nothing meets {}; the nearest: {}\n", goal_text(goal), line_of(found.offers[*found.nearest]));
  return text;
}

nlohmann::ordered_json to_json(const Found& found, const Goal& goal) {
  const auto interval = [](const predict::Interval& of) {
    return nlohmann::ordered_json{{"low", of.low}, {"expected", of.expected}, {"high", of.high}};
  };
  auto offers = nlohmann::ordered_json::array(), refused = nlohmann::ordered_json::array();
  const std::set<size_t> front(found.front.begin(), found.front.end());
  for (size_t at = 0; at < found.offers.size(); ++at) {
    const Offer& offer = found.offers[at];
    offers.push_back({{"cluster", offer.candidate.cluster->name},
                      {"spot", offer.candidate.spot},
                      {"strategy", predict::to_json(offer.candidate.strategy)},
                      {"seconds", interval(offer.seconds)},
                      {"cost", interval(offer.cost)},
                      {"currency", offer.candidate.cluster->price.currency},
                      {"interruptions", offer.restarts.expected},
                      {"checkpoint_interval_seconds", offer.restarts.interval_seconds},
                      {"cores_per_device", offer.cores_per_device},
                      {"front", front.contains(at)},
                      {"meets", meets(offer, goal)}});
  }
  for (const Found::Refused& one : found.refused)
    refused.push_back({{"cluster", one.candidate.cluster->name},
                       {"strategy", predict::to_json(one.candidate.strategy)},
                       {"why", one.why}});
  nlohmann::ordered_json root = {{"offers", offers}, {"refused", refused}, {"left_out", found.left_out}};
  root["chosen"] = found.best ? nlohmann::ordered_json(*found.best) : nlohmann::ordered_json(nullptr);
  root["nearest"] = found.nearest ? nlohmann::ordered_json(*found.nearest) : nlohmann::ordered_json(nullptr);
  return root;
}

std::string draw_svg(const Found& found, const std::string& title) {
  plot::Panel panel{.title = "cost", .x_label = "hours", .series = {}};
  // Of a number of ranks of a cluster the cheapest strategy.
  std::map<std::string, std::map<int64_t, const Offer*>> lines;
  for (const Offer& offer : found.offers) {
    const Offer*& cheapest = lines[machine_of(offer.candidate)][offer.candidate.strategy.ranks];
    if (cheapest == nullptr || offer.cost.expected < cheapest->cost.expected) cheapest = &offer;
  }
  int group = 0;
  const auto add = [&](plot::Series& series, const Offer& offer) {
    series.x.push_back(offer.seconds.expected / 3600);
    series.y.push_back(offer.cost.expected);
  };
  for (const auto& [name, offers] : lines) {
    plot::Series series{.name = name, .x = {}, .y = {}, .group = group++};
    for (const auto& [ranks, offer] : offers) add(series, *offer);
    panel.series.push_back(std::move(series));
  }
  plot::Series front{.name = "no plan is better in both", .x = {}, .y = {}, .group = group, .line = plot::Line::dashed};
  for (const size_t at : found.front) add(front, found.offers[at]);
  panel.series.push_back(std::move(front));
  return plot::draw_svg({.title = title, .panels = {std::move(panel)}});
}

}  // namespace weft::planner
