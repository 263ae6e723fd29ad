#include "weft/comm/exchange.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "weft/base/error.h"
#include "weft/comm/tags.h"

namespace weft::comm {

namespace {

constexpr size_t kLargestMessage = size_t{64} << 20;  // MPI counts in int

/// Goes before the content, so that ranks that do different things find out.
struct Header {
  uint64_t bytes = 0;
  std::array<char, 56> what{};
};

class Exchange {
 public:
  Exchange(Communicator& communicator, std::string_view what, const WaitLimits& limits)
      : communicator_(communicator), limits_(limits), what_(what) {}

  void send(int peer, std::span<const std::byte> bytes) {
    const Header header = make_header(bytes.size());
    await_send(peer, std::as_bytes(std::span(&header, 1)));
    for (size_t at = 0; at < bytes.size(); at += kLargestMessage)
      await_send(peer, bytes.subspan(at, std::min(kLargestMessage, bytes.size() - at)));
  }

  void receive(int peer, std::span<std::byte> bytes) {
    const uint64_t sent = receive_header(peer);
    if (sent != bytes.size())
      fail(ErrorKind::communication,
           "[{}] {} sends {} bytes where {} were expected: all ranks must run the same program on the same data", what_,
           name_of_rank(communicator_, peer), sent, bytes.size());
    receive_content(peer, bytes);
  }

  std::string receive_text(int peer) {
    std::string text(receive_header(peer), '\0');
    receive_content(peer, std::as_writable_bytes(std::span(text)));
    return text;
  }

  /// Down the binomial tree whose root is `root`; `take` receives from a peer, `give` sends to one.
  template <typename Take, typename Give>
  void down(int root, Take&& take, Give&& give) {
    const int size = communicator_.size(), place = (communicator_.rank() - root + size) % size;
    int mask = 1;
    while (mask < size && (place & mask) == 0) mask <<= 1;
    if (place != 0) take((place - mask + root) % size);
    for (mask >>= 1; mask > 0; mask >>= 1)
      if (place + mask < size) give((place + mask + root) % size);
  }

  /// Up the tree to rank 0, which adds neighbours first: (r0 + r1) + (r2 + r3).
  template <typename Combine>
  void up(std::span<double> values, Combine&& combine) {
    const int size = communicator_.size(), rank = communicator_.rank();
    std::vector<double> theirs(values.size());
    for (int mask = 1; mask < size; mask <<= 1) {
      if ((rank & mask) != 0) {
        send(rank - mask, std::as_bytes(values));
        return;
      }
      if (rank + mask >= size) continue;
      receive(rank + mask, std::as_writable_bytes(std::span(theirs)));
      for (size_t i = 0; i < values.size(); ++i) values[i] = combine(values[i], theirs[i]);
    }
  }

 private:
  Header make_header(size_t bytes) const {
    Header header;
    header.bytes = bytes;
    what_.copy(header.what.data(), header.what.size());
    return header;
  }

  Purpose purpose() const { return {.what = what_, .subject = {}, .position = {}}; }

  void await_send(int peer, std::span<const std::byte> bytes) {
    await(communicator_, communicator_.send(peer, kExchangeTag, bytes), peer, limits_, purpose());
  }
  void await_receive(int peer, std::span<std::byte> bytes) {
    await(communicator_, communicator_.receive(peer, kExchangeTag, bytes), peer, limits_, purpose());
  }

  uint64_t receive_header(int peer) {
    Header header;
    await_receive(peer, std::as_writable_bytes(std::span(&header, 1)));
    if (header.what == make_header(0).what) return header.bytes;
    const std::string_view theirs(header.what.data(), strnlen(header.what.data(), header.what.size()));
    fail(ErrorKind::communication,
         "[{}] {} is at '{}' meanwhile: all ranks must run the same program with the same arguments", what_,
         name_of_rank(communicator_, peer), theirs);
  }

  void receive_content(int peer, std::span<std::byte> bytes) {
    for (size_t at = 0; at < bytes.size(); at += kLargestMessage)
      await_receive(peer, bytes.subspan(at, std::min(kLargestMessage, bytes.size() - at)));
  }

