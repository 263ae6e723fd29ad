#include "weft/comm/group.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/comm/tags.h"

namespace weft::comm {

std::vector<int> Communicator::ranks_of_own_host() const {
  const int host = members()[static_cast<size_t>(rank())].host_index;
  std::vector<int> ranks;
  for (int other = 0; other < size(); ++other)
    if (members()[static_cast<size_t>(other)].host_index == host) ranks.push_back(other);
  return ranks;
}

std::vector<Member> members_of_group(const std::vector<Member>& all, const std::vector<int>& ranks) {
  std::vector<Member> members;
  std::vector<int> hosts;  // of all, by the number here
  for (const int in_all : ranks) {
    check(in_all >= 0 && in_all < static_cast<int>(all.size()) && std::count(ranks.begin(), ranks.end(), in_all) == 1,
          "the ranks of a group");
    Member member = all[static_cast<size_t>(in_all)];
    const auto host = std::find(hosts.begin(), hosts.end(), member.host_index) - hosts.begin();
    if (host == static_cast<std::ptrdiff_t>(hosts.size())) hosts.push_back(member.host_index);
    member.host_index = static_cast<int>(host);
    member.local_rank = static_cast<int>(std::count_if(
        members.begin(), members.end(), [&](const Member& before) { return before.host_index == member.host_index; }));
    members.push_back(std::move(member));
  }
  return members;
}

Group::Group(Communicator& all, std::vector<int> ranks, int number)
    : all_(all), ranks_(std::move(ranks)), number_(number), members_(members_of_group(all.members(), ranks_)) {
  check(number >= 0 && number < kMostGroups, "the number of a group");
  const auto own = std::find(ranks_.begin(), ranks_.end(), all.rank());
  check(own != ranks_.end(), "a group without this rank");
  rank_ = static_cast<int>(own - ranks_.begin());
}

int Group::own_tag(int tag) const {
  const bool is_message = tag >= kFirstMessageTag;
  const int place = is_message ? kGroupTags - kGroupMessageTags + (tag - kFirstMessageTag) : tag;
  check(is_message ? place < kGroupTags : place < kGroupTags - kGroupMessageTags,
        "more messages in a group than it has tags");
  return kFirstGroupTag + number_ * kGroupTags + place;
}

Ticket Group::send(int peer, int tag, std::span<const std::byte> bytes) {
  return all_.send(rank_in_all(peer), own_tag(tag), bytes);
}

Ticket Group::receive(int peer, int tag, std::span<std::byte> bytes) {
  return all_.receive(rank_in_all(peer), own_tag(tag), bytes);
}

std::shared_ptr<SharedMemory> Group::share(int64_t bytes, const std::vector<int>& ranks) {
  std::vector<int> in_all;
  for (const int rank : ranks) in_all.push_back(rank_in_all(rank));
  return all_.share(bytes, in_all);
}

}  // namespace weft::comm
