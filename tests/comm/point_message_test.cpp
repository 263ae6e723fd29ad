// Messages from rank to rank beside the collectives, between threads as ranks: what arrives, in which order, and who is
// named where a peer does not come.
#include "weft/comm/point_message.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/comm/host_groups.h"
#include "weft/base/error.h"
#include "weft/comm/local/local_group.h"

namespace weft::comm {
namespace {

std::byte byte_of(int rank, int64_t i, int run) { return static_cast<std::byte>(rank * 31 + i * 7 + run * 3); }

void fill(std::byte* data, int64_t bytes, int rank, int run) {
  for (int64_t i = 0; i < bytes; ++i) data[i] = byte_of(rank, i, run);
}
void expect_filled(const std::byte* data, int64_t bytes, int rank, int run) {
  for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i], byte_of(rank, i, run)) << "byte " << i << " run " << run;
}

/// Each sends to the next and receives from the one before.
void expect_passed_on(const std::vector<std::string>& group, int64_t bytes) {
  run_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, {});
    const int next = (ranks.rank() + 1) % ranks.size(), previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
    const MessageId sent = collectives.prepare({"out", bytes, true, next, 5});
    const MessageId received = collectives.prepare({"in", bytes, false, previous, 5});
    // A byte behind each, that nobody may touch.
    std::vector<std::byte> out(static_cast<size_t>(bytes) + 1), in(static_cast<size_t>(bytes) + 1, std::byte{9});
    for (int run = 0; run < 4; ++run) {
      fill(out.data(), bytes, ranks.rank(), run);
      if (run % 2 == 0) {
        collectives.start(sent, out.data());
        collectives.start(received, in.data());
      } else {
        collectives.start(received, in.data());
        collectives.start(sent, out.data());
      }
      collectives.wait(received);
      collectives.wait(sent);
      expect_filled(in.data(), bytes, previous, run);
      EXPECT_EQ(in.back(), std::byte{9});
    }
  });
}

