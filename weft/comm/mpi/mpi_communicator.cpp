#include "weft/comm/mpi/mpi_communicator.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "weft/base/error.h"
#include "weft/comm/mpi/memory_file.h"
#include "weft/comm/mpi/remote_signs.h"
#include "weft/comm/mpi/signs_of_life.h"
#include "weft/comm/patience.h"
#include "weft/comm/tags.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {

namespace {

/// Larger messages of collectives count as sent once they are received. Open MPI copies what it sends without asking
/// (session.cpp) and calls it sent, however much of it waits for a slow link. Then signs of life would wait behind all
/// of that. Messages from rank to rank do not wait: a stage of a pipeline goes on before the next one receives.
constexpr int64_t kMostEagerBytes = 8 << 10;

void require(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  fail(ErrorKind::communication,
       "MPI cannot {}: {}; see what mpirun and the other ranks say, then start again from the last checkpoint with "
       "--resume",
       what, text.data());
}

/// What the ranks of a host see of each other before anything else.
struct HostBoard {
  SignsOfLife::Counter signs_of_life;
  std::atomic<uint32_t> is_reported;  // of the host's first rank
};

class Parts final : public SharedMemory {
 public:
  Parts(int64_t bytes, std::vector<std::shared_ptr<std::byte>> parts) : bytes_(bytes), parts_(std::move(parts)) {}
  int64_t bytes() const override { return bytes_; }
  std::byte* part(int local_rank) const override { return parts_[static_cast<size_t>(local_rank)].get(); }

 private:
  int64_t bytes_;
  std::vector<std::shared_ptr<std::byte>> parts_;
};

/// Of a message that is received.
struct Expected {
  int peer = -1;  // -1: nothing is
  int bytes = 0, received = 0;
};

/// How a rank describes itself to all others.
struct Card {
  std::array<char, 128> host{};
  int32_t first_of_host = 0;  // the lowest rank of its host
  int64_t process = 0;
};

int ranks_per_host() {
  const char* text = std::getenv("WEFT_RANKS_PER_HOST");
  return text == nullptr ? 0 : std::max(0, std::atoi(text));
}

}  // namespace

/// A row of flags that stay where they are while it grows.
class Flags {
 public:
  void grow(size_t size) {
    check(size <= kPieces * kPiece, "too many messages at once");
    if (std::unique_ptr<Piece>& piece = pieces_[(size - 1) / kPiece]; piece == nullptr)
      piece = std::make_unique<Piece>();
  }
  std::atomic<bool>& at(size_t index) { return (*pieces_[index / kPiece])[index % kPiece]; }

 private:
  static constexpr size_t kPiece = 1024, kPieces = 4096;
  using Piece = std::array<std::atomic<bool>, kPiece>;
  std::array<std::unique_ptr<Piece>, kPieces> pieces_;
};

struct MpiCommunicator::Impl {
  MPI_Comm world = MPI_COMM_NULL;  // a duplicate, so that nobody else's messages meet ours
  MPI_Comm sums = MPI_COMM_NULL;   // another one, of MPI's own all-reduces, which must come in one order
  int rank = 0;
  std::vector<Member> members;
  std::vector<int> peers_on_host;                  // all ranks of this host by local rank, this one among them
  std::vector<std::shared_ptr<std::byte>> boards;  // of those ranks

  std::mutex mutex;                    // of all calls to MPI, and of what follows
  std::vector<MPI_Request> under_way;  // no others among them: MPI looks at each, every time it is asked
  std::vector<int> tickets_under_way;  // of these
  std::vector<Expected> expected;      // per ticket
  std::vector<int> unused_tickets, places_found;
  std::vector<MPI_Status> statuses_found;
  Flags is_through;     // per ticket; read without the mutex
  int64_t through = 0;  // messages so far

  std::vector<int> remote_peers;
  std::optional<RemoteSigns> remote_signs;
  std::unique_ptr<SignsOfLife> signs_of_life;
  bool is_open = true;
  std::atomic<bool> is_given_up = false;

  HostBoard& board(size_t local_rank) { return *reinterpret_cast<HostBoard*>(boards[local_rank].get()); }

  /// Groups the ranks into hosts whose ranks can share memory; sets `boards` where there is such a host.
  Card introduce();
  void set_members(const Card& mine);
  void exchange_signs(std::vector<char>& heard);

  void require_not_given_up() const {
    if (is_given_up) fail(ErrorKind::communication, "this rank has given up its messages after a wait that failed");
  }

