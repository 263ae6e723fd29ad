#include "weft/predict/node_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/base/format.h"
#include "weft/graph/collective.h"
#include "weft/passes/ranks/overlap_all_reduces.h"
#include "weft/passes/ranks/overlap_collectives.h"

namespace weft::predict {

NodeTimes measured_times(const std::shared_ptr<const OpTimes>& times, bool exact) {
  NodeTimes found;
  found.seconds_per_node = times->overhead.seconds_per_node;
  found.describe = times->empty()
                       ? "the rates of this machine; no op was measured, `weft rates --ops` does it"
                       : fmt::format("{} ops measured on this machine{}{}", times->size(),
                                     times->ranks > 1 ? fmt::format(", with up to {} ranks at once", times->ranks) : "",
                                     exact ? "" : ", of other shapes alone");
  if (times->empty()) found.common_spread = 0.4;
  found.of = [times, exact](const NodeSignature& node, const std::string& kernel) {
    return times->estimate(node, kernel, exact);
  };
  if (!times->exchanges.empty()) found.exchanges = {times, &times->exchanges};
  return found;
}

NodeTimes modelled_times(const std::shared_ptr<const CostModel>& costs, int threads, double spread) {
  return {.of =
              [costs, threads](const NodeSignature& node, const std::string&) {
                const NodeCost cost = costs->cost_of(node, threads);
                return OpEstimate{cost.seconds, 0.3, cost.source};
              },
          .seconds_per_node = 0,
          .common_spread = spread,
          .describe = costs->describe()};
}

NodeTimes slowed(NodeTimes times, double factor, std::string_view why) {
  times.of = [of = std::move(times.of), factor](const NodeSignature& node, const std::string& kernel) {
    OpEstimate estimate = of(node, kernel);
    estimate.seconds *= factor;
    return estimate;
  };
  times.seconds_per_node *= factor;
  times.describe += fmt::format(", {:.2f} times as long {}", factor, why);
  return times;
}

NodeTimes in_turns(NodeTimes times, const HostCores& host) {
  const double turns = host.turns();
  if (turns <= 1) return times;
  return slowed(std::move(times), turns,
                fmt::format("since {} ranks of {} thread{} share {} core{}", host.ranks, host.threads,
                            host.threads == 1 ? "" : "s", host.cores, host.cores == 1 ? "" : "s"));
}

double ExchangeTimes::seconds(std::string_view axis, std::string_view op, int64_t bytes) const {
  if (axis != kDataAxis && along) return along(axis, op, bytes);
  return ranks > 1 ? of(op, bytes) : 0;
}

ExchangeTimes exchange_by(const passes::Ranks& ranks, int ranks_per_host) {
  const auto seconds = [ranks](std::string_view op, int64_t bytes) {
    if (op == kAllReduce) return passes::predicted_seconds(ranks, bytes);
    // Of what is gathered a rank receives all but its own part.
    if (op == kSend || op == kReceive)
      return passes::predicted_gather_seconds(ranks, bytes * ranks.count / std::max(1, ranks.count - 1));
    return passes::predicted_gather_seconds(ranks, op == kAllGather ? bytes * ranks.count : bytes);
  };
  return {.ranks = ranks.count,
          .ranks_per_host = std::max(1, ranks_per_host),
          .of = seconds,
          .along = {},
          .hides = ranks.count > ranks_per_host,
          .spread = 0.2,
          .describe = fmt::format("{} per exchange and {}/s", human_duration(ranks.latency_seconds),
                                  human_bytes(ranks.bytes_per_second)),
          .weighed_by = ranks};
}

ExchangeTimes exchange_in_memory(ExchangeTimes otherwise, const std::shared_ptr<const SharedExchanges>& measured,
                                 const GroupSizes& sizes) {
  if (measured == nullptr) {
    otherwise.describe += ", not measured here, `weft rates --ops --ranks N` does it";
    return otherwise;
  }
  ExchangeTimes exchange = otherwise;
  exchange.of = [measured, ranks = sizes.data, rated = otherwise.of](std::string_view op, int64_t bytes) {
    return measured->seconds(op, ranks, bytes).value_or(rated(op, bytes));
  };
  exchange.along = [measured, sizes, rated = std::move(otherwise)](std::string_view axis, std::string_view op,
                                                                   int64_t bytes) {
    if (axis == kTensorAxis && sizes.tensor <= 1) return 0.0;
    const std::optional<double> seconds =
        axis == kTensorAxis ? measured->seconds(op, sizes.tensor, bytes) : std::nullopt;
    return seconds.value_or(rated.seconds(axis, op, bytes));
  };
  exchange.describe =
      fmt::format("{} measured in this host's memory; others: {}", measured->all().size(), exchange.describe);
  return exchange;
}

}  // namespace weft::predict
