// All-gather: schedules symbolically, whatever the order in which messages come; what is sent and predicted; and ranks
// as threads on one host, on several, and on several with several ranks each.
#include "weft/comm/schedules/all_gather.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/comm/host_groups.h"
#include "tests/comm/symbolic_run.h"
#include "weft/comm/collectives.h"
#include "weft/comm/links/choose.h"
#include "weft/comm/local/local_group.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {
namespace {

std::vector<Schedule> schedules_of(Algorithm algorithm, const std::vector<int64_t>& begins) {
  std::vector<Schedule> schedules;
  for (int member = 0; member + 1 < static_cast<int>(begins.size()); ++member)
    schedules.push_back(make_gather_schedule(algorithm, member, begins));
  return schedules;
}

class GatherSchedules : public testing::TestWithParam<std::tuple<Algorithm, int>> {};
INSTANTIATE_TEST_SUITE_P(AlgorithmsAndSizes, GatherSchedules,
                         testing::Combine(testing::ValuesIn(all_gather_algorithms()),
                                          testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9)));

TEST_P(GatherSchedules, GiveEveryMemberEveryPiece) {
  const auto [algorithm, size] = GetParam();
  for (const int64_t elements : {0, 1, 5})
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const std::vector<int64_t> begins = uneven_pieces(size, elements);
      SymbolicRun run(schedules_of(algorithm, begins), seed);
      ASSERT_EQ(run.run(), "") << elements;
      for (const Counts& buffer : run.buffers())
        for (int owner = 0; owner < size; ++owner)
          for (auto i = static_cast<size_t>(begins[static_cast<size_t>(owner)]);
               i < static_cast<size_t>(begins[static_cast<size_t>(owner) + 1]); ++i)
            ASSERT_EQ(buffer[i], (std::map<int, int>{{owner, 1}})) << name_of(algorithm) << " element " << i;
    }
}

TEST_P(GatherSchedules, SendWhatTheOthersLack) {
  const auto [algorithm, size] = GetParam();
  std::vector<int64_t> begins;
  for (int member = 0; member <= size; ++member) begins.push_back(100 * member);
  for (const Schedule& schedule : schedules_of(algorithm, begins)) {
    int64_t sent = 0;
    for (const Action& action : schedule.actions) {
      EXPECT_LT(action.slot, schedule.slots);
      if (action.kind == ActionKind::send) sent += action.end - action.begin;
    }
    EXPECT_EQ(sent, 100 * (size - 1));
  }
}

TEST(GatherCosts, AreTheFormulas) {
  const LinkCosts link{.latency_seconds = 1e-3, .bytes_per_second = 1e6, .message_seconds = 0};
  const std::vector<int64_t> begins{0, 1000, 2000, 3000, 4000};
  // A message is through after 4 ms, and there 1 ms later.
  EXPECT_NEAR(simulate(schedules_of(Algorithm::ring, begins), link, 1, 4), 3 * (1e-3 + 4e-3), 1e-9);
  EXPECT_NEAR(simulate(schedules_of(Algorithm::recursive_doubling, begins), link, 1, 4), 2 * 1e-3 + 12e-3, 1e-9);
  EXPECT_NEAR(simulate(schedules_of(Algorithm::direct_exchange, begins), link, 1, 4), 1e-3 + 12e-3, 1e-9);
}

TEST(GatherCosts, TakeTheAlgorithmThatIsAskedForWhereItGathers) {
  const LinkCosts link;
  for (const Algorithm algorithm : all_gather_algorithms())
    EXPECT_EQ(choose_gather({0, 10, 20, 30}, 4, link, algorithm).algorithm, algorithm);
  EXPECT_GT(choose_gather({0, 10, 20, 30}, 4, link, Algorithm::double_binary_tree).seconds, 0);
}

/// What a rank gives: every bit pattern but those of numbers that are none, which may change on their way as bf16.
uint16_t pattern(int rank, size_t tensor, int64_t element, int step) {
  return static_cast<uint16_t>((rank * 7919 + static_cast<int>(tensor) * 131 + element * 31 + step * 17) & 0x7f7f);
}