  /// Begins a message by begin(MPI_Request*), a call to MPI.
  template <typename Begin>
  Ticket add(const Expected& message, const char* what, Begin&& begin) {
    require_not_given_up();
    // Nothing can fail between the message's beginning and its ticket: its memory would go while it is under way.
    if (unused_tickets.empty()) {
      is_through.grow(expected.size() + 1);
      expected.emplace_back();
      places_found.emplace_back();
      statuses_found.emplace_back();
      unused_tickets.push_back(static_cast<int>(expected.size()) - 1);
      under_way.reserve(expected.capacity());
      tickets_under_way.reserve(expected.capacity());
    }
    MPI_Request request = MPI_REQUEST_NULL;
    require(begin(&request), what);
    const int ticket = unused_tickets.back();
    unused_tickets.pop_back();
    is_through.at(static_cast<size_t>(ticket)) = false;
    expected[static_cast<size_t>(ticket)] = message;
    under_way.push_back(request);
    tickets_under_way.push_back(ticket);
    return {ticket};
  }

  void remove(size_t place) {
    under_way[place] = under_way.back();
    under_way.pop_back();
    tickets_under_way[place] = tickets_under_way.back();
    tickets_under_way.pop_back();
  }
};

Card MpiCommunicator::Impl::introduce() {
  Card card;
  card.process = getpid();
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  require(MPI_Get_processor_name(name.data(), &length), "tell the name of this host");
  std::string host(name.data());
  MPI_Comm neighbours = MPI_COMM_NULL;
  require(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &neighbours), "tell hosts apart");
  if (const int each = ranks_per_host(); each > 0) {
    MPI_Comm pretended = MPI_COMM_NULL;
    require(MPI_Comm_split(neighbours, rank / each, rank, &pretended), "split ranks into hosts");
    MPI_Comm_free(&neighbours);
    neighbours = pretended;
    host += fmt::format("#{}", rank / each);
  }
  host.copy(card.host.data(), card.host.size() - 1);
  require(MPI_Allreduce(&rank, &card.first_of_host, 1, MPI_INT32_T, MPI_MIN, neighbours), "number hosts");

  int count = 0;
  MPI_Comm_size(neighbours, &count);
  MemoryFile own(sizeof(HostBoard));
  std::vector<MemoryFileAddress> addresses(static_cast<size_t>(count));
  const MemoryFileAddress mine = own.address();
  require(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, addresses.data(), sizeof mine, MPI_BYTE, neighbours),
          "gather addresses on this host");
  int can_share = 1;
  try {
    for (const MemoryFileAddress& address : addresses)
      boards.push_back(address.process == mine.process ? own.map() : map_memory_file(address));
  } catch (const Error&) {
    can_share = 0;
  }
  int all_can = 0;  // it is also the moment after which all have opened all
  require(MPI_Allreduce(&can_share, &all_can, 1, MPI_INT, MPI_MIN, neighbours), "agree on shared memory");
  MPI_Comm_free(&neighbours);
  if (all_can == 0) {
    card.first_of_host = rank;
    boards = {own.map()};
  }
  return card;
}

void MpiCommunicator::Impl::set_members(const Card& mine) {
  int size = 0;
  MPI_Comm_size(world, &size);
  std::vector<Card> cards(static_cast<size_t>(size));
  require(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, cards.data(), sizeof mine, MPI_BYTE, world), "gather hosts");
  std::vector<int> firsts;
  for (int other = 0; other < size; ++other) {
    const Card& card = cards[static_cast<size_t>(other)];
    Member member{.host = card.host.data(), .host_index = 0, .local_rank = 0, .process = card.process};
    const auto found = std::find(firsts.begin(), firsts.end(), card.first_of_host);
    member.host_index = static_cast<int>(found - firsts.begin());
    if (found == firsts.end()) firsts.push_back(card.first_of_host);
    for (const Member& before : members) member.local_rank += before.host_index == member.host_index ? 1 : 0;
    members.push_back(member);
    (card.first_of_host == mine.first_of_host ? peers_on_host : remote_peers).push_back(other);
  }
}

void MpiCommunicator::Impl::exchange_signs(std::vector<char>& heard) {
  const std::lock_guard lock(mutex);
  if (!is_open || is_given_up) return;
  remote_signs->exchange(heard);
}

