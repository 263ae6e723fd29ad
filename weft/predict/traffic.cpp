#include "weft/predict/traffic.h"

#include <algorithm>

#include "weft/graph/collective.h"

namespace weft::predict {

namespace {

/// Of a group of which one side of the link holds so many members, or of so many hosts that hold it together.
double carried(const ExchangedBytes& bytes, int64_t sides, int64_t members) {
  const double share = static_cast<double>(sides - 1) / static_cast<double>(sides);
  return share *
         (2 * static_cast<double>(bytes.reduced) + static_cast<double>(members) * static_cast<double>(bytes.gathered) +
          static_cast<double>(bytes.scattered));
}

/// Sums what the groups of an axis send, by host and by rank.
class Counter {
 public:
  explicit Counter(const Strategy& strategy)
      : strategy_(strategy),
        of_host_(static_cast<size_t>(strategy.hosts()), 0.0),
        of_rank_(static_cast<size_t>(strategy.ranks), 0.0) {}

  void add(std::string_view axis, const ExchangedBytes& bytes) {
    const int64_t tensor = strategy_.tensor, stage = tensor * strategy_.data();
    if (axis == kPipelineAxis) return add_messages(bytes.sent, stage);
    const int64_t stride = axis == kTensorAxis ? 1 : tensor;
    const int64_t size = axis == kTensorAxis ? tensor : strategy_.data();
    if (size <= 1) return;
    for (int64_t rank = 0; rank < strategy_.ranks; ++rank)
      if (rank / stride % size == 0) add_group(rank, stride, size, bytes);
  }

  double most_of_a_host() const { return *std::max_element(of_host_.begin(), of_host_.end()); }
  double most_of_a_rank() const { return *std::max_element(of_rank_.begin(), of_rank_.end()); }

 private:
  int64_t host_of(int64_t rank) const { return rank / strategy_.ranks_per_host; }

  void add_group(int64_t first, int64_t stride, int64_t size, const ExchangedBytes& bytes) {
    std::map<int64_t, int64_t> members;  // by host
    for (int64_t member = 0; member < size; ++member) ++members[host_of(first + member * stride)];
    const auto hosts = static_cast<int64_t>(members.size());
    const double dealt_to_each = static_cast<double>(bytes.dealt) / static_cast<double>(size);
    for (const auto& [host, count] : members)
      of_host_[static_cast<size_t>(host)] +=
          carried(bytes, hosts, size) + dealt_to_each * static_cast<double>(count * (size - count));
    for (int64_t member = 0; member < size; ++member) {
      const int64_t rank = first + member * stride, beside = members.at(host_of(rank));
      of_rank_[static_cast<size_t>(rank)] +=
          carried(bytes, beside, beside) + dealt_to_each * static_cast<double>(beside - 1);
    }
  }

  /// A rank sends forward and backward. Of those of a host the last `stage` ranks send to the next host, and the first
  /// to the one before.
  void add_messages(int64_t sent, int64_t stage) {
    if (strategy_.pipeline <= 1) return;
    const auto bytes = static_cast<double>(sent);
    const int64_t leaving = std::min(stage, strategy_.ranks_per_host);
    for (double& of_host : of_host_) of_host += strategy_.hosts() > 1 ? static_cast<double>(leaving) * bytes : 0;
    if (stage >= strategy_.ranks_per_host) return;
    for (double& of_rank : of_rank_) of_rank += bytes;
  }

  const Strategy& strategy_;
  std::vector<double> of_host_, of_rank_;
};

}  // namespace

std::vector<LinkTraffic> traffic_of(const ExchangedByAxis& exchanged, const Strategy& strategy) {
  if (strategy.ranks <= 1) return {};
  Counter counter(strategy);
  for (const auto& [axis, bytes] : exchanged) counter.add(axis, bytes);
  std::vector<LinkTraffic> traffic;
  if (strategy.hosts() > 1) traffic.push_back({"between hosts, of each host", counter.most_of_a_host(), 0});
  if (strategy.ranks_per_host > 1) traffic.push_back({"within a host, of each rank", counter.most_of_a_rank(), 0});
  return traffic;
}

}  // namespace weft::predict
