// Some of the ranks as a group of their own: those along one axis of a mesh, for example. Whatever works with a
// communicator works with a group alike - collectives, exchanges, bounded waits - and errors name ranks by their
// numbers in the run.
#pragma once

#include <vector>

#include "weft/comm/communicator.h"

namespace weft::comm {

/// Those members of a group, in its order: hosts and local ranks are counted among them.
std::vector<Member> members_of_group(const std::vector<Member>& all, const std::vector<int>& ranks);

class Group final : public Communicator {
 public:
  /// `ranks`: those of `all` that belong to the group, this one among them, in the order that they have in it; all of
  /// them construct it with the same. `number`, below kMostGroups (tags.h): two groups of one run that have two ranks
  /// in common have different ones. Keeps a reference to `all`. Error(internal) where the ranks are no such list.
  Group(Communicator& all, std::vector<int> ranks, int number);

  int rank() const override { return rank_; }
  const std::vector<Member>& members() const override { return members_; }
  Ticket send(int peer, int tag, std::span<const std::byte> bytes) override;
  Ticket receive(int peer, int tag, std::span<std::byte> bytes) override;
  int64_t progress() override { return all_.progress(); }
  bool is_done(Ticket ticket) override { return all_.is_done(ticket); }
  using Communicator::share;
  std::shared_ptr<SharedMemory> share(int64_t bytes, const std::vector<int>& ranks) override;
  int shown_rank(int rank) const override { return all_.shown_rank(rank_in_all(rank)); }
  const Communicator& whole_run() const override { return all_.whole_run(); }
  double seconds_silent(int peer) const override { return all_.seconds_silent(rank_in_all(peer)); }
  /// Of all messages of this rank, those of other groups too: the run is over.
  void give_up() override { all_.give_up(); }

 private:
  int rank_in_all(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  int own_tag(int tag) const;

  Communicator& all_;
  const std::vector<int> ranks_;
  const int number_;
  const std::vector<Member> members_;
  int rank_ = -1;
};

}  // namespace weft::comm
