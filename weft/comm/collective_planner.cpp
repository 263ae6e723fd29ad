#include "weft/comm/collective_planner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weft/comm/links/orders.h"
#include "weft/comm/runner.h"
#include "weft/comm/schedules/broadcast.h"
#include "weft/comm/schedules/reordered.h"

namespace weft::comm {

namespace {

constexpr double kMessageSeconds = 1e-3;    // for which a message may hold the link,
constexpr double kMessageCostShare = 0.02;  // unless what it costs besides is a larger part of that
constexpr double kFewestMessageBytes = 64 << 10, kMostMessageBytes = 2 << 20;
constexpr double kNativeMargin = 1.1;    // by which the communicator's own has to be faster than ours
constexpr double kSecondsAhead = 12e-3;  // of the link, handed over to the system

/// Ranks of each host, by host and then by local rank.
std::vector<std::vector<int>> ranks_by_host(const std::vector<Member>& members) {
  std::vector<std::vector<int>> hosts;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const auto host = static_cast<size_t>(members[rank].host_index);
    if (host >= hosts.size()) hosts.resize(host + 1);
    hosts[host].push_back(static_cast<int>(rank));
  }
  return hosts;
}

int fewest_on_host(const std::vector<std::vector<int>>& hosts) {
  size_t fewest = std::numeric_limits<int>::max();
  for (const auto& ranks : hosts) fewest = std::min(fewest, ranks.size());
  return static_cast<int>(fewest);
}

}  // namespace

CollectivePlanner::CollectivePlanner(std::vector<Member> members, int rank, bool has_native,
                                     const CollectivesOptions& options)
    : members_(std::move(members)),
      rank_(rank),
      has_native_(has_native),
      options_(options),
      hosts_(ranks_by_host(members_)),
      lanes_(fewest_on_host(hosts_)),
      links_(Links(host_count(), options.costs.between_hosts, options.costs.topology).divided(lanes_)),
      slowest_(links_.slowest()) {}

int64_t CollectivePlanner::most_on_host() const {
  size_t most = 0;
  for (const auto& ranks : hosts_) most = std::max(most, ranks.size());
  return static_cast<int64_t>(most);
}

int64_t CollectivePlanner::most_bytes_at_once() const {
  const double bytes = kSecondsAhead * slowest_.bytes_per_second;
  return static_cast<int64_t>(std::clamp(bytes, 4 * kFewestMessageBytes, 8 * kMostMessageBytes));
}

int64_t CollectivePlanner::most_elements(DType dtype) const {
  const double seconds = std::max(kMessageSeconds, slowest_.message_seconds / kMessageCostShare);
  const double bytes = std::clamp(seconds * slowest_.bytes_per_second, kFewestMessageBytes, kMostMessageBytes);
  return align_up(static_cast<int64_t>(bytes) * static_cast<int64_t>(hosts_.size())) / unpacked_size(dtype);
}

int64_t CollectivePlanner::parts_of(DType dtype, int64_t share) const {
  const int64_t most = most_elements(dtype);
  return std::max<int64_t>(1, (share + most - 1) / most);
}

int64_t CollectivePlanner::elements_of_part(DType dtype, int64_t share) const {
  const int64_t parts = parts_of(dtype, share);
  return (share + parts - 1) / parts;
}

Choice CollectivePlanner::choose(DType dtype, int64_t elements) const {
  const auto choose = [&](std::optional<Algorithm> only) {
    return choose_algorithm(host_count(), elements_of_part(dtype, elements), unpacked_size(dtype), links_,
                            options_.costs.summed_bytes_per_second, only, parts_of(dtype, elements),
                            options_.overlaps ? kSecondsAhead : 0, /*may_reorder=*/!options_.in_tree_order);
  };
  if (!options_.in_tree_order) {
    const bool is_fixed = options_.algorithm == Algorithm::native && may_be_native(dtype);
    const Choice best = choose(options_.algorithm == Algorithm::native ? std::nullopt : options_.algorithm);
    const double share = native_share(dtype, elements);
    if (!is_fixed && (options_.algorithm || kNativeMargin * share >= 1)) return best;
    return {Algorithm::native, 0, share * best.seconds};
  }
  const Choice one = choose(Algorithm::recursive_doubling), other = choose(Algorithm::halving_doubling);
  return one.seconds < other.seconds ? one : other;
}

bool CollectivePlanner::may_be_native(DType dtype) const {
  return dtype == DType::f32 && hosts_.size() == members_.size() && has_native_;
}

double CollectivePlanner::native_share(DType dtype, int64_t elements) const {
  if (!may_be_native(dtype) || parts_of(dtype, elements) > 1) return std::numeric_limits<double>::infinity();
  return options_.costs.native.share_of(byte_size(dtype, elements));
}