TEST(PointMessages, ArePassedOnAlongAllKindsOfGroups) {
  for (const std::vector<std::string>& group : host_groups())
    for (const int64_t bytes : {0, 1, 2, 4, 6, 1000, 300'001})
      if (group.size() > 1) expect_passed_on(group, bytes);
}

TEST(PointMessages, LargeOnesTravelInParts) { expect_passed_on({"a", "b"}, 10'000'001); }

TEST(PointMessages, OfDifferentTagsMayOvertakeEachOther) {
  for (const std::vector<std::string>& group : {std::vector<std::string>{"a", "a"}, {"a", "b"}})
    run_ranks(group, [](Communicator& ranks) {
      Collectives collectives(ranks, {});
      const bool sends = ranks.rank() == 0;
      std::vector<MessageId> messages;
      std::vector<std::vector<std::byte>> data(3, std::vector<std::byte>(100));
      for (int tag = 0; tag < 3; ++tag)
        messages.push_back(collectives.prepare({"m" + std::to_string(tag), 100, sends, 1 - ranks.rank(), tag}));
      for (const int tag : {2, 0, 1})
        if (sends) fill(data[static_cast<size_t>(tag)].data(), 100, 0, tag);
      for (size_t i = 0; i < 3; ++i) {
        const size_t tag = sends ? 2 - i : i;
        collectives.start(messages[tag], data[tag].data());
      }
      for (size_t tag = 0; tag < 3; ++tag) {
        collectives.wait(messages[tag]);
        expect_filled(data[tag].data(), 100, 0, static_cast<int>(tag));
      }
    });
}

TEST(PointMessages, TravelBesideCollectives) {
  run_ranks({"a", "a", "b"}, [](Communicator& ranks) {
    Collectives collectives(ranks, {});
    const CollectiveId sum = collectives.prepare({"x", DType::f32, Reduction::sum, {50'000}});
    const Operands operands(collectives, DType::f32, {50'000}, true);
    std::fill_n(static_cast<float*>(operands.tensors[0]), 50'000, static_cast<float>(ranks.rank() + 1));
    std::vector<std::byte> data(4000);
    // Rank 1 has nothing to do with the message.
    const bool takes_part = ranks.rank() != 1;
    MessageId message;
    if (takes_part) {
      message = collectives.prepare({"m", 4000, ranks.rank() == 0, 2 - ranks.rank(), 0});
      if (ranks.rank() == 0) fill(data.data(), 4000, 0, 1);
      collectives.start(message, data.data());
    }
    collectives.start(sum, operands.tensors);
    collectives.wait(sum);
    EXPECT_EQ(static_cast<float*>(operands.tensors[0])[49'999], 6);
    if (takes_part) {
      collectives.wait(message);
      expect_filled(data.data(), 4000, 0, 1);
    }
  });
}

class LostPeer : public testing::TestWithParam<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(Hosts, LostPeer,
                         testing::Values(std::vector<std::string>{"a", "a"}, std::vector<std::string>{"a", "b"}));

TEST_P(LostPeer, IsNamedWithTensorAndPosition) {
  LocalGroup group(GetParam());
  const auto errors = errors_of_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, {.silence_seconds = 0.2});
    collectives.set_position("step 3");
    if (ranks.rank() == 1) return group.silence(1);
    std::vector<std::byte> data(4000);
    const MessageId id = collectives.prepare({"activations", 4000, false, 1, 0});
    collectives.start(id, data.data());
    collectives.wait(id);
  });
  EXPECT_NE(errors[0].find("[receive] 'activations' at step 3"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("rank 1 on host '" + GetParam()[1] + "'"), std::string::npos) << errors[0];
}

TEST_P(LostPeer, OrOneThatLivesButDoesNotComeIsNamed) {
  LocalGroup group(GetParam());
  std::atomic<bool> is_over = false;
  const auto errors = errors_of_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, {.silence_seconds = 5, .wait_seconds = 0.3});
    std::vector<std::byte> data(4000);
    if (ranks.rank() == 1) {
      while (!is_over) std::this_thread::yield();
      return;
    }
    const MessageId id = collectives.prepare({"activations", 4000, false, 1, 0});
    collectives.start(id, data.data());
    try {
      collectives.wait(id);
    } catch (...) {
      is_over = true;
      throw;
    }
  });
  EXPECT_NE(errors[0].find("[receive] 'activations'"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
}

class WrongSize : public testing::TestWithParam<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(Hosts, WrongSize,
                         testing::Values(std::vector<std::string>{"a", "a"}, std::vector<std::string>{"a", "b"}));

// Rank 1 sends, before rank 0 receives or after it.
TEST_P(WrongSize, IsNamedByWhoReceives) {
  for (const auto& [sent, expected] : std::vector<std::pair<int64_t, int64_t>>{
           {2000, 4000}, {4000, 2000}, {5, 6}, {6, 5}, {6, 8}, {0, 4}, {4, 0}, {300'001, 300'000}})
    for (const bool waits : {false, true}) {
      LocalGroup group(GetParam());
      const auto errors = errors_of_ranks(group, [&, sent = sent, expected = expected](Communicator& ranks) {
        Collectives collectives(ranks, {});
        const bool sends = ranks.rank() == 1;
        const int64_t bytes = sends ? sent : expected;
        std::vector<std::byte> data(static_cast<size_t>(bytes) + 1, std::byte{7});
        const MessageId id = collectives.prepare({"activations", bytes, sends, 1 - ranks.rank(), 0});
        if (sends == waits) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        collectives.start(id, data.data());
        try {
          collectives.wait(id);
        } catch (...) {
          EXPECT_EQ(data.back(), std::byte{7}) << "written beyond the tensor";
          throw;
        }
      });
      EXPECT_EQ(errors[1], "");
      EXPECT_EQ(errors[0], "[receive] 'activations': rank 1 on host '" + GetParam()[1] + "' sends " +
                               std::to_string(sent) + " bytes where rank 0 on host 'a' receives " +
                               std::to_string(expected) + "; let the tensor have the same shape and type on both");
    }
}

TEST(WrongSizes, OfCollectivesBetweenHostsAreNamedToo) {
  LocalGroup group({"a", "b"});
  const auto errors = errors_of_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, {.silence_seconds = 1});
    const int64_t elements = ranks.rank() == 0 ? 100 : 50;
    const CollectiveId id = collectives.prepare({"x", DType::f32, Reduction::sum, {elements}});
    const Operands operands(collectives, DType::f32, {elements}, true);
    collectives.start(id, operands.tensors);
    collectives.wait(id);
  });
  EXPECT_NE((errors[0] + errors[1]).find("[all_reduce] 'x': rank "), std::string::npos) << errors[0] << errors[1];
}

TEST(PointMessages, ToARankThatDoesNotExistAreErrors) {
  run_ranks({"a", "a"}, [](Communicator& ranks) {
    Collectives collectives(ranks, {});
    for (const int peer : {2, -1, ranks.rank()}) {
      try {
        collectives.prepare({"activations", 4, true, peer, 0});
        ADD_FAILURE() << "peer " << peer;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("[send] 'activations'"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("ranks 0 to 1"), std::string::npos) << error.what();
      }
    }
    EXPECT_THROW(collectives.prepare({"activations", 4, true, 1 - ranks.rank(), 1 << 20}), Error);
  });
}

}  // namespace
}  // namespace weft::comm