MpiCommunicator::MpiCommunicator() : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  require(MPI_Comm_dup(MPI_COMM_WORLD, &impl.world), "duplicate its communicator");
  MPI_Comm_set_errhandler(impl.world, MPI_ERRORS_RETURN);
  require(MPI_Comm_dup(impl.world, &impl.sums), "duplicate its communicator");
  MPI_Comm_set_errhandler(impl.sums, MPI_ERRORS_RETURN);
  MPI_Comm_rank(impl.world, &impl.rank);
  impl.set_members(impl.introduce());
  std::vector<SignsOfLife::Counter*> counters(impl.members.size(), nullptr);
  for (size_t i = 0; i < impl.peers_on_host.size(); ++i)
    counters[static_cast<size_t>(impl.peers_on_host[i])] = &impl.board(i).signs_of_life;
  impl.remote_signs.emplace(impl.world,
                            RemoteSigns::Peers{.rank = impl.rank,
                                               .ranks = static_cast<int>(impl.members.size()),
                                               .on_host = impl.peers_on_host,
                                               .remote = impl.remote_peers,
                                               .turns_of = [&impl](size_t place) -> uint64_t {
                                                 return impl.board(place).signs_of_life.load(std::memory_order_relaxed);
                                               }});
  require(impl.remote_signs->begin(), "receive");
  impl.signs_of_life = std::make_unique<SignsOfLife>(impl.rank, std::move(counters),
                                                     [&impl](std::vector<char>& heard) { impl.exchange_signs(heard); });
}

MpiCommunicator::~MpiCommunicator() { close(); }

void MpiCommunicator::close() {
  if (!impl_->is_open) return;
  impl_->signs_of_life->stop();
  const std::lock_guard lock(impl_->mutex);
  impl_->is_open = false;
  if (impl_->is_given_up) return;
  impl_->remote_signs->cancel();
}

int MpiCommunicator::rank() const { return impl_->rank; }
const std::vector<Member>& MpiCommunicator::members() const { return impl_->members; }

Ticket MpiCommunicator::send(int peer, int tag, std::span<const std::byte> bytes) {
  weft::check(bytes.size() <= INT_MAX, "a message of more than 2 GB");
  const std::lock_guard lock(impl_->mutex);
  const bool is_between_ranks = tag >= kFirstMessageTag, is_small = std::ssize(bytes) <= kMostEagerBytes;
  const auto send = is_between_ranks || is_small ? &MPI_Isend : &MPI_Issend;
  return impl_->add({}, "send", [&](MPI_Request* request) {
    return send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer, tag, impl_->world, request);
  });
}

Ticket MpiCommunicator::receive(int peer, int tag, std::span<std::byte> bytes) {
  weft::check(bytes.size() <= INT_MAX, "a message of more than 2 GB");
  const std::lock_guard lock(impl_->mutex);
  const auto count = static_cast<int>(bytes.size());
  return impl_->add({.peer = peer, .bytes = count, .received = count}, "receive", [&](MPI_Request* request) {
    return MPI_Irecv(bytes.data(), count, MPI_BYTE, peer, tag, impl_->world, request);
  });
}

Ticket MpiCommunicator::all_reduce(std::span<float> values) {
  weft::check(values.size() <= INT_MAX, "an all-reduce of more than 2^31 numbers");
  const std::lock_guard lock(impl_->mutex);
  return impl_->add({}, "reduce", [&](MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, impl_->sums,
                          request);
  });
}

int64_t MpiCommunicator::progress() {
  const std::lock_guard lock(impl_->mutex);
  impl_->require_not_given_up();
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(impl_->under_way.size()), impl_->under_way.data(), &count,
                                impl_->places_found.data(), impl_->statuses_found.data());
  if (code != MPI_ERR_IN_STATUS) require(code, "finish messages");
  if (count == MPI_UNDEFINED) return impl_->through;  // none is under way
  for (int i = 0; i < count; ++i) {
    const auto place = static_cast<size_t>(impl_->places_found[static_cast<size_t>(i)]);
    const auto ticket = static_cast<size_t>(impl_->tickets_under_way[place]);
    const MPI_Status& status = impl_->statuses_found[static_cast<size_t>(i)];
    Expected& message = impl_->expected[ticket];
    int problem = MPI_SUCCESS;
    if (code == MPI_ERR_IN_STATUS) MPI_Error_class(status.MPI_ERROR, &problem);
    // What is too long is an error of MPI's, with the whole size in Open MPI at least; what is too short is none.
    if (problem != MPI_ERR_TRUNCATE || message.peer < 0) require(problem, "finish messages");
    if (message.peer >= 0) MPI_Get_count(&status, MPI_BYTE, &message.received);
    if (problem == MPI_ERR_TRUNCATE) message.received = std::max(message.received, message.bytes + 1);
    impl_->is_through.at(ticket) = true;
  }
  // From behind: what takes a place that is free now is none of those to come.
  std::sort(impl_->places_found.begin(), impl_->places_found.begin() + count, std::greater<>());
  for (int i = 0; i < count; ++i) impl_->remove(static_cast<size_t>(impl_->places_found[static_cast<size_t>(i)]));
  return impl_->through += count;
}