Choice CollectivePlanner::choose_gather(DType dtype, const GatherMap& map) const {
  return comm::choose_gather(map.begins_in_lane(0, lanes_), unpacked_size(dtype), links_, options_.algorithm);
}

GatherMap CollectivePlanner::gather_of(DType dtype, int64_t elements) const { return {{elements}, members_, dtype}; }

double CollectivePlanner::predicted_in_host(int64_t bytes) const {
  return most_on_host() == 1 ? 0 : static_cast<double>(bytes) / options_.costs.shared_bytes_per_second;
}

double CollectivePlanner::predicted_in_host(const CollectiveSpec& spec, int64_t bytes) const {
  const auto ranks = static_cast<double>(most_on_host());
  // What is only moved is read once and written n-1 times; a sum that one gets is read n times and written once.
  const double share = spec.kind == CollectiveKind::all_reduce ? 1 : has_sums(spec.kind) ? (1 + 1 / ranks) / 2 : 0.5;
  return share * predicted_in_host(bytes);
}

Choice CollectivePlanner::choose(const CollectiveLayout& layout) const {
  const CollectiveSpec& spec = layout.spec();
  const GatherMap* const gather = layout.gather();
  const auto [first, last] = layout.map().share(0, lanes_);
  const int64_t elements = last - first, parts = parts_of(spec.dtype, elements),
                of_part = elements_of_part(spec.dtype, elements);
  const int count = host_count();
  const double sums = options_.costs.summed_bytes_per_second;
  switch (spec.kind) {
    case CollectiveKind::all_gather:
      return choose_gather(spec.dtype, *gather);
    case CollectiveKind::reduce_scatter:
      return choose_reduce_scatter(gather->begins_in_lane(0, lanes_), unpacked_size(spec.dtype), links_, sums,
                                   options_.algorithm);
    case CollectiveKind::broadcast:
      return choose_broadcast(count, root_host(spec), of_part, unpacked_size(spec.dtype), links_, options_.algorithm,
                              parts);
    case CollectiveKind::reduce:
      return choose_reduction(count, root_host(spec), of_part, unpacked_size(spec.dtype), links_, sums,
                              options_.algorithm, parts);
    default:
      return choose(spec.dtype, elements);
  }
}

int CollectivePlanner::root_host(const CollectiveSpec& spec) const {
  return members_[static_cast<size_t>(spec.root)].host_index;
}

Schedule CollectivePlanner::make_schedule_of(const CollectiveLayout& layout, const LanePart& part,
                                             const Choice& choice) const {
  const int count = host_count(), place = place_of(choice.order, host_index());
  const int64_t elements = part.end - part.begin, chunk = std::max<int64_t>(choice.chunk, 1);
  switch (layout.spec().kind) {
    case CollectiveKind::all_gather:
      return make_gather_schedule(choice.algorithm, place, layout.lane_begins(), /*chunk=*/0, choice.order);
    case CollectiveKind::reduce_scatter:
      return make_reduce_scatter_schedule(choice.algorithm, place, layout.lane_begins(), choice.chunk, choice.order);
    case CollectiveKind::broadcast:
      return make_broadcast_schedule(choice.algorithm, place, count, place_of(choice.order, root_host(layout.spec())),
                                     elements, choice.chunk);
    case CollectiveKind::reduce:
      return make_reduction_schedule(choice.algorithm, place, count, place_of(choice.order, root_host(layout.spec())),
                                     elements, choice.chunk);
    default:
      return make_schedule(choice.algorithm, place, count, elements, chunk, links_.groups());
  }
}

LanePlan CollectivePlanner::plan(const CollectiveLayout& layout) const {
  LanePlan plan{.choice = choose(layout), .parts = {}, .schedules = {}};
  if (layout.local_rank() >= lanes_) return plan;
  plan.parts = layout.split_share(most_elements(layout.spec().dtype));
  bool needs_lane = false;
  for (const LanePart& part : plan.parts) {
    plan.schedules.push_back(make_schedule_of(layout, part, plan.choice));
    plan.lane_elements =
        std::max(plan.lane_elements, part.begin - layout.share().first + plan.schedules.back().elements);
    needs_lane = needs_lane || part.tensor < 0;
  }
  if (!needs_lane) plan.lane_elements = 0;
  return plan;
}

int64_t LanePlan::buffer_bytes(DType wire) const {
  int64_t bytes = lane_elements * static_cast<int64_t>(sizeof(float));
  for (const Schedule& schedule : schedules) bytes += scratch_bytes(schedule, wire);
  return bytes;
}

int64_t CollectivePlanner::buffer_bytes(const CollectiveSpec& spec) const {
  if (!has_other_hosts()) return 0;
  const CollectiveLayout layout = layout_of(spec);
  return plan(layout).buffer_bytes(layout.wire());
}

}  // namespace weft::comm