void expect_gathers(const std::vector<std::string>& group, DType dtype, const std::vector<int64_t>& elements,
                    bool shared, const CollectivesOptions& options = {}) {
  run_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, options);
    const CollectiveSpec spec{"x", dtype, Reduction::sum, elements, CollectiveKind::all_gather};
    const CollectiveId id = collectives.prepare(spec);
    const auto units = static_cast<int64_t>(unpacked_size(dtype) / 2);  // of 16 bits in an element
    std::vector<int64_t> whole;
    for (const int64_t count : elements) whole.push_back(count * ranks.size());
    const Operands operands(collectives, dtype, whole, shared);
    const std::vector<void*>& tensors = operands.tensors;
    for (int step = 0; step < 3; ++step) {
      for (size_t t = 0; t < elements.size(); ++t) {
        auto* const own = static_cast<uint16_t*>(tensors[t]) + ranks.rank() * elements[t] * units;
        for (int64_t i = 0; i < elements[t] * units; ++i) own[i] = pattern(ranks.rank(), t, i, step);
      }
      collectives.start(id, tensors);
      collectives.wait(id);
      for (int rank = 0; rank < ranks.size(); ++rank)
        for (size_t t = 0; t < elements.size(); ++t) {
          const auto* const part = static_cast<const uint16_t*>(tensors[t]) + rank * elements[t] * units;
          for (int64_t i = 0; i < elements[t] * units; ++i)
            ASSERT_EQ(part[i], pattern(rank, t, i, step))
                << "on " << ranks.rank() << " of " << rank << " tensor " << t << " element " << i << " step " << step;
        }
    }
  });
}

class AllGather : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Groups, AllGather, testing::Range<size_t>(0, host_groups().size()));

TEST_P(AllGather, GivesAllPartsToAllInSharedMemory) {
  expect_gathers(host_groups()[GetParam()], DType::f32, {1000, 1, 0, 37, 20003}, true);
}
TEST_P(AllGather, GivesAllPartsToAllInForeignMemory) {
  expect_gathers(host_groups()[GetParam()], DType::i32, {1000, 1, 0, 37, 20003}, false);
}
TEST_P(AllGather, MovesNumbersOf16Bits) {
  expect_gathers(host_groups()[GetParam()], DType::bf16, {3, 2050, 11}, true);
  expect_gathers(host_groups()[GetParam()], DType::f16, {17000}, false);
}
TEST_P(AllGather, OfLittleIsDoneByWhoeverComesLast) {
  expect_gathers(host_groups()[GetParam()], DType::f32, {5, 2}, true);
  expect_gathers(host_groups()[GetParam()], DType::f32, {5, 2}, false);
}
TEST_P(AllGather, IsDoneByEachOfTheAlgorithms) {
  for (const Algorithm algorithm : all_gather_algorithms())
    expect_gathers(host_groups()[GetParam()], DType::f32, {777, 20000}, true, {.algorithm = algorithm});
}

TEST(AllGather, OfMoreThanAMessageTravelsInParts) {
  expect_gathers({"a", "b"}, DType::f32, {2'500'001}, false);
  expect_gathers({"a", "b", "c"}, DType::bf16, {2'500'001}, false, {.algorithm = Algorithm::recursive_doubling});
}

TEST(AllGather, RunsBesideAllReduce) {
  run_ranks({"a", "a", "b", "b"}, [&](Communicator& ranks) {
    Collectives collectives(ranks, {});
    const CollectiveId gather =
        collectives.prepare({"x", DType::f32, Reduction::sum, {5000}, CollectiveKind::all_gather});
    const CollectiveId reduce = collectives.prepare({"x", DType::f32, Reduction::sum, {5000}});
    ASSERT_NE(gather.index, reduce.index);
    const auto gathered = collectives.allocate(4 * 5000 * 4), reduced = collectives.allocate(5000 * 4);
    auto* const parts = reinterpret_cast<float*>(gathered.get());
    auto* const sums = reinterpret_cast<float*>(reduced.get());
    for (int64_t i = 0; i < 5000; ++i) parts[ranks.rank() * 5000 + i] = sums[i] = static_cast<float>(ranks.rank() + i);
    void *const to_gather = parts, *const to_reduce = sums;
    collectives.start(gather, std::span(&to_gather, 1));
    collectives.start(reduce, std::span(&to_reduce, 1));
    collectives.wait(reduce);
    collectives.wait(gather);
    for (int64_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(sums[i], static_cast<float>(6 + 4 * i));
      for (int rank = 0; rank < 4; ++rank) ASSERT_EQ(parts[rank * 5000 + i], static_cast<float>(rank + i));
    }
  });
}

TEST(AllGather, IsNamedWhereAPeerDoesSomethingElse) {
  LocalGroup group({"a", "a"});
  const auto errors = errors_of_ranks(group, [](Communicator& ranks) {
    Collectives collectives(ranks, {.silence_seconds = 0.3});
    const auto kind = ranks.rank() == 0 ? CollectiveKind::all_gather : CollectiveKind::all_reduce;
    const int64_t elements = ranks.rank() == 0 ? 20000 : 40000;  // of a part, and of the whole
    const CollectiveId id = collectives.prepare({"x", DType::f32, Reduction::sum, {elements}, kind});
    const auto memory = collectives.allocate(2 * 40000 * 4);
    void* const tensor = memory.get();
    collectives.start(id, std::span(&tensor, 1));
    collectives.wait(id);
  });
  EXPECT_NE((errors[0] + errors[1]).find("prepared another collective in its place"), std::string::npos)
      << errors[0] << "\n"
      << errors[1];
}

}  // namespace
}  // namespace weft::comm