  Communicator& communicator_;
  const WaitLimits& limits_;
  const std::string_view what_;
};

/// Texts as one: their number, their lengths, and then all of them.
std::string pack(const std::vector<std::string>& texts) {
  std::string packed;
  const auto add_number = [&](uint64_t number) {
    packed.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add_number(texts.size());
  for (const std::string& text : texts) add_number(text.size());
  for (const std::string& text : texts) packed += text;
  return packed;
}

/// Reverses pack(); of what another rank of the same program has packed.
std::vector<std::string> unpack(std::string_view packed) {
  const auto number = [&](size_t place) {
    uint64_t found = 0;
    check((place + 1) * sizeof found <= packed.size(), "texts that are cut off");
    std::memcpy(&found, packed.data() + place * sizeof found, sizeof found);
    return found;
  };
  const uint64_t count = number(0);
  std::vector<std::string> texts;
  size_t at = (count + 1) * sizeof(uint64_t);
  for (uint64_t place = 1; place <= count; ++place) {
    const uint64_t length = number(place);
    check(at + length <= packed.size(), "texts that are cut off");
    texts.emplace_back(packed.substr(at, length));
    at += length;
  }
  return texts;
}

template <typename Combine>
void all_reduce(Communicator& communicator, std::span<double> values, std::string_view what, const WaitLimits& limits,
                Combine&& combine) {
  Exchange(communicator, what, limits).up(values, combine);
  broadcast(communicator, 0, std::as_writable_bytes(values), what, limits);
}

}  // namespace

void all_reduce_sum(Communicator& communicator, std::span<double> values, std::string_view what,
                    const WaitLimits& limits) {
  all_reduce(communicator, values, what, limits, [](double a, double b) { return a + b; });
}

void all_reduce_min(Communicator& communicator, std::span<double> values, std::string_view what,
                    const WaitLimits& limits) {
  all_reduce(communicator, values, what, limits, [](double a, double b) { return std::min(a, b); });
}

void all_reduce_max(Communicator& communicator, std::span<double> values, std::string_view what,
                    const WaitLimits& limits) {
  all_reduce(communicator, values, what, limits, [](double a, double b) { return std::max(a, b); });
}

void broadcast(Communicator& communicator, int root, std::span<std::byte> bytes, std::string_view what,
               const WaitLimits& limits) {
  Exchange exchange(communicator, what, limits);
  exchange.down(
      root, [&](int peer) { exchange.receive(peer, bytes); }, [&](int peer) { exchange.send(peer, bytes); });
}

std::string broadcast(Communicator& communicator, int root, std::string_view text, std::string_view what,
                      const WaitLimits& limits) {
  Exchange exchange(communicator, what, limits);
  std::string content(communicator.rank() == root ? text : "");
  exchange.down(
      root, [&](int peer) { content = exchange.receive_text(peer); },
      [&](int peer) { exchange.send(peer, std::as_bytes(std::span(content))); });
  return content;
}

std::vector<std::string> gather(Communicator& communicator, std::string_view mine, std::string_view what,
                                const WaitLimits& limits) {
  Exchange exchange(communicator, what, limits);
  const int size = communicator.size(), rank = communicator.rank();
  std::vector<std::string> texts{std::string(mine)};  // of this rank and those behind it in the tree
  for (int mask = 1; mask < size; mask <<= 1) {
    if ((rank & mask) != 0) {
      const std::string packed = pack(texts);
      exchange.send(rank - mask, std::as_bytes(std::span(packed)));
      return {};
    }
    if (rank + mask >= size) continue;
    for (std::string& text : unpack(exchange.receive_text(rank + mask))) texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> all_gather(Communicator& communicator, std::string_view mine, std::string_view what,
                                    const WaitLimits& limits) {
  return unpack(broadcast(communicator, 0, pack(gather(communicator, mine, what, limits)), what, limits));
}

void barrier(Communicator& communicator, std::string_view what, const WaitLimits& limits) {
  all_reduce_sum(communicator, {}, what, limits);
}

}  // namespace weft::comm
