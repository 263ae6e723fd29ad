#include "weft/planner/search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "weft/base/error.h"

namespace weft::planner {

namespace {

/// What has no price may cost anything: it is never cheaper than what has one, and cannot be said to keep to a budget.
double cost_of(const Candidate& candidate, double cost) {
  return candidate.price_per_hour() > 0 ? cost : std::numeric_limits<double>::infinity();
}

/// Means by which, with a slow momentum of 0.3, resnet9 ends about as accurate as with every gradient
/// (docs/gradients.md, "Time to a target").
constexpr spec::AveragingSpec kMeans{.period = 6, .states_every = 8};

double expected_cost(const Offer& offer) { return cost_of(offer.candidate, offer.cost.expected); }

/// Not worse in either, and better in one.
bool beats(const Offer& one, const Offer& other) {
  const double cost = expected_cost(one), other_cost = expected_cost(other);
  const bool not_worse = one.seconds.expected <= other.seconds.expected && cost <= other_cost;
  return not_worse && (one.seconds.expected < other.seconds.expected || cost < other_cost);
}

/// Whatever the plan of something that takes at least so long and costs at least so much would be.
bool beats_least(const Offer& one, double seconds, double cost) {
  return one.seconds.high <= seconds && cost_of(one.candidate, one.cost.high) <= cost;
}

std::vector<int64_t> rank_counts_of(const machines::ClusterFile& cluster, int64_t given) {
  if (given > 0) return given <= cluster.ranks() ? std::vector{given} : std::vector<int64_t>{};
  std::vector<int64_t> counts;
  for (int64_t devices = 1; devices < cluster.devices_per_host; devices *= 2) counts.push_back(devices);
  for (int64_t hosts = 1; hosts < cluster.hosts; hosts *= 2) counts.push_back(hosts * cluster.devices_per_host);
  counts.push_back(cluster.ranks());
  return counts;
}

std::vector<size_t> front_of(const std::vector<Offer>& offers) {
  std::vector<size_t> front;
  for (size_t at = 0; at < offers.size(); ++at)
    if (std::none_of(offers.begin(), offers.end(), [&](const Offer& other) { return beats(other, offers[at]); }))
      front.push_back(at);
  return front;
}

}  // namespace

double Candidate::price_per_hour() const {
  const machines::Price& price = cluster->price;
  return static_cast<double>(strategy.hosts()) * (spot ? price.spot_per_host_hour : price.per_host_hour);
}

bool meets(const Offer& offer, const Goal& goal) { return distance_to(offer, goal) <= 1; }

double distance_to(const Offer& offer, const Goal& goal) {
  double distance = 0;
  if (goal.deadline_seconds) distance = std::max(distance, offer.seconds.high / *goal.deadline_seconds);
  if (goal.budget) distance = std::max(distance, cost_of(offer.candidate, offer.cost.high) / *goal.budget);
  return distance;
}

Found search(std::vector<Candidate> candidates, const Goal& goal, const Evaluator& evaluator,
             const std::function<void(size_t done, size_t all)>& progress) {
  Found found;
  std::vector<std::pair<double, size_t>> order;
  for (size_t at = 0; at < candidates.size(); ++at)
    order.emplace_back(evaluator.least_seconds ? evaluator.least_seconds(candidates[at]) : 0.0, at);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t done = 0;
  for (const auto& [least, at] : order) {
    const Candidate& candidate = candidates[at];
    const double least_cost = cost_of(candidate, least / 3600 * candidate.price_per_hour());
    const auto beaten = [&, least = least](const Offer& offer) { return beats_least(offer, least, least_cost); };
    if (least > 0 && std::any_of(found.offers.begin(), found.offers.end(), beaten)) {
      ++found.left_out;
    } else {
      try {
        found.offers.push_back(evaluator.offer(candidate));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;
        found.refused.push_back({candidate, error.what()});
      }
    }
    if (progress) progress(++done, candidates.size());
  }
  std::stable_sort(found.offers.begin(), found.offers.end(),
                   [](const Offer& a, const Offer& b) { return a.seconds.expected < b.seconds.expected; });
  found.front = front_of(found.offers);
  for (size_t at = 0; at < found.offers.size(); ++at) {
    const Offer& offer = found.offers[at];
    if (meets(offer, goal) && (!found.best || expected_cost(offer) < expected_cost(found.offers[*found.best])))
      found.best = at;
    if (!found.nearest || distance_to(offer, goal) < distance_to(found.offers[*found.nearest], goal))
      found.nearest = at;
  }
  if (found.best) found.nearest.reset();
  return found;
}

void require_one_currency(const std::vector<machines::ClusterFile>& clusters) {
  std::map<std::string, std::vector<std::string>> names;
  for (const machines::ClusterFile& cluster : clusters)
    if (cluster.price.per_host_hour > 0 || cluster.price.spot_per_host_hour > 0)
      names[cluster.price.currency].push_back(cluster.name);
  if (names.size() < 2) return;
  std::string text;
  for (const auto& [currency, of_currency] : names)
    text += fmt::format("{}{} in {}", text.empty() ? "" : "; ", fmt::join(of_currency, ", "), currency);
  fail(ErrorKind::usage,
       "the cluster files have prices in {} currencies, which cannot be compared: {}; write them in one, or put the "
       "files of one currency into a directory of their own and name it by --clusters",
       names.size(), text);
}

void require_prices(const std::vector<machines::ClusterFile>& clusters, bool spot) {
  std::vector<std::string> files;
  for (const machines::ClusterFile& cluster : clusters) {
    if (cluster.price.per_host_hour > 0 || (spot && cluster.price.spot_per_host_hour > 0)) return;
    files.push_back("'" + cluster.file + "'");
  }
  fail(ErrorKind::usage,
       "--budget: price.per_host_hour is missing in {}, so that nothing can be said to keep to a budget; write "
       "[price] and per_host_hour = N there",
       fmt::join(files, ", "));
}

std::vector<Candidate> candidates_of(const std::vector<machines::ClusterFile>& clusters, const spec::RunSpec& spec,
                                     const StrategyChoices& choices) {
  std::vector<Candidate> candidates;
  // A mesh that names its ranks along data has no others.
  const bool is_given = choices.ranks == 0 && !choices.open && spec.mesh.data > 0;
  const int64_t given = is_given ? spec.mesh.data * spec.mesh.tensor * spec.mesh.pipeline : choices.ranks;
  for (const machines::ClusterFile& cluster : clusters) {
    for (const int64_t ranks : rank_counts_of(cluster, given)) {
      if (!choices.open && !predict::can_divide(spec, ranks)) continue;
      for (const bool spot : {false, true}) {
        if (spot && (!choices.spot || cluster.price.spot_per_host_hour <= 0)) continue;
        predict::Strategy strategy = predict::strategy_of(spec, ranks, cluster.devices_per_host);
        strategy.threads = cluster.device || cluster.cores_per_host == 0
                               ? 1
                               : std::max<int64_t>(1, cluster.cores_per_host / cluster.devices_per_host);
        if (choices.open) {
          candidates.push_back({&cluster, spot, strategy, /*is_open=*/true});
          continue;
        }
        const auto add = [&](int64_t zero, const std::string& compression, const spec::AveragingSpec& averaging) {
          strategy.zero = zero;
          strategy.compression = compression;
          strategy.averaging_period = averaging.period;
          strategy.states_every = averaging.states_every;
          candidates.push_back({&cluster, spot, strategy});
        };
        add(ranks > 1 ? spec.shard.zero : 0, spec.compression.method, spec.averaging);
        if (strategy.data() == 1) continue;
        const bool is_plain = spec.shard.zero == 0 && spec.compression.method == "none" && spec.averaging.period == 0;
        if (!is_plain) continue;  // the recipe has decided
        add(1, "none", {});
        add(3, "none", {});
        add(0, "bf16", {});
        if (choices.averages) add(0, "none", kMeans);
      }
    }
  }
  return candidates;
}

}  // namespace weft::planner
