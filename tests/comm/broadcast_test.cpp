// Broadcast, and its reverse, sums at a root: schedules symbolically, what is predicted, and ranks as threads.
#include "weft/comm/schedules/broadcast.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/comm/host_groups.h"
#include "tests/comm/symbolic_run.h"
#include "weft/comm/links/choose.h"
#include "weft/comm/local/local_group.h"

namespace weft::comm {
namespace {

std::vector<Schedule> schedules_of(decltype(make_broadcast_schedule)* make, Algorithm algorithm, int size, int root,
                                   int64_t elements, int64_t chunk) {
  std::vector<Schedule> schedules;
  for (int member = 0; member < size; ++member)
    schedules.push_back(make(algorithm, member, size, root, elements, chunk));
  return schedules;
}

class BroadcastSchedules : public testing::TestWithParam<std::tuple<Algorithm, int>> {};
INSTANTIATE_TEST_SUITE_P(AlgorithmsAndSizes, BroadcastSchedules,
                         testing::Combine(testing::ValuesIn(broadcast_algorithms()),
                                          testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9)));

TEST_P(BroadcastSchedules, GiveEveryMemberTheRootsNumbers) {
  const auto [algorithm, size] = GetParam();
  for (int root = 0; root < size; ++root)
    for (const int64_t elements : {0, 1, 7})
      for (const int64_t chunk : {1, 3, 1000}) {
        SymbolicRun run(schedules_of(make_broadcast_schedule, algorithm, size, root, elements, chunk), 1);
        ASSERT_EQ(run.run(), "") << elements << " elements in chunks of " << chunk;
        for (const Counts& buffer : run.buffers())
          for (const auto& counts : buffer)
            ASSERT_EQ(counts, (std::map<int, int>{{root, 1}})) << name_of(algorithm) << " from " << root;
      }
}

TEST_P(BroadcastSchedules, RunBackwardsSumEveryNumberOnceAtTheRoot) {
  const auto [algorithm, size] = GetParam();
  std::map<int, int> once;
  for (int member = 0; member < size; ++member) once[member] = 1;
  for (int root = 0; root < size; ++root)
    for (const int64_t elements : {0, 1, 7})
      for (const int64_t chunk : {1, 3, 1000})
        for (uint64_t seed = 1; seed <= 3; ++seed) {
          const auto schedules = schedules_of(make_reduction_schedule, algorithm, size, root, elements, chunk);
          for (const Schedule& schedule : schedules) ASSERT_EQ(find_conflict(schedule), "");
          SymbolicRun run(schedules, seed);
          ASSERT_EQ(run.run(), "") << elements << " elements in chunks of " << chunk;
          for (const auto& counts : run.buffers()[static_cast<size_t>(root)])
            ASSERT_EQ(counts, once) << name_of(algorithm) << " at " << root;
        }
}

TEST(BroadcastCosts, AreTheFormulas) {
  const LinkCosts link{.latency_seconds = 1e-3, .bytes_per_second = 1e6, .message_seconds = 0};
  const auto seconds = [&](Algorithm algorithm, int64_t chunk) {
    return simulate(schedules_of(make_broadcast_schedule, algorithm, 4, 0, 1000, chunk), link, 1, 4);
  };
  EXPECT_NEAR(seconds(Algorithm::chain, 1000), 3 * (1e-3 + 4e-3), 1e-9);
  EXPECT_NEAR(seconds(Algorithm::chain, 100), 3 * (1e-3 + 0.4e-3) + 9 * 0.4e-3, 1e-9);
  EXPECT_NEAR(seconds(Algorithm::binomial_tree, 1000), 2 * (1e-3 + 4e-3), 1e-9);
  EXPECT_NEAR(seconds(Algorithm::direct_exchange, 1000), 1e-3 + 3 * 4e-3, 1e-9);
}

TEST(BroadcastCosts, AreLeastForAChainOfManyAndForATreeOfFewElements) {
  const LinkCosts link{.latency_seconds = 50e-6, .bytes_per_second = 1e9, .message_seconds = 5e-6};
  EXPECT_EQ(choose_broadcast(8, 2, 1 << 24, 4, link).algorithm, Algorithm::chain);
  EXPECT_LT(choose_broadcast(8, 2, 1 << 24, 4, link).seconds, 1.1 * 4 * (1 << 24) / 1e9);
  const Choice small = choose_broadcast(64, 2, 16, 4, link);
  EXPECT_EQ(small.algorithm, Algorithm::binomial_tree);
  EXPECT_LT(small.seconds, 6 * 56e-6);
  EXPECT_EQ(choose_reduction(8, 0, 1 << 24, 4, link, 1e10).algorithm, Algorithm::chain);
  for (const Algorithm algorithm : broadcast_algorithms()) {
    EXPECT_EQ(choose_broadcast(4, 1, 1000, 4, link, algorithm).algorithm, algorithm);
    EXPECT_EQ(choose_reduction(4, 1, 1000, 4, link, 1e9, algorithm).algorithm, algorithm);
  }
}

uint16_t broadcast_pattern(int rank, size_t tensor, int64_t element, int step) {
  return static_cast<uint16_t>((rank * 7919 + static_cast<int>(tensor) * 131 + element * 31 + step * 17) & 0x7f7f);
}

void expect_broadcasts(const std::vector<std::string>& group, int root, DType dtype,
                       const std::vector<int64_t>& elements, bool shared, const CollectivesOptions& options = {}) {
  run_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, options);
    const CollectiveId id =
        collectives.prepare({"x", dtype, Reduction::sum, elements, CollectiveKind::broadcast, root});
    const auto units = static_cast<int64_t>(unpacked_size(dtype) / 2);  // of 16 bits in an element
    const Operands operands(collectives, dtype, elements, shared);
    for (int step = 0; step < 3; ++step) {
      for (size_t t = 0; t < elements.size(); ++t)
        for (int64_t i = 0; i < elements[t] * units; ++i)
          static_cast<uint16_t*>(operands.tensors[t])[i] = broadcast_pattern(ranks.rank(), t, i, step);
      collectives.start(id, operands.tensors);
      collectives.wait(id);
      for (size_t t = 0; t < elements.size(); ++t)
        for (int64_t i = 0; i < elements[t] * units; ++i)
          ASSERT_EQ(static_cast<uint16_t*>(operands.tensors[t])[i], broadcast_pattern(root, t, i, step))
              << "on " << ranks.rank() << " of " << root << " tensor " << t << " element " << i << " step " << step;
    }
  });
}

