// One prepared collective on one rank: where everybody's operands lie, and what of the run under way is done. Used by
// collectives.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/comm/collective_layout.h"
#include "weft/comm/host_group.h"
#include "weft/comm/message_thread.h"

namespace weft::comm {

/// A run on a host: all announce where their operands are; each lane sums its share over the host; with other hosts the
/// lane's share then travels; the results are written to all ranks of the host; the lane has finished.
class Collective {
 public:
  /// Called by all ranks of the host, whose layouts have the same spec.
  Collective(HostGroup& host, Communicator& communicator, CollectiveLayout layout, int32_t index);

  const CollectiveSpec& spec() const { return layout_.spec(); }
  const CollectiveLayout& layout() const { return layout_; }
  struct Part : LanePart {
    std::unique_ptr<MessageThread::Job> job = {};
  };
  /// Before the first run. Allocates what they need, of all their buffers together `lane_elements`, 0 where all are
  /// summed in place.
  void set_parts(std::vector<Part> parts, int64_t lane_elements);
  std::vector<Part>& parts() { return parts_; }
  /// What the job of a part does in the end.
  void deliver(const Part& part);

  void announce(std::span<void* const> tensors);
  /// From the announcement of the last run to when the result was there, or noticed where peers write it.
  double last_seconds() const { return static_cast<double>(nanoseconds_.load()) * 1e-9; }
  bool is_under_way() const { return is_under_way_; }
  uint64_t start_number() const { return start_number_; }
  /// Whether this rank's part of the sum is still to be done.
  bool has_work() const { return has_work_; }
  /// Sums this rank's share if all have announced; returns whether it did. Error(communication) where a peer announced
  /// another collective under the same number.
  bool work(int threads, MessageThread* messages);
  /// Whether this rank's tensors hold the result; if so the run is over.
  bool collect();
  /// Of this host, someone who has not come yet: his rank; -1 where it is another host that is waited for.
  int awaited_rank() const;

 private:
  /// Of one rank, in memory that all see; followed by its Locations and its copies of operands that lie elsewhere.
  struct alignas(64) Record {
    std::atomic<uint32_t> announced, finished;  // the run
    std::atomic<uint32_t> arrivals;             // of local rank 0: of all ranks, in all runs
    uint64_t spec_hash;
  };

  Record& record(int local) const { return *reinterpret_cast<Record*>(memory_->part(local)); }
  Location* locations(int local) const { return reinterpret_cast<Location*>(memory_->part(local) + sizeof(Record)); }
  std::byte* staging(int local, size_t tensor) const {
    return memory_->part(local) + staging_offset_ + byte_size(spec().dtype, layout_.map().begin_of(tensor));
  }
  // collective_moves.cpp: what each kind of collective moves.
  void copy_in();
  void copy_out();
  void copy_staged(int64_t begin, int64_t end, bool in);
  void copy_staged_parts(bool in);
  void move_in_host(int64_t begin, int64_t end);
  void fill_lane(const Part& part);
  void empty_lane(const Part& part);
  bool is_root() const { return communicator_.rank() == spec().root; }
  bool has_root_here() const { return layout_.root_local() >= 0; }
  /// Of the ranks of this host those whose operands become the result of the tensor; all of them are in `operands_`.
  std::span<void* const> targets(size_t tensor) const;
  std::span<const void* const> sources(size_t tensor) const;

  void resolve();
  float* lane(const Part& part) const {
    return reinterpret_cast<float*>(lane_buffer_.get()) + (part.begin - layout_.share().first);
  }
  void finish_lane(int local);
  void note_time() { nanoseconds_ = (std::chrono::steady_clock::now() - announced_at_).count(); }
  bool is_alone() const { return layout_.is_alone(); }

  HostGroup& host_;
  const Communicator& communicator_;
  const CollectiveLayout layout_;
  const int32_t index_;
  const float factor_;
  const bool last_one_sums_;  // so little that whoever comes last does it all
  const bool writes_staged_;  // this rank too, where its operands are staged
  int64_t staging_offset_ = 0;
  std::shared_ptr<SharedMemory> memory_;

  std::vector<Part> parts_;
  std::shared_ptr<std::byte>
      lane_buffer_;  // of f32, as many as the share; null where all parts are summed in their places

  std::chrono::steady_clock::time_point announced_at_;
  std::atomic<int64_t> nanoseconds_ = 0;
  uint32_t run_ = 0;
  std::atomic<uint32_t> lane_finished_ = 0;  // the run, where this rank is alone on its host
  size_t delivered_ = 0;                     // parts of the run
  uint64_t start_number_ = 0;
  bool is_under_way_ = false, has_work_ = false;
  std::vector<void*> tensors_;
  std::vector<char> is_staged_;
  std::vector<void*> operands_;       // tensor by tensor, of all ranks of the host
  std::vector<const void*> sources_;  // the same, as sums take them
};

}  // namespace weft::comm