bool MpiCommunicator::is_done(Ticket ticket) {
  impl_->require_not_given_up();
  if (!impl_->is_through.at(static_cast<size_t>(ticket.id))) return false;
  const std::lock_guard lock(impl_->mutex);
  impl_->unused_tickets.push_back(static_cast<int>(ticket.id));
  const Expected& message = impl_->expected[static_cast<size_t>(ticket.id)];
  if (message.received != message.bytes) fail_wrong_size(*this, message.peer, message.bytes, message.received);
  return true;
}

std::shared_ptr<SharedMemory> MpiCommunicator::share(int64_t bytes, const std::vector<int>& peers) {
  const MemoryFile own(bytes);
  std::vector<std::shared_ptr<std::byte>> parts;
  if (peers.size() == 1) return std::make_shared<Parts>(bytes, std::vector{own.map()});
  const WaitLimits limits;
  const Purpose purpose{"share memory", {}, {}};
  // Twice around: the second time when all peers' files are open, or after a peer's failure.
  const auto exchange = [&](const MemoryFileAddress& mine) {
    std::vector<MemoryFileAddress> theirs(peers.size());
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < peers.size(); ++i) {
      if (peers[i] == impl_->rank) continue;
      tickets.push_back(receive(peers[i], kSharedMemoryTag, std::as_writable_bytes(std::span(&theirs[i], 1))));
      tickets.push_back(send(peers[i], kSharedMemoryTag, std::as_bytes(std::span(&mine, 1))));
    }
    for (size_t i = 0, next = 0; i < peers.size(); ++i)
      for (int k = 0; k < 2 && peers[i] != impl_->rank; ++k) await(*this, tickets[next++], peers[i], limits, purpose);
    return theirs;
  };
  MemoryFileAddress mine = own.address();
  const std::vector<MemoryFileAddress> addresses = exchange(mine);
  std::string problem;
  for (size_t i = 0; i < peers.size() && problem.empty(); ++i) {
    try {
      if (peers[i] != impl_->rank && addresses[i].bytes != mine.bytes)
        fail(ErrorKind::communication, "[share memory] {} shares {} bytes where this rank shares {}",
             name_of_rank(*this, peers[i]), addresses[i].bytes, mine.bytes);
      parts.push_back(peers[i] == impl_->rank ? own.map() : map_memory_file(addresses[i]));
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  mine.descriptor = problem.empty() ? mine.descriptor : -1;
  const std::vector<MemoryFileAddress> ends = exchange(mine);
  if (!problem.empty()) throw Error(ErrorKind::communication, problem);
  for (size_t i = 0; i < peers.size(); ++i)
    if (peers[i] != impl_->rank && ends[i].descriptor < 0)
      fail(ErrorKind::communication, "[share memory] {} could not share {} bytes", name_of_rank(*this, peers[i]),
           bytes);
  return std::make_shared<Parts>(bytes, std::move(parts));
}

double MpiCommunicator::seconds_silent(int peer) const { return impl_->signs_of_life->seconds_silent(peer); }

void MpiCommunicator::give_up() {
  {
    // Messages move within calls to MPI only, of which there will be none.
    const std::lock_guard lock(impl_->mutex);
    impl_->is_given_up = true;
  }
  impl_->signs_of_life->stop();
}

void MpiCommunicator::run(CollectiveKind kind, std::span<float> values) {
  const std::lock_guard lock(impl_->mutex);
  const auto count = static_cast<int>(values.size()), part = count / size();
  const MPI_Comm world = impl_->world;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return require(MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM, world), "reduce");
    case CollectiveKind::all_gather:
      return require(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values.data(), part, MPI_FLOAT, world),
                     "gather");
    case CollectiveKind::reduce_scatter:
      return require(MPI_Reduce_scatter_block(MPI_IN_PLACE, values.data(), part, MPI_FLOAT, MPI_SUM, world), "scatter");
    case CollectiveKind::broadcast:
      return require(MPI_Bcast(values.data(), count, MPI_FLOAT, 0, world), "broadcast");
    case CollectiveKind::reduce:
      return require(MPI_Reduce(impl_->rank == 0 ? MPI_IN_PLACE : values.data(), values.data(), count, MPI_FLOAT,
                                MPI_SUM, 0, world),
                     "reduce");
  }
}

bool MpiCommunicator::claims_report() { return impl_->board(0).is_reported.exchange(1) == 0; }

}  // namespace weft::comm
