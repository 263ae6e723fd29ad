// Reduce-scatter: schedules symbolically, whatever the order in which messages come; what is sent and predicted; and
// ranks as threads on one host, on several, and on several with several ranks each.
#include "weft/comm/schedules/reduce_scatter.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/comm/host_groups.h"
#include "tests/comm/symbolic_run.h"
#include "weft/base/rng.h"
#include "weft/comm/links/choose.h"
#include "weft/comm/local/local_group.h"
#include "weft/comm/sum.h"

namespace weft::comm {
namespace {

std::vector<Schedule> schedules_of(Algorithm algorithm, const std::vector<int64_t>& begins, int64_t chunk) {
  std::vector<Schedule> schedules;
  for (int member = 0; member + 1 < static_cast<int>(begins.size()); ++member)
    schedules.push_back(make_reduce_scatter_schedule(algorithm, member, begins, chunk));
  return schedules;
}

class ReduceScatterSchedules : public testing::TestWithParam<std::tuple<Algorithm, int>> {};
INSTANTIATE_TEST_SUITE_P(AlgorithmsAndSizes, ReduceScatterSchedules,
                         testing::Combine(testing::ValuesIn(all_gather_algorithms()),
                                          testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9)));

TEST_P(ReduceScatterSchedules, GiveEveryMemberItsPieceOfEveryNumberOnce) {
  const auto [algorithm, size] = GetParam();
  std::map<int, int> once;
  for (int member = 0; member < size; ++member) once[member] = 1;
  for (const int64_t elements : {0, 1, 5})
    for (const int64_t chunk : {0, 1, 3, 1000})
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        const std::vector<int64_t> begins = uneven_pieces(size, elements);
        SymbolicRun run(schedules_of(algorithm, begins, chunk), seed);
        ASSERT_EQ(run.run(), "") << elements << " elements in chunks of " << chunk;
        for (size_t member = 0; member < static_cast<size_t>(size); ++member)
          for (auto i = static_cast<size_t>(begins[member]); i < static_cast<size_t>(begins[member + 1]); ++i)
            ASSERT_EQ(run.buffers()[member][i], once)
                << name_of(algorithm) << " element " << i << " in chunks of " << chunk;
      }
}

TEST_P(ReduceScatterSchedules, NothingIsAddedToWhileItIsSent) {
  const auto [algorithm, size] = GetParam();
  for (const int64_t chunk : {0, 3})
    for (const Schedule& schedule : schedules_of(algorithm, uneven_pieces(size, 10), chunk))
      EXPECT_EQ(find_conflict(schedule), "") << name_of(algorithm) << " of " << size;
}

TEST_P(ReduceScatterSchedules, SendTheLeastPossible) {
  const auto [algorithm, size] = GetParam();
  std::vector<int64_t> begins;
  for (int member = 0; member <= size; ++member) begins.push_back(100 * member);
  for (const Schedule& schedule : schedules_of(algorithm, begins, 30)) {
    int64_t sent = 0;
    for (const Action& action : schedule.actions) {
      EXPECT_LT(action.slot, schedule.slots);
      if (action.kind == ActionKind::send) sent += action.end - action.begin;
    }
    EXPECT_EQ(sent, 100 * (size - 1));
  }
}

TEST(ReduceScatterCosts, AreTheFormulas) {
  const LinkCosts link{.latency_seconds = 1e-3, .bytes_per_second = 1e6, .message_seconds = 0};
  const std::vector<int64_t> begins{0, 1000, 2000, 3000, 4000};
  // A piece of 4000 bytes is through after 4 ms, and there 1 ms later.
  EXPECT_NEAR(simulate(schedules_of(Algorithm::ring, begins, 0), link, 1e30, 4), 3 * (1e-3 + 4e-3), 1e-9);
  EXPECT_NEAR(simulate(schedules_of(Algorithm::recursive_doubling, begins, 0), link, 1e30, 4), 2 * 1e-3 + 12e-3, 1e-9);
  EXPECT_NEAR(simulate(schedules_of(Algorithm::direct_exchange, begins, 0), link, 1e30, 4), 1e-3 + 12e-3, 1e-9);
  // Sums of the ring follow each other.
  EXPECT_NEAR(simulate(schedules_of(Algorithm::ring, begins, 0), link, 1e6, 4), 3 * (1e-3 + 4e-3 + 1e-3), 1e-9);
}

