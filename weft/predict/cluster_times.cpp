#include "weft/predict/cluster_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/graph/collective.h"
#include "weft/simulate/collective_cost.h"

namespace weft::predict {

namespace {

constexpr int64_t kSmallBytes = 64, kLargeBytes = 64 << 20;  // between which the two numbers of passes are taken
constexpr double kLinkSpread = 0.2;

simulate::Collective collective_of(std::string_view op) {
  if (op == kAllReduce) return simulate::Collective::all_reduce;
  if (op == kAllGather) return simulate::Collective::all_gather;
  if (op == kAllToAll) return simulate::Collective::all_to_all;
  return op == kReduceScatter ? simulate::Collective::reduce_scatter : simulate::Collective::broadcast;
}

/// Stages are farthest from each other, and ranks that share the layers are neighbours.
simulate::GroupShape group_along(std::string_view axis, const Strategy& strategy) {
  const int64_t size = axis == kTensorAxis ? strategy.tensor : strategy.data();
  const int64_t stride = axis == kTensorAxis ? 1 : strategy.tensor;
  const int64_t on_host = std::min(strategy.ranks, strategy.ranks_per_host);
  const int64_t members = std::clamp<int64_t>(on_host / stride, 1, size);
  return {.size = static_cast<int>(size),
          .per_host = static_cast<int>(members),
          .groups_per_host = static_cast<int>(std::max<int64_t>(1, on_host / members))};
}

}  // namespace

ExchangeTimes exchange_on(const machines::ClusterFile& cluster, const Strategy& strategy) {
  const int64_t hosts = strategy.hosts();
  const auto seconds = [cluster](const simulate::GroupShape& group, std::string_view op, int64_t operand) {
    if (group.size <= 1) return 0.0;
    const bool gathers = op == kAllGather;
    const auto bytes = static_cast<double>(gathers ? operand * group.size : operand);
    return simulate::cost_of(collective_of(op), bytes, group, cluster).seconds();
  };
  const simulate::GroupShape data = group_along(kDataAxis, strategy), tensor = group_along(kTensorAxis, strategy);
  const int64_t stage = strategy.data() * strategy.tensor;  // ranks that have the same layers, which are neighbours
  // Where stages lie on several hosts, all of them keep the pace of those whose messages leave theirs.
  const bool leaves = hosts > 1;
  const int sharers = static_cast<int>(std::min(stage, strategy.ranks_per_host));
  return {.ranks = static_cast<int>(strategy.data()),
          .ranks_per_host = static_cast<int>(strategy.ranks_per_host),
          .of = [seconds, data](std::string_view op, int64_t bytes) { return seconds(data, op, bytes); },
          .along =
              [=](std::string_view axis, std::string_view op, int64_t bytes) {
                if (axis == kTensorAxis) return seconds(tensor, op, bytes);
                if (op == kReceive) return 0.0;  // counted where it is sent
                return simulate::message_cost(static_cast<double>(bytes), leaves, sharers, cluster).seconds();
              },
          // Accelerators exchange beside their kernels; processors that share memory do it themselves.
          .hides = hosts > 1 || cluster.device.has_value(),
          .spread = kLinkSpread,
          .describe =
              hosts > 1
                  ? fmt::format("{}/s of each host, {} of latency", human_bytes(cluster.between_hosts.bytes_per_second),
                                human_duration(cluster.between_hosts.latency_seconds))
                  : fmt::format("{}/s between devices of a host", human_bytes(cluster.in_host.bytes_per_second))};
}

passes::Ranks ranks_of(const ExchangeTimes& exchange) {
  if (exchange.ranks <= 1) return {};
  if (exchange.weighed_by) return *exchange.weighed_by;
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
    const double busy =
        whole > 0 ? (time.of(Part::forward) + time.of(Part::backward) + time.of(Part::update)) / whole : 0;
    prediction.energy = Energy{seconds.times(devices * cluster.device->watts(std::min(1.0, busy)) / 3.6e6),
                               devices * cluster.device->peak_watts};
  }
  if (cluster.price.per_host_hour > 0)
    prediction.cost = Cost{.amount = seconds.times(hosts * cluster.price.per_host_hour / 3600),
                           .per_hour = hosts * cluster.price.per_host_hour,
                           .currency = cluster.price.currency};
}

}  // namespace weft::predict
