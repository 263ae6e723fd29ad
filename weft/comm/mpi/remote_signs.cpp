#include "weft/comm/mpi/remote_signs.h"

#include <algorithm>
#include <utility>

#include "weft/comm/tags.h"

namespace weft::comm {

RemoteSigns::RemoteSigns(MPI_Comm world, Peers peers) : world_(world), peers_(std::move(peers)) {
  std::vector<int> tellers = peers_.remote, listeners = peers_.remote;
  size_t numbers = 1;
  if (peers_.remote.size() > kMostDirectPeers) {
    gossip_.emplace(peers_.ranks);
    tellers = Gossip::tellers_of(peers_.rank, peers_.ranks);
    listeners = Gossip::listeners_of(peers_.rank, peers_.ranks);
    numbers = static_cast<size_t>(peers_.ranks);
  }
  for (const int peer : tellers) in_.push_back({.peer = peer, .counts = std::vector<uint32_t>(numbers)});
  for (const int peer : listeners) out_.push_back({.peer = peer, .counts = std::vector<uint32_t>(numbers)});
}

int RemoteSigns::receive(Line& line) const {
  return MPI_Irecv(line.counts.data(), static_cast<int>(line.counts.size()), MPI_UINT32_T, line.peer, kSignOfLifeTag,
                   world_, &line.request);
}

int RemoteSigns::begin() {
  for (Line& line : in_)
    if (const int code = receive(line); code != MPI_SUCCESS) return code;
  return MPI_SUCCESS;
}

/// Those of this host show their counts in shared memory.
void RemoteSigns::hear_own_host() {
  for (size_t place = 0; place < peers_.on_host.size(); ++place)
    gossip_->hear(peers_.on_host[place], static_cast<uint32_t>(peers_.turns_of(place)));
}

void RemoteSigns::exchange(std::vector<char>& heard) {
  if (gossip_) hear_own_host();
  int done = 0;
  for (Line& line : in_)
    // Several may have come while this rank slept.
    while (MPI_Test(&line.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0) {
      if (gossip_)
        gossip_->hear(line.counts);
      else
        heard[static_cast<size_t>(line.peer)] = 1;
      if (receive(line) != MPI_SUCCESS) break;
    }
  if (gossip_)
    for (const int peer : peers_.remote)
      if (gossip_->has_news_of(peer)) heard[static_cast<size_t>(peer)] = 1;
  for (Line& line : out_) {
    // No second one before the first has gone: they would pile up before a rank that is stopped.
    if (MPI_Test(&line.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done == 0) continue;
    if (gossip_) std::copy(gossip_->counts().begin(), gossip_->counts().end(), line.counts.begin());
    MPI_Isend(line.counts.data(), static_cast<int>(line.counts.size()), MPI_UINT32_T, line.peer, kSignOfLifeTag, world_,
              &line.request);
  }
}

void RemoteSigns::cancel() {
  for (Line& line : in_) {
    if (line.request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&line.request);
    MPI_Request_free(&line.request);
  }
  for (Line& line : out_)
    if (line.request != MPI_REQUEST_NULL) MPI_Request_free(&line.request);
}

}  // namespace weft::comm
