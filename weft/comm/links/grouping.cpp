#include "weft/comm/links/grouping.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

namespace weft::comm {

namespace {

constexpr double kFarLatencyFactor = 3, kFarLatencySeconds = 100e-6;

bool is_worse(const LinkCosts& link, double bytes_per_second, double latency_seconds) {
  return link.bytes_per_second * kAlikeFactor < bytes_per_second ||
         link.latency_seconds > kFarLatencyFactor * latency_seconds + kFarLatencySeconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

/// Of each host the median over its links, of these the worst.
template <typename Value, typename Worst>
double of_worst_host(const std::vector<Topology::Pair>& pairs, Value&& value, Worst&& worst) {
  std::map<int, std::vector<double>> of_host;
  for (const Topology::Pair& pair : pairs)
    for (const int host : {pair.first, pair.second}) of_host[host].push_back(value(pair.costs));
  double result = median(of_host.begin()->second);
  for (const auto& [host, values] : of_host) result = worst(result, median(values));
  return result;
}

LinkCosts worst_of(const std::vector<Topology::Pair>& pairs) {
  const auto less = [](double a, double b) { return std::min(a, b); };
  const auto more = [](double a, double b) { return std::max(a, b); };
  return {.latency_seconds = of_worst_host(
              pairs, [](const LinkCosts& link) { return link.latency_seconds; }, more),
          .bytes_per_second = of_worst_host(
              pairs, [](const LinkCosts& link) { return link.bytes_per_second; }, less),
          .message_seconds = of_worst_host(
              pairs, [](const LinkCosts& link) { return link.message_seconds; }, more)};
}

}  // namespace

bool are_alike(const LinkCosts& a, const LinkCosts& b) {
  return !is_worse(a, b.bytes_per_second, b.latency_seconds) && !is_worse(b, a.bytes_per_second, a.latency_seconds);
}

std::vector<std::vector<std::pair<int, int>>> tournament(int hosts) {
  // The circle method: one stays, the others go around it. An odd one out meets nobody.
  const int places = hosts + hosts % 2, around = places - 1;
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round < around; ++round) {
    std::vector<std::pair<int, int>> pairs;
    const auto add = [&](int a, int b) {
      if (a < hosts && b < hosts) pairs.emplace_back(std::min(a, b), std::max(a, b));
    };
    add(round, around);
    for (int step = 1; step < places / 2; ++step) add((round + step) % around, (round + around - step) % around);
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

std::vector<std::vector<int>> find_groups(const PairTable& measured) {
  const int hosts = measured.hosts();
  const auto count = static_cast<size_t>(hosts);
  std::vector<double> best_rate(count, 0), best_latency(count, kUnlimited);
  std::vector<std::vector<int>> groups;
  for (int host = 0; host < hosts; ++host) {
    groups.push_back({host});
    const auto self = static_cast<size_t>(host);
    for (int other = 0; other < hosts; ++other) {
      if (other == host) continue;
      best_rate[self] = std::max(best_rate[self], measured.at(host, other).bytes_per_second);
      best_latency[self] = std::min(best_latency[self], measured.at(host, other).latency_seconds);
    }
  }
  const auto is_far = [&](int a, int b) {
    const auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);
    return is_worse(measured.at(a, b), std::min(best_rate[x], best_rate[y]),
                    std::max(best_latency[x], best_latency[y]));
  };
  std::vector<uint8_t> far(count * count, 0);
  for (int a = 0; a < hosts; ++a)
    for (int b = 0; b < hosts; ++b) far[static_cast<size_t>(a * hosts + b)] = a != b && is_far(a, b) ? 1 : 0;
  std::vector<double> distance(count * count, 0);
  for (size_t a = 0; a < count; ++a)
    for (size_t b = 0; b < count; ++b) {
      int different = far[a * count + b];
      for (size_t other = 0; other < count; ++other)
        if (other != a && other != b) different += far[a * count + other] != far[b * count + other] ? 1 : 0;
      distance[a * count + b] = different / static_cast<double>(std::max(hosts - 1, 1));
    }
  for (;;) {
    double least = 0.5;
    size_t first = 0, second = 0;
    for (size_t a = 0; a < groups.size(); ++a)
      for (size_t b = a + 1; b < groups.size(); ++b) {
        double sum = 0;
        for (const int x : groups[a])
          for (const int y : groups[b]) sum += distance[static_cast<size_t>(x * hosts + y)];
        const double mean = sum / static_cast<double>(groups[a].size() * groups[b].size());
        if (mean >= least) continue;
        least = mean;
        first = a;
        second = b;
      }
    if (second == 0) return groups;
    groups[first].insert(groups[first].end(), groups[second].begin(), groups[second].end());
    std::sort(groups[first].begin(), groups[first].end());
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(second));
  }
}

AlikeLinks summarize(const PairTable& measured, const std::vector<std::pair<int, int>>& pairs) {
  std::vector<Topology::Pair> alike, others;
  std::map<int, int> links, unlike;  // per host
  std::vector<double> rates, latencies;
  for (const auto& [a, b] : pairs) {
    rates.push_back(measured.at(a, b).bytes_per_second);
    latencies.push_back(measured.at(a, b).latency_seconds);
  }
  std::sort(rates.begin(), rates.end());
  const LinkCosts middle{
      .latency_seconds = median(latencies), .bytes_per_second = rates[rates.size() / 2], .message_seconds = 0};
  for (const auto& [a, b] : pairs) {
    const LinkCosts& link = measured.at(a, b);
    const bool is_unlike = is_worse(link, middle.bytes_per_second, middle.latency_seconds);
    (is_unlike ? others : alike).push_back({std::min(a, b), std::max(a, b), link});
    for (const int host : {a, b}) {
      ++links[host];
      unlike[host] += is_unlike ? 1 : 0;
    }
  }
  // Rate and latency in the middle may be of links that are alike to nothing.
  if (alike.empty()) alike.swap(others);
  AlikeLinks result{.costs = worst_of(alike), .exceptions = {}};
  const auto is_slow_host = [&](int host) { return unlike[host] >= 2 && 2 * unlike[host] >= links[host]; };
  std::erase_if(others,
                [&](const Topology::Pair& pair) { return !is_slow_host(pair.first) && !is_slow_host(pair.second); });
  std::sort(others.begin(), others.end(), [](const Topology::Pair& a, const Topology::Pair& b) {
    return std::tuple(a.costs.bytes_per_second, a.first, a.second) <
           std::tuple(b.costs.bytes_per_second, b.first, b.second);
  });
  while (!others.empty()) {
    const LinkCosts slowest = others.front().costs;
    const auto end = std::stable_partition(others.begin(), others.end(),
                                           [&](const Topology::Pair& pair) { return are_alike(pair.costs, slowest); });
    const std::vector<Topology::Pair> same(others.begin(), end);
    const LinkCosts costs = worst_of(same);
    for (const Topology::Pair& pair : same) result.exceptions.push_back({pair.first, pair.second, costs});
    others.erase(others.begin(), end);
  }
  std::sort(result.exceptions.begin(), result.exceptions.end(), [](const Topology::Pair& a, const Topology::Pair& b) {
    return std::pair(a.first, a.second) < std::pair(b.first, b.second);
  });
  return result;
}

}  // namespace weft::comm
