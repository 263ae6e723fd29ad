#include "weft/comm/collective_layout.h"

#include <algorithm>

#include "weft/base/parallel.h"

namespace weft::comm {

namespace {

std::vector<int64_t> whole_elements(const CollectiveSpec& spec, size_t ranks) {
  std::vector<int64_t> elements = spec.elements;
  if (has_parts(spec.kind))
    for (int64_t& count : elements) count *= static_cast<int64_t>(ranks);
  return elements;
}

std::pair<int64_t, int64_t> share_of(int local, int lanes, int host, const ElementMap& map, const GatherMap* gather) {
  if (local >= lanes) return {0, 0};
  return gather != nullptr ? gather->share(host, local, lanes) : map.share(local, lanes);
}

}  // namespace

CollectiveLayout::CollectiveLayout(CollectiveSpec spec, const std::vector<Member>& members, int rank, int lanes)
    : spec_(std::move(spec)),
      elements_(whole_elements(spec_, members.size())),
      map_(elements_),
      gather_(has_parts(spec_.kind) ? std::make_shared<GatherMap>(spec_.elements, members, spec_.dtype) : nullptr),
      ranks_(static_cast<int>(members.size())),
      lanes_(lanes),
      host_index_(members[static_cast<size_t>(rank)].host_index),
      local_rank_(members[static_cast<size_t>(rank)].local_rank),
      lane_begins_(gather_ != nullptr && local_rank_ < lanes ? gather_->begins_in_lane(local_rank_, lanes)
                                                             : std::vector<int64_t>{}),
      share_(share_of(local_rank_, lanes, host_index_, map_, gather_.get())) {
  for (const Member& member : members) ranks_here_ += member.host_index == host_index_ ? 1 : 0;
  if (!has_root(spec_.kind)) return;
  const Member& root = members[static_cast<size_t>(spec_.root)];
  if (root.host_index == host_index_) root_local_ = root.local_rank;
}

bool CollectiveLayout::can_stay_in_place() const {
  return is_alone() &&
         (spec_.dtype == DType::f32 || (!has_sums(spec_.kind) && unpacked_size(spec_.dtype) == sizeof(float)));
}

std::vector<LanePart> CollectiveLayout::split_share(int64_t most_elements) const {
  std::vector<LanePart> parts = parts_of(most_elements);
  if (!can_stay_in_place())
    for (LanePart& part : parts) part.tensor = -1;
  return parts;
}

std::vector<LanePart> CollectiveLayout::parts_of(int64_t most_elements) const {
  std::vector<LanePart> parts;
  if (gather_ != nullptr) {
    // Where each rank is a host of its own, the lane's buffer would be what the one tensor is.
    const bool is_tensor =
        gather_->hosts() == ranks_ && spec_.elements.size() == 1 && spec_.elements[0] % ElementMap::kUnit == 0;
    parts.push_back({.begin = share_.first, .end = share_.second, .tensor = is_tensor ? 0 : -1});
    return parts;
  }
  LanePart small{.begin = share_.first, .end = share_.first};  // of what comes before the tensor
  const auto close = [&](int64_t at) {
    small.end = at;
    if (small.begin < small.end) parts.push_back({.begin = small.begin, .end = small.end});
  };
  map_.for_each_piece(share_.first, share_.second, [&](size_t tensor, int64_t first, int64_t last, int64_t at) {
    if (last - first < most_elements) {
      if (at + (last - first) - small.begin > most_elements) {
        close(at);
        small.begin = at;
      }
      return;
    }
    close(at);
    const int64_t units = (last - first + ElementMap::kUnit - 1) / ElementMap::kUnit;
    const int64_t count = (last - first + most_elements - 1) / most_elements;
    for (int64_t part = 0; part < count; ++part) {
      const auto [begin, end] = split_range(units, static_cast<int>(part), static_cast<int>(count));
      const int64_t from = begin * ElementMap::kUnit, to = std::min(end * ElementMap::kUnit, last - first);
      parts.push_back(
          {.begin = at + from, .end = at + to, .tensor = static_cast<int32_t>(tensor), .first = first + from});
    }
    small.begin = at + (last - first);
  });
  close(share_.second);
  return parts;
}

DType CollectiveLayout::wire() const {
  if (has_sums(spec_.kind)) return spec_.dtype;
  return unpacked_size(spec_.dtype) == 4 ? DType::f32 : DType::bf16;
}

}  // namespace weft::comm
