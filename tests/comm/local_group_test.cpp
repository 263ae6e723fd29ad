// Messages, shared memory and silence among ranks that are threads.
#include "weft/comm/local/local_group.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <thread>

#include "tests/support/files_for_tests.h"
#include "weft/comm/patience.h"

namespace weft::comm {
namespace {

constexpr Purpose kPurpose{"test", "tensor", "step 7"};

void receive_now(Communicator& ranks, int peer, int tag, std::span<std::byte> bytes) {
  await(ranks, ranks.receive(peer, tag, bytes), peer, {}, kPurpose);
}

TEST(LocalGroup, NumbersHostsByTheirFirstRank) {
  LocalGroup group({"a", "b", "a", "c"});
  const auto& members = group.communicator(0).members();
  EXPECT_EQ(members[2].host, "a");
  EXPECT_EQ(members[2].host_index, 0);
  EXPECT_EQ(members[2].local_rank, 1);
  EXPECT_EQ(members[3].host_index, 2);
  EXPECT_EQ(members[3].local_rank, 0);
}

TEST(LocalGroup, MessagesOfOneTagArriveInOrderWhateverOtherTagsDo) {
  run_ranks({"a", "b"}, [](Communicator& ranks) {
    std::array<int, 3> values{};
    if (ranks.rank() == 0) {
      const std::array<int, 3> sent{1, 2, 3};
      const auto bytes = std::as_bytes(std::span(sent));
      const Ticket first = ranks.send(1, 10, bytes.subspan(0, 4));
      const Ticket second = ranks.send(1, 11, bytes.subspan(4, 4));
      const Ticket third = ranks.send(1, 10, bytes.subspan(8, 4));
      for (const Ticket ticket : {first, second, third}) await(ranks, ticket, 1, {}, kPurpose);
    } else {
      const auto bytes = std::as_writable_bytes(std::span(values));
      receive_now(ranks, 0, 11, bytes.subspan(0, 4));
      receive_now(ranks, 0, 10, bytes.subspan(4, 4));
      receive_now(ranks, 0, 10, bytes.subspan(8, 4));
      EXPECT_EQ(values, (std::array{2, 1, 3}));
    }
  });
}

TEST(LocalGroup, RefusesAMessageOfAnotherSize) {
  expect_error(
      [] {
        run_ranks({"a"}, [](Communicator& ranks) {
          std::array<std::byte, 8> buffer{};
          ranks.send(0, 5, std::span(buffer).first(4));
          const Ticket ticket = ranks.receive(0, 5, buffer);
          while (!ranks.test(ticket)) std::this_thread::yield();
        });
      },
      ErrorKind::communication, {"rank 0 on host 'a' sends 4 bytes", "receives 8"});
}

TEST(LocalGroup, RanksOfAHostSeeEachOthersParts) {
  run_ranks({"a", "b", "a"}, [](Communicator& ranks) {
    const Member& me = ranks.members()[static_cast<size_t>(ranks.rank())];
    const auto memory = ranks.share(256);
    EXPECT_EQ(memory->bytes(), 256);
    std::byte* mine = memory->part(me.local_rank);
    EXPECT_EQ(mine[100], std::byte{0});
    mine[7] = static_cast<std::byte>(ranks.rank() + 1);
    const std::byte token{};
    std::byte answer{};
    if (me.host != "a") return;
    const int peer = 2 - ranks.rank();
    const Ticket sent = ranks.send(peer, 3, std::span(&token, 1));
    receive_now(ranks, peer, 3, std::span(&answer, 1));
    await(ranks, sent, peer, {}, kPurpose);
    EXPECT_EQ(memory->part(1 - me.local_rank)[7], static_cast<std::byte>(peer + 1));
  });
}

TEST(LocalGroup, AWaitForASilencedRankNamesItWithHostTensorAndPosition) {
  LocalGroup group({"left", "right"});
  const auto errors = errors_of_ranks(group, [&](Communicator& ranks) {
    if (ranks.rank() == 1) {
      group.silence(1);
      return;
    }
    std::byte buffer{};
    const WaitLimits limits{.silence_seconds = 0.05};
    await(ranks, ranks.receive(1, 3, std::span(&buffer, 1)), 1, limits, kPurpose);
  });
  for (const char* text : {"[test] 'tensor' at step 7", "rank 1 on host 'right'", "no sign of life"})
    EXPECT_NE(errors[0].find(text), std::string::npos) << errors[0];
  EXPECT_EQ(errors[1], "");
}

TEST(LocalGroup, AWaitForARankThatLivesIsBoundedToo) {
  LocalGroup group({"left", "right"});
  const auto errors = errors_of_ranks(group, [&](Communicator& ranks) {
    std::byte buffer{};
    const WaitLimits limits{.silence_seconds = 0.02, .wait_seconds = 0.1};
    if (ranks.rank() == 0) await(ranks, ranks.receive(1, 3, std::span(&buffer, 1)), 1, limits, kPurpose);
  });
  EXPECT_NE(errors[0].find("rank 1 on host 'right' gave signs of life but did not come"), std::string::npos)
      << errors[0];
}

TEST(LocalGroup, RunRanksThrowsWhatFailedFirst) {
  expect_error(
      [] {
        run_ranks({"a", "b"}, [](Communicator& ranks) {
          if (ranks.rank() == 1) throw Error(ErrorKind::numeric, "the loss is NaN");
          std::byte buffer{};
          await(ranks, ranks.receive(1, 3, std::span(&buffer, 1)), 1, {.silence_seconds = 0.05}, kPurpose);
        });
      },
      ErrorKind::numeric, {"NaN"});
}

}  // namespace
}  // namespace weft::comm
