#include "weft/comm/host_group.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::comm {

HostGroup::HostGroup(Communicator& communicator) : communicator_(communicator) {
  const auto& members = communicator.members();
  const Member& me = members[static_cast<size_t>(communicator.rank())];
  self_ = me.local_rank;
  for (int rank = 0; rank < communicator.size(); ++rank)
    if (members[static_cast<size_t>(rank)].host_index == me.host_index) ranks_.push_back(rank);
  boards_ = communicator.share(sizeof(Board));
}

void HostGroup::add_memory(const std::shared_ptr<SharedMemory>& memory, int64_t bytes,
                           const std::vector<int>& numbers) {
  Region region{.memory = memory, .bytes = bytes};
  for (const int rank : ranks_) {
    const auto found = std::find(numbers.begin(), numbers.end(), communicator_.shown_rank(rank));
    check(found != numbers.end(), "memory that a rank of the group does not share");
    region.parts.push_back(static_cast<int>(found - numbers.begin()));
  }
  region.begin = memory->part(region.parts[static_cast<size_t>(self_)]);
  regions_.push_back(std::move(region));
}

Location HostGroup::locate(const void* data, int64_t bytes) const {
  const auto* const at = static_cast<const std::byte*>(data);
  for (size_t region = regions_.size(); region-- > 0;) {
    const Region& candidate = regions_[region];
    // A region that was given back may lie where new memory is now.
    if (at < candidate.begin || at + bytes > candidate.begin + candidate.bytes || candidate.memory.expired()) continue;
    return {static_cast<int64_t>(region), at - candidate.begin};
  }
  return {};
}

std::byte* HostGroup::resolve(int local, const Location& location) const {
  const Region& region = regions_[static_cast<size_t>(location.region)];
  const std::shared_ptr<SharedMemory> memory = region.memory.lock();
  return memory == nullptr ? nullptr : memory->part(region.parts[static_cast<size_t>(local)]) + location.offset;
}

void HostGroup::ring_all() {
  for (int local = 0; local < size(); ++local) board(local).doorbell.ring();
}

uint64_t HostGroup::note_start(int32_t index) {
  Board& mine = board(self_);
  const uint64_t number = mine.starts.load(std::memory_order_relaxed);
  mine.order[number % kRemembered].store(index, std::memory_order_relaxed);
  mine.starts.store(number + 1, std::memory_order_release);
  return number;
}

int32_t HostGroup::started(int local, uint64_t number) const {
  const Board& other = board(local);
  const uint64_t starts = other.starts.load(std::memory_order_acquire);
  // Half of what is remembered, as the peer may be writing on.
  if (number >= starts || starts - number > kRemembered / 2) return -1;
  return other.order[number % kRemembered].load(std::memory_order_relaxed);
}

}  // namespace weft::comm