TEST(ReduceScatterCosts, ChunksHideTheSumsOfARing) {
  const LinkCosts link{.latency_seconds = 1e-5, .bytes_per_second = 1e9, .message_seconds = 1e-6};
  const std::vector<int64_t> begins{0, 1 << 20, 2 << 20};
  const Choice choice = choose_reduce_scatter(begins, 4, link, 2e9, Algorithm::ring);
  const double whole = simulate(schedules_of(Algorithm::ring, begins, 0), link, 2e9 / 4, 4);
  EXPECT_LT(choice.seconds, 0.8 * whole);
  EXPECT_LT(choice.chunk, 1 << 20);
}

TEST(ReduceScatterCosts, TakeTheAlgorithmThatIsAskedForWhereItScatters) {
  const LinkCosts link;
  for (const Algorithm algorithm : all_gather_algorithms())
    EXPECT_EQ(choose_reduce_scatter({0, 10, 20, 30}, 4, link, 1e9, algorithm).algorithm, algorithm);
  EXPECT_GT(choose_reduce_scatter({0, 10, 20, 30}, 4, link, 1e9, Algorithm::double_binary_tree).seconds, 0);
}

/// Whole numbers so small that sums of a few of them are exact in bf16 too.
float number_of(int rank, size_t tensor, int64_t element, int step) {
  return static_cast<float>((rank + 1) * ((element + 3 * static_cast<int64_t>(tensor) + step) % 7));
}

void write_number(DType dtype, void* tensor, int64_t at, float value) {
  narrow_from_f32(dtype, &value, static_cast<std::byte*>(tensor) + byte_size(dtype, at), 1);
}
float read_number(DType dtype, const void* tensor, int64_t at) {
  float value = 0;
  widen_to_f32(dtype, static_cast<const std::byte*>(tensor) + byte_size(dtype, at), &value, 1);
  return value;
}

void expect_scatters(const std::vector<std::string>& group, DType dtype, const std::vector<int64_t>& elements,
                     bool shared, const CollectivesOptions& options = {}, Reduction reduction = Reduction::sum) {
  run_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, options);
    const CollectiveId id = collectives.prepare({"x", dtype, reduction, elements, CollectiveKind::reduce_scatter});
    std::vector<int64_t> whole = elements;
    for (int64_t& count : whole) count *= ranks.size();
    const Operands operands(collectives, dtype, whole, shared);
    for (int step = 0; step < 3; ++step) {
      for (size_t t = 0; t < whole.size(); ++t)
        for (int64_t i = 0; i < whole[t]; ++i)
          write_number(dtype, operands.tensors[t], i, number_of(ranks.rank(), t, i, step));
      collectives.start(id, operands.tensors);
      collectives.wait(id);
      for (size_t t = 0; t < whole.size(); ++t)
        for (int64_t i = ranks.rank() * elements[t]; i < (ranks.rank() + 1) * elements[t]; ++i) {
          float wanted = 0;
          for (int rank = 0; rank < ranks.size(); ++rank) wanted += number_of(rank, t, i, step);
          if (reduction == Reduction::mean) wanted *= 1.0f / static_cast<float>(ranks.size());
          ASSERT_EQ(read_number(dtype, operands.tensors[t], i), wanted)
              << "on " << ranks.rank() << " tensor " << t << " element " << i << " step " << step;
        }
    }
  });
}

class ReduceScatter : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Groups, ReduceScatter, testing::Range<size_t>(0, host_groups().size()));

TEST_P(ReduceScatter, GivesEachRankItsPartInSharedMemory) {
  expect_scatters(host_groups()[GetParam()], DType::f32, {1000, 1, 0, 37, 20003}, true);
}
TEST_P(ReduceScatter, GivesEachRankItsPartInForeignMemory) {
  expect_scatters(host_groups()[GetParam()], DType::f32, {1000, 1, 0, 37, 20003}, false);
}
TEST_P(ReduceScatter, SumsBf16) {
  expect_scatters(host_groups()[GetParam()], DType::bf16, {3, 2050, 11}, true);
  expect_scatters(host_groups()[GetParam()], DType::bf16, {17000}, false);
}
TEST_P(ReduceScatter, OfLittleIsDoneByWhoeverComesLast) {
  expect_scatters(host_groups()[GetParam()], DType::f32, {5, 2}, true);
  expect_scatters(host_groups()[GetParam()], DType::f32, {5, 2}, false);
}
TEST_P(ReduceScatter, OfOneTensorIsSummedWhereItLies) {
  expect_scatters(host_groups()[GetParam()], DType::f32, {64}, true);
  expect_scatters(host_groups()[GetParam()], DType::f32, {64 * 321}, true, {}, Reduction::mean);
}
TEST_P(ReduceScatter, TakesTheMean) {
  expect_scatters(host_groups()[GetParam()], DType::f32, {777, 20000}, true, {}, Reduction::mean);
}
TEST_P(ReduceScatter, IsDoneByEachOfTheAlgorithms) {
  for (const Algorithm algorithm : all_gather_algorithms())
    expect_scatters(host_groups()[GetParam()], DType::f32, {777, 20000}, true, {.algorithm = algorithm});
}

