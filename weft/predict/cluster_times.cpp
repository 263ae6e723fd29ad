#include "weft/predict/cluster_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weft/base/format.h"
#include "weft/graph/collective.h"

namespace weft::predict {

namespace {

constexpr int64_t kSmallBytes = 64, kLargeBytes = 64 << 20;  // between which the two numbers of passes are taken
constexpr double kLinkSpread = 0.2;

/// Bytes per second that are left to a host by all that stands above it, and the latency there.
comm::LinkCosts link_of_host(const machines::ClusterFile& cluster, int64_t hosts) {
  comm::LinkCosts link = cluster.between_hosts;
  for (const machines::NetworkLevel& level : cluster.levels) {
    if (level.hosts >= hosts) continue;  // one unit holds all
    link.bytes_per_second =
        std::min(link.bytes_per_second, level.uplink_bytes_per_second / std::max(1, level.hosts));
    link.latency_seconds += level.latency_seconds;
  }
  return link;
}

/// Of a sum that everybody gets; half of it of what is only gathered, or scattered.
double ring(const comm::LinkCosts& link, double members, double bytes) {
  const double step = std::max(link.message_seconds, bytes / members / link.bytes_per_second) + link.latency_seconds;
  return 2 * (members - 1) * step;
}
double halving_doubling(const comm::LinkCosts& link, double members, double bytes) {
  return 2 * std::ceil(std::log2(members)) * (link.latency_seconds + link.message_seconds) +
         2 * (members - 1) / members * bytes / link.bytes_per_second;
}
double all_reduce(const comm::LinkCosts& link, int64_t members, double bytes) {
  if (members <= 1) return 0;
  const auto count = static_cast<double>(members);
  return std::min(ring(link, count, bytes), halving_doubling(link, count, bytes));
}

}  // namespace

ExchangeTimes exchange_on(const machines::ClusterFile& cluster, const Strategy& strategy) {
  const int64_t hosts = strategy.hosts(), on_host = std::min(strategy.ranks, strategy.ranks_per_host);
  const comm::LinkCosts between = link_of_host(cluster, hosts);
  comm::LinkCosts within = cluster.in_host;
  within.bytes_per_second = std::min(within.bytes_per_second,
                                     cluster.in_host_shared_bytes_per_second / static_cast<double>(std::max<int64_t>(1, on_host)));
  const auto seconds = [=, ranks = strategy.ranks](std::string_view op, int64_t operand) {
    const bool gathers = op == kAllGather;
    const auto bytes = static_cast<double>(gathers ? operand * ranks : operand);
    // Ranks of a host each carry a part of it to the other hosts, over the link that they share.
    const double all = all_reduce(within, on_host, bytes) + all_reduce(between, hosts, bytes);
    return op == kAllReduce ? all : all / 2;
  };
  return {.ranks = static_cast<int>(strategy.ranks),
          .ranks_per_host = static_cast<int>(strategy.ranks_per_host),
          .of = seconds,
          // Accelerators exchange beside their kernels; processors that share memory do it themselves.
          .hides = hosts > 1 || cluster.device.has_value(),
          .spread = kLinkSpread,
          .describe = hosts > 1 ? fmt::format("{}/s of each host, {} of latency", human_bytes(between.bytes_per_second),
                                              human_duration(between.latency_seconds))
                                : fmt::format("{}/s between devices of a host", human_bytes(within.bytes_per_second))};
}

passes::Ranks ranks_of(const ExchangeTimes& exchange) {
  if (exchange.ranks <= 1) return {};
  const double small = exchange.of(kAllReduce, kSmallBytes), large = exchange.of(kAllReduce, kLargeBytes);
  return {.count = exchange.ranks,
          .latency_seconds = std::max(small, 1e-6),
          .bytes_per_second = static_cast<double>(kLargeBytes - kSmallBytes) / std::max(large - small, 1e-9)};
}

double throttled_seconds(const machines::DeviceFile& device, double seconds) {
  double work = seconds, now = 0;
  double share = 1;
  for (const auto& [begin, next_share] : device.throttling) {
    const double done = (begin - now) * share;
    if (done >= work) break;
    work -= std::max(0.0, done);
    now = std::max(now, begin);
    share = next_share;
  }
  return now + work / share;
}

void add_energy_and_cost(Prediction& prediction, const machines::ClusterFile& cluster) {
  const Interval seconds = prediction.run_seconds();
  const auto hosts = static_cast<double>(prediction.strategy.hosts());
  const auto devices = static_cast<double>(prediction.strategy.ranks);
  if (cluster.device && cluster.device->peak_watts > 0 && !prediction.stages.empty()) {
    const StepTime& time = prediction.longest().time;
    const double whole = prediction.longest().step().expected;
    const double busy = whole > 0 ? (time.of(Part::forward) + time.of(Part::backward) + time.of(Part::update)) / whole : 0;
    prediction.energy = Energy{seconds.times(devices * cluster.device->watts(std::min(1.0, busy)) / 3.6e6),
                               devices * cluster.device->peak_watts};
  }
  if (cluster.price.per_host_hour > 0)
    prediction.cost = Cost{seconds.times(hosts * cluster.price.per_host_hour / 3600), cluster.price.currency};
}

}  // namespace weft::predict
