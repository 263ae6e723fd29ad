// One rank's view of the group of ranks that train together: who they are, messages between any two, memory that those
// of one host share, and whether each still lives. What is built on it - collectives, their choice, their waits - knows
// neither MPI nor threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::comm {

struct Member {
  std::string host;
  int host_index = 0;  // hosts are numbered by their first rank
  int local_rank = 0;  // among the ranks of the host
  int64_t process = 0;
};

/// Memory of the ranks of one host, each of which has a part that the others see too.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual int64_t bytes() const = 0;
  /// The part of the rank of this host with that local rank; aligned to kAlignment, zero at first.
  virtual std::byte* part(int local_rank) const = 0;
};

/// A message under way.
struct Ticket {
  int64_t id = -1;
};

/// May be called by several threads at once, as collectives on a thread of their own run beside small exchanges; what
/// keeps their messages apart is the tag.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  /// Per rank; their number is the size of the group.
  virtual const std::vector<Member>& members() const = 0;
  int size() const { return static_cast<int>(members().size()); }

  /// Begins to send; the bytes must stay as they are until the ticket is done. What one rank sends another under one
  /// tag (0 to kTags - 1, tags.h) arrives in the order in which it was sent. Neither blocks nor, after the first
  /// messages, allocates.
  virtual Ticket send(int peer, int tag, std::span<const std::byte> bytes) = 0;
  /// Begins to receive a message of exactly so many bytes.
  virtual Ticket receive(int peer, int tag, std::span<std::byte> bytes) = 0;
  /// Lets messages move; they do within calls of this class only. Returns how many of this rank's have got through so
  /// far, whoever found them: while that is the same as before, is_done() is for none more than before.
  virtual int64_t progress() = 0;
  /// Whether progress() has found the message to be through. The ticket is void after it was true.
  virtual bool is_done(Ticket ticket) = 0;
  /// The same, after progress().
  bool test(Ticket ticket) {
    progress();
    return is_done(ticket);
  }

  /// Memory that the ranks of this host see of each other. Every rank of the host calls it with the same number of
  /// bytes, in the same order. Error(io) where the system has none left, Error(communication) where a rank does not
  /// come.
  std::shared_ptr<SharedMemory> share(int64_t bytes) { return share(bytes, ranks_of_own_host()); }
  /// The same among some of them, this one included, in rising order: all of these call it with the same `ranks`. The
  /// part of each is that of its place among them.
  virtual std::shared_ptr<SharedMemory> share(int64_t bytes, const std::vector<int>& ranks) = 0;
  /// In rising order, this one among them.
  std::vector<int> ranks_of_own_host() const;

  /// The rank's number in messages for users: of a group that among all ranks of the run.
  virtual int shown_rank(int rank) const { return rank; }

  /// All ranks of the run: this itself, but for a group. Who waits in a group watches them all, since a lost rank of
  /// another group may be what its own group waits for.
  virtual const Communicator& whole_run() const { return *this; }

  /// Seconds since the rank gave a sign of life, which it does several times per second by itself, whatever it
  /// computes or writes; grows without end where it is dead or stopped or the link to it is cut.
  virtual double seconds_silent(int peer) const = 0;

  /// After a wait that failed: no message of this rank moves any more, so that buffers may go, and it falls silent.
  /// Whatever is called afterwards throws Error(communication).
  virtual void give_up() = 0;
};

}  // namespace weft::comm