TEST(ReduceScatter, GivesTheBitsOfAnAllReduceOnAHost) {
  run_ranks({"a", "a", "a"}, [&](Communicator& ranks) {
    constexpr int64_t kPart = 12345;
    Collectives collectives(ranks, {});
    const CollectiveId scatter =
        collectives.prepare({"x", DType::f32, Reduction::mean, {kPart}, CollectiveKind::reduce_scatter});
    const CollectiveId reduce = collectives.prepare({"x", DType::f32, Reduction::mean, {3 * kPart}});
    const Operands operands(collectives, DType::f32, {3 * kPart, 3 * kPart}, true);
    auto* const scattered = static_cast<float*>(operands.tensors[0]);
    auto* const reduced = static_cast<float*>(operands.tensors[1]);
    RandomStream random(static_cast<uint64_t>(ranks.rank() + 1));
    for (int64_t i = 0; i < 3 * kPart; ++i) scattered[i] = reduced[i] = random.uniform() - 0.5f;
    collectives.start(scatter, std::span(&operands.tensors[0], 1));
    collectives.start(reduce, std::span(&operands.tensors[1], 1));
    collectives.wait(scatter);
    collectives.wait(reduce);
    EXPECT_EQ(std::memcmp(scattered + ranks.rank() * kPart, reduced + ranks.rank() * kPart, 4 * kPart), 0);
  });
}

TEST(ReduceScatter, IsTheTransposeOfAllGather) {
  for (const std::vector<std::string>& group : host_groups()) {
    std::vector<double> there(group.size()), back(group.size());
    run_ranks(group, [&](Communicator& ranks) {
      constexpr int64_t kPart = 100;
      Collectives collectives(ranks, {});
      const CollectiveId gather =
          collectives.prepare({"x", DType::f32, Reduction::sum, {kPart}, CollectiveKind::all_gather});
      const CollectiveId scatter =
          collectives.prepare({"y", DType::f32, Reduction::sum, {kPart}, CollectiveKind::reduce_scatter});
      const int64_t whole = kPart * ranks.size(), own = kPart * ranks.rank();
      const Operands operands(collectives, DType::f32, {whole, whole}, true);
      auto* const x = static_cast<float*>(operands.tensors[0]);
      auto* const y = static_cast<float*>(operands.tensors[1]);
      RandomStream random(static_cast<uint64_t>(ranks.rank() + 1));
      std::vector<float> mine(kPart), weights(static_cast<size_t>(whole));
      for (float& value : mine) value = random.uniform() - 0.5f;
      for (float& value : weights) value = random.uniform() - 0.5f;
      std::copy(mine.begin(), mine.end(), x + own);
      std::copy(weights.begin(), weights.end(), y);
      collectives.reduce(gather, std::span(&operands.tensors[0], 1));
      collectives.reduce(scatter, std::span(&operands.tensors[1], 1));
      for (int64_t i = 0; i < whole; ++i)
        there[static_cast<size_t>(ranks.rank())] += double{x[i]} * double{weights[static_cast<size_t>(i)]};
      for (int64_t i = 0; i < kPart; ++i)
        back[static_cast<size_t>(ranks.rank())] += double{y[own + i]} * double{mine[static_cast<size_t>(i)]};
    });
    double sum_there = 0, sum_back = 0;
    for (size_t rank = 0; rank < group.size(); ++rank) {
      sum_there += there[rank];
      sum_back += back[rank];
    }
    EXPECT_NEAR(sum_there, sum_back, 1e-4);
  }
}

}  // namespace
}  // namespace weft::comm
