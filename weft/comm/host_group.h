// The ranks of one host as one of them sees it: who they are, their doorbells, the order in which they start
// collectives, and the memory in which operands lie where peers can read and write them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/doorbell.h"

namespace weft::comm {

/// Where an operand lies, so that a peer finds it in its own view.
struct Location {
  int64_t region = -1;  // number of the call of add_memory(); -1: in none
  int64_t offset = 0;
  friend bool operator==(const Location&, const Location&) = default;
};

class HostGroup {
 public:
  explicit HostGroup(Communicator& communicator);

  int size() const { return static_cast<int>(ranks_.size()); }
  int self() const { return self_; }  // local rank
  int rank_of(int local) const { return ranks_[static_cast<size_t>(local)]; }

  /// Memory of ranks of the host in which operands may lie from now on. `numbers`: which rank of the whole run each
  /// part is of; the ranks of the group are among them. All of these call it, in the same order.
  void add_memory(const std::shared_ptr<SharedMemory>& memory, int64_t bytes, const std::vector<int>& numbers);
  /// Of `bytes` bytes from `data` on.
  Location locate(const void* data, int64_t bytes) const;
  /// The same place of a peer; null where this rank has given the region back.
  std::byte* resolve(int local, const Location& location) const;

  /// Something has changed that all may be waiting for.
  void ring_all();
  Doorbell& own_doorbell() { return board(self_).doorbell; }

  /// Publishes that this rank starts the collective as its next one; returns how many it started before.
  uint64_t note_start(int32_t index);
  /// The collective that the peer started as number `number`; -1 where it has not come so far, or long ago.
  int32_t started(int local, uint64_t number) const;

 private:
  static constexpr uint64_t kRemembered = 256;
  /// Zeroed; written by its rank alone, but for the doorbell.
  struct Board {
    Doorbell doorbell;
    alignas(64) std::atomic<uint64_t> starts;
    std::atomic<int32_t> order[kRemembered];
  };
  struct Region {
    std::weak_ptr<SharedMemory> memory;
    const std::byte* begin = nullptr;
    int64_t bytes = 0;
    std::vector<int> parts = {};  // of the memory, by local rank
  };

  Board& board(int local) const { return *reinterpret_cast<Board*>(boards_->part(local)); }

  Communicator& communicator_;
  std::vector<int> ranks_;
  int self_ = 0;
  std::shared_ptr<SharedMemory> boards_;
  std::vector<Region> regions_;
};

}  // namespace weft::comm