class Broadcast : public testing::TestWithParam<size_t> {
 protected:
  const std::vector<std::string>& group() const { return host_groups()[GetParam()]; }
  int last() const { return static_cast<int>(group().size()) - 1; }
};
INSTANTIATE_TEST_SUITE_P(Groups, Broadcast, testing::Range<size_t>(0, host_groups().size()));

TEST_P(Broadcast, GivesWhatTheRootHasInSharedMemory) {
  for (const int root : {0, last() / 2, last()})
    expect_broadcasts(group(), root, DType::f32, {1000, 1, 0, 37, 200'003}, true);
}
TEST_P(Broadcast, GivesWhatTheRootHasInForeignMemory) {
  for (const int root : {0, last()}) expect_broadcasts(group(), root, DType::i32, {1000, 1, 0, 37, 20'003}, false);
}
TEST_P(Broadcast, MovesNumbersOf16Bits) {
  expect_broadcasts(group(), last(), DType::bf16, {3, 2050, 11}, true);
  expect_broadcasts(group(), 0, DType::f16, {17'000}, false);
}
TEST_P(Broadcast, OfLittleIsDoneByWhoeverComesLast) {
  for (const bool shared : {true, false}) expect_broadcasts(group(), last(), DType::f32, {5, 2}, shared);
}
TEST_P(Broadcast, IsDoneByEachOfTheAlgorithms) {
  for (const Algorithm algorithm : broadcast_algorithms())
    expect_broadcasts(group(), last(), DType::f32, {777, 20'000}, true, {.algorithm = algorithm});
}
TEST_P(Broadcast, TravelsInPartsOverSlowLinks) {
  CollectivesOptions options;
  options.costs.between_hosts = {.latency_seconds = 1e-4, .bytes_per_second = 1e7, .message_seconds = 1e-6};
  expect_broadcasts(group(), 0, DType::f32, {300'000, 65}, true, options);
}

void expect_sums_at_root(const std::vector<std::string>& group, int root, DType dtype,
                         const std::vector<int64_t>& elements, bool shared, const CollectivesOptions& options = {}) {
  run_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, options);
    const CollectiveId id = collectives.prepare({"x", dtype, Reduction::sum, elements, CollectiveKind::reduce, root});
    const Operands operands(collectives, dtype, elements, shared);
    const auto as_bf16 = [](float value) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      return static_cast<uint16_t>(bits >> 16);
    };
    const auto number = [](int rank, int64_t i, int step) { return static_cast<float>((rank + 1) * ((i + step) % 7)); };
    for (int step = 0; step < 3; ++step) {
      for (size_t t = 0; t < elements.size(); ++t)
        for (int64_t i = 0; i < elements[t]; ++i) {
          const float value = number(ranks.rank(), i, step);
          if (dtype == DType::f32)
            static_cast<float*>(operands.tensors[t])[i] = value;
          else
            static_cast<uint16_t*>(operands.tensors[t])[i] = as_bf16(value);
        }
      collectives.start(id, operands.tensors);
      collectives.wait(id);
      for (size_t t = 0; ranks.rank() == root && t < elements.size(); ++t)
        for (int64_t i = 0; i < elements[t]; ++i) {
          float wanted = 0;
          for (int rank = 0; rank < ranks.size(); ++rank) wanted += number(rank, i, step);
          if (dtype == DType::f32)
            ASSERT_EQ(static_cast<float*>(operands.tensors[t])[i], wanted) << "tensor " << t << " element " << i;
          else
            ASSERT_EQ(static_cast<uint16_t*>(operands.tensors[t])[i], as_bf16(wanted)) << t << " element " << i;
        }
    }
  });
}

TEST_P(Broadcast, RunBackwardsSumsAtTheRoot) {
  for (const int root : {0, last() / 2, last()}) {
    expect_sums_at_root(group(), root, DType::f32, {1000, 1, 0, 37, 20'003}, true);
    expect_sums_at_root(group(), root, DType::f32, {1000, 20'003}, false);
    expect_sums_at_root(group(), root, DType::bf16, {1000, 20'003}, true);
    expect_sums_at_root(group(), root, DType::f32, {5}, root > 0);
  }
  for (const Algorithm algorithm : broadcast_algorithms())
    expect_sums_at_root(group(), last(), DType::f32, {777, 20'000}, true, {.algorithm = algorithm});
}

TEST(Broadcast, OfLittleMoreThanFitsInAPartIsPredictedToTakeLittleMore) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::all_reduce})
    run_ranks({"a", "b"}, [&](Communicator& ranks) {
      CollectivesOptions options;
      options.costs.between_hosts = {.latency_seconds = 1e-4, .bytes_per_second = 1e8, .message_seconds = 1e-6};
      Collectives collectives(ranks, options);
      const auto report = [&](int64_t elements) {
        return collectives.report(collectives.prepare({"x", DType::f32, Reduction::sum, {elements}, kind}));
      };
      int64_t one_part = 1, two_parts = 1 << 20;
      ASSERT_GT(report(two_parts).parts, 1);
      while (two_parts - one_part > 1) {
        const int64_t between = (one_part + two_parts) / 2;
        (report(between).parts > 1 ? two_parts : one_part) = between;
      }
      EXPECT_LT(report(two_parts).predicted_seconds, 1.2 * report(one_part).predicted_seconds) << name_of(kind);
    });
}

TEST(Broadcast, FromARankThatDoesNotExistIsAnError) {
  LocalGroup group({"a", "a"});
  const auto errors = errors_of_ranks(group, [](Communicator& ranks) {
    Collectives collectives(ranks, {});
    collectives.prepare({"weights", DType::f32, Reduction::sum, {10}, CollectiveKind::broadcast, 2});
  });
  EXPECT_EQ(errors[0], "[broadcast] 'weights': there is no rank 2, the root: ranks are 0 to 1");
}

TEST(Broadcast, OfARootThatIsLostNamesIt) {
  for (const std::vector<std::string>& hosts : {std::vector<std::string>{"a", "a"}, {"a", "b"}}) {
    LocalGroup group(hosts);
    const auto errors = errors_of_ranks(group, [&](Communicator& ranks) {
      Collectives collectives(ranks, {.silence_seconds = 0.2});
      const CollectiveId id =
          collectives.prepare({"weights", DType::f32, Reduction::sum, {20'000}, CollectiveKind::broadcast, 1});
      const Operands operands(collectives, DType::f32, {20'000}, true);
      if (ranks.rank() == 1) return group.silence(1);
      collectives.start(id, operands.tensors);
      collectives.wait(id);
    });
    EXPECT_NE(errors[0].find("[broadcast] 'weights'"), std::string::npos) << errors[0];
    EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
  }
}

}  // namespace
}  // namespace weft::comm
