// Signs of life between hosts, as small messages of MPI. Few ranks tell each other directly, so that each pair notices
// when its own link is cut. Many would drown in n x n messages: they tell log2(n) others what they have heard
// (gossip.h).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weft/comm/gossip.h"

namespace weft::comm {

class RemoteSigns {
 public:
  /// Of more ranks on other hosts signs travel as gossip.
  static constexpr size_t kMostDirectPeers = 63;

  struct Peers {
    int rank = 0, ranks = 1;
    std::vector<int> on_host, remote;                // of the other hosts; and of this one, this rank among them
    std::function<uint64_t(size_t place)> turns_of;  // of the rank at that place of on_host, in shared memory
  };

  /// `world` outlives this. All calls need the mutex of MPI.
  RemoteSigns(MPI_Comm world, Peers peers);

  /// Receives the first. Returns MPI's code.
  int begin();
  /// Sends what is to be sent and sets heard[peer] for each rank of another host that has lived since.
  void exchange(std::vector<char>& heard);
  /// Before MPI ends: nothing is under way afterwards that anybody waits for.
  void cancel();

 private:
  struct Line {
    int peer = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<uint32_t> counts;
  };

  int receive(Line& line) const;
  void hear_own_host();

  const MPI_Comm world_;
  const Peers peers_;
  std::optional<Gossip> gossip_;
  std::vector<Line> in_, out_;
};

}  // namespace weft::comm
