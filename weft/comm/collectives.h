// The collectives of one rank, and its messages to others: chosen by cost and prepared once, started where their
// operands are ready, awaited where their results are read. Between the two the rank computes. Every wait is bounded
// and says who was waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/links/choose.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {

enum class Reduction { sum, mean };
enum class CollectiveKind {
  all_reduce,      // elementwise over all ranks: every rank gets the result
  all_gather,      // every rank has a part and gets all parts, in the order of the ranks
  reduce_scatter,  // elementwise over all ranks: every rank gets its part of the result
  broadcast,       // every rank gets what the root has
  reduce,          // elementwise over all ranks: the root gets the result
};
/// "all_reduce"
std::string_view name_of(CollectiveKind kind);
std::optional<CollectiveKind> parse_collective(std::string_view name);
/// Whether tensors consist of parts, one of each rank.
inline bool has_parts(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}
/// Whether one rank has what the others get, or gets what they have.
inline bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}
inline bool has_sums(CollectiveKind kind) {
  return kind != CollectiveKind::all_gather && kind != CollectiveKind::broadcast;
}

/// Tensors that are reduced, gathered, scattered or sent around together; every rank has as many of the same sizes.
struct CollectiveSpec {
  std::string name;  // for messages and reports: the tensors' names
  DType dtype =
      DType::f32;  // f32, or bf16 or f16, which are summed in f32; any of 2 or 4 bytes where nothing is summed
  Reduction reduction = Reduction::sum;
  std::vector<int64_t> elements;  // per tensor; of one rank's part, where tensors have parts
  CollectiveKind kind = CollectiveKind::all_reduce;
  int root = 0;  // a rank
  friend bool operator==(const CollectiveSpec&, const CollectiveSpec&) = default;
};

/// A collective that has been prepared.
struct CollectiveId {
  int32_t index = -1;
};

/// A message from one rank to another: what one sends the other receives, with as many bytes, under the same tag, those
/// of one tag in the order of their starts.
struct MessageSpec {
  std::string name;  // for messages: the tensor's
  int64_t bytes = 0;
  bool sends = true;  // else it is received
  int peer = 0;       // a rank
  int tag = 0;        // below kMessageTags (tags.h)
  friend bool operator==(const MessageSpec&, const MessageSpec&) = default;
};
struct MessageId {
  int32_t index = -1;
};

struct CollectivesOptions {
  double silence_seconds = 5;  // of a peer, after which it counts as lost
  double wait_seconds = 600;   // of any one wait for peers that live
  int threads = 1;             // for sums in memory that ranks share
  ClusterCosts costs = {};     // by which algorithms are chosen; the same on all ranks
  /// Sums over the ranks, by host and then by local rank, in the order of a balanced binary tree, ((r0 + r1) + (r2 +
  /// r3)) + ..., whatever the hosts: of f32, where hosts have as many ranks each, and both are powers of two.
  bool in_tree_order = false;
  std::optional<Algorithm> algorithm = {};  // between hosts, instead of the cheapest; the same on all ranks
  bool overlaps = false;  // whether many are under way at once: then messages wait behind those of others
};

/// How a collective is done.
struct CollectiveReport {
  int hosts = 1, ranks_on_host = 1;
  int groups = 1;     // of hosts, by their links
  int lanes = 1;      // ranks of each host that carry a share of the elements to the other hosts
  int64_t parts = 1;  // in which a share travels, one after the other
  Choice between;     // of each lane's share; seconds 0 on one host
  double predicted_seconds = 0;
};

/// "4 hosts in 2 groups"
std::string describe_hosts(const CollectiveReport& how);
/// Of a choice: ", in the order 0 2 1 3"; empty where hosts keep theirs.
std::string describe_order(const std::vector<int>& order);

class Collectives {
 public:
  /// Keeps a reference to the communicator, over which small exchanges (exchange.h) may run at any time.
  Collectives(Communicator& communicator, const CollectivesOptions& options);
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  int rank() const;
  int size() const;

  /// Memory for operands that the ranks of this host can read of each other without copies; every rank calls it with
  /// the same number of bytes. Freed with its last owner.
  std::shared_ptr<std::byte> allocate(int64_t bytes);
  /// Takes memory of more ranks of this host as if allocate() had given it (allocate_for_groups()).
  void add_memory(const std::shared_ptr<SharedMemory>& memory, int64_t bytes, const std::vector<int>& numbers);

  /// Chooses an algorithm and allocates what it needs. The same for an equal spec: such collectives run in turn.
  CollectiveId prepare(const CollectiveSpec& spec);
  CollectiveReport report(CollectiveId id) const;
  /// Of its last run: from its start on this rank to when the result was there, whoever noticed.
  double last_seconds(CollectiveId id) const;
  /// Of an all-reduce of so many elements, as it would be chosen.
  double predict_seconds(DType dtype, int64_t elements) const;
  /// Of an all-gather of so many elements of each rank.
  double predict_gather_seconds(DType dtype, int64_t elements) const;
  /// Of memory that it will take on this rank for messages between hosts, once it is prepared. Exchanges nothing.
  int64_t buffer_bytes(const CollectiveSpec& spec) const;
  /// How it is done: "2 ranks in memory, then ring: 4 hosts by 64 kB"
  std::string describe(CollectiveId id) const;
  /// Begins to reduce the tensors in place: `tensors[i]` has spec.elements[i] elements, which nobody else reads or
  /// writes until wait() has returned. Tensors that have parts have room for those of all ranks: what is gathered holds
  /// this rank's at first, what is scattered has this rank's sums there in the end and anything in the others. What is
  /// reduced to the root holds anything elsewhere. All ranks prepare and start the same collectives in the same order.
  /// Also lends a hand to those under way, as wait() does: on a host the ranks' own threads sum, each its share.
  /// `priority`: between hosts what has a lower one goes first; the same on all ranks.
  void start(CollectiveId id, std::span<void* const> tensors, int64_t priority = 0);
  /// Returns when this rank's tensors hold the result. Error(communication) naming rank, host and tensors where a peer
  /// is silent, late beyond the limit, or does another collective.
  void wait(CollectiveId id);

  /// Both at once, without waking a thread where messages are through soon.
  void reduce(CollectiveId id, std::span<void* const> tensors);

  /// Of this rank and its peer alone; the same for an equal spec. Error(communication) where there is no such peer.
  MessageId prepare(const MessageSpec& spec);
  /// Begins to send or receive: the spec's bytes, which nobody else reads or writes until wait() has returned. It is
  /// the thread that moves messages that does it, while the rank computes.
  void start(MessageId id, void* data, int64_t priority = 0);
  /// Returns when all was received, or what was sent may change: bounded as other waits.
  void wait(MessageId id);

  /// In all, in which wait() had nothing to do but to wait for other ranks and for messages: without its sums, and
  /// without what this rank itself stood still meanwhile (wait_meter.h).
  double waited_seconds() const;

  /// For messages: "step 12 of epoch 3".
  void set_position(std::string_view position);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Memory for operands of several groups that these ranks make up, such as those along each axis of a mesh: all of the
/// ranks on a host see it of each other, whichever group they meet in. All of them call it, with as many bytes.
std::shared_ptr<std::byte> allocate_for_groups(Communicator& ranks,
                                               const std::vector<std::shared_ptr<Collectives>>& groups, int64_t bytes);

}  // namespace weft::comm
