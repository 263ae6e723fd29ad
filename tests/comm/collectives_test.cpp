// All-reduce over ranks that are threads: on one host, on several, and on several with several ranks each.
#include "weft/comm/collectives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "tests/comm/host_groups.h"
#include "tests/support/files_for_tests.h"
#include "weft/base/rng.h"
#include "weft/comm/local/local_group.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {
namespace {

/// Small whole numbers, whose sums are exact in any order, also in bf16.
float value_of(int rank, size_t tensor, int64_t element) {
  return static_cast<float>((rank * 5 + static_cast<int>(tensor) * 3 + element % 7) % 8);
}

void set(const CollectiveSpec& spec, void* tensor, int64_t element, float value) {
  if (spec.dtype == DType::bf16)
    static_cast<uint16_t*>(tensor)[element] = f32_to_bf16(value);
  else if (spec.dtype == DType::f16)
    static_cast<uint16_t*>(tensor)[element] = f32_to_f16(value);
  else
    static_cast<float*>(tensor)[element] = value;
}

float get(const CollectiveSpec& spec, const void* tensor, int64_t element) {
  if (spec.dtype == DType::bf16) return bf16_to_f32(static_cast<const uint16_t*>(tensor)[element]);
  if (spec.dtype == DType::f16) return f16_to_f32(static_cast<const uint16_t*>(tensor)[element]);
  return static_cast<const float*>(tensor)[element];
}

void expect_reduces(const std::vector<std::string>& group, const CollectiveSpec& spec, bool shared,
                    const CollectivesOptions& options = {}) {
  const int size = static_cast<int>(group.size());
  run_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, options);
    const CollectiveId id = collectives.prepare(spec);
    const Operands operands(collectives, spec.dtype, spec.elements, shared);
    for (int step = 0; step < 3; ++step) {
      for (size_t t = 0; t < spec.elements.size(); ++t)
        for (int64_t i = 0; i < spec.elements[t]; ++i)
          set(spec, operands.tensors[t], i, value_of(ranks.rank() + step, t, i));
      collectives.start(id, operands.tensors);
      collectives.wait(id);
      for (size_t t = 0; t < spec.elements.size(); ++t)
        for (int64_t i = 0; i < spec.elements[t]; ++i) {
          float expected = 0;
          for (int rank = 0; rank < size; ++rank) expected += value_of(rank + step, t, i);
          if (spec.reduction == Reduction::mean) expected *= 1.0f / static_cast<float>(size);
          if (spec.dtype == DType::bf16) expected = bf16_to_f32(f32_to_bf16(expected));
          if (spec.dtype == DType::f16) expected = f16_to_f32(f32_to_f16(expected));
          ASSERT_EQ(get(spec, operands.tensors[t], i), expected)
              << "rank " << ranks.rank() << " step " << step << " tensor " << t << " element " << i;
        }
    }
  });
}

class AllReduce : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Groups, AllReduce, testing::Range<size_t>(0, host_groups().size()));

TEST_P(AllReduce, SumsF32InSharedMemory) {
  expect_reduces(host_groups()[GetParam()], {"x", DType::f32, Reduction::sum, {1000, 1, 0, 37, 5003}}, true);
}
TEST_P(AllReduce, SumsF32InForeignMemory) {
  expect_reduces(host_groups()[GetParam()], {"x", DType::f32, Reduction::sum, {1000, 1, 0, 37, 5003}}, false);
}
TEST_P(AllReduce, AveragesBf16) {
  expect_reduces(host_groups()[GetParam()], {"x", DType::bf16, Reduction::mean, {3, 2050, 11}}, true);
}
TEST_P(AllReduce, AveragesF16) {
  expect_reduces(host_groups()[GetParam()], {"x", DType::f16, Reduction::mean, {3, 2050, 11}}, true);
}
TEST_P(AllReduce, HasNothingToDoWithoutElements) {
  expect_reduces(host_groups()[GetParam()], {"x", DType::f32, Reduction::sum, {0}}, true);
}
/// So slow that a message of 64 KB holds the link for long.
CollectivesOptions over_slow_links() {
  CollectivesOptions options;
  options.costs.between_hosts.bytes_per_second = 1e6;
  return options;
}

TEST_P(AllReduce, TravelsInPartsOverSlowLinks) {
  // Small tensors that share a part, one that makes several, small ones again.
  const std::vector<int64_t> elements = {7, 40001, 0, 300001, 64, 20000, 1};
  for (const bool shared : {true, false}) {
    expect_reduces(host_groups()[GetParam()], {"x", DType::f32, Reduction::mean, elements}, shared, over_slow_links());
    expect_reduces(host_groups()[GetParam()], {"x", DType::bf16, Reduction::sum, elements}, shared, over_slow_links());
  }
}

TEST_P(AllReduce, IsLargerThanAnyChunk) {
  expect_reduces(host_groups()[GetParam()], {"x", DType::f32, Reduction::sum, {300001, 70001}}, true);
}

TEST_P(AllReduce, GivesAllRanksTheSameBits) {
  std::mutex mutex;
  std::map<int, std::vector<uint32_t>> results;
  run_ranks(host_groups()[GetParam()], [&](Communicator& ranks) {
    Collectives collectives(ranks, {});
    const CollectiveSpec spec{"x", DType::f32, Reduction::mean, {1003}};
    const CollectiveId id = collectives.prepare(spec);
    const Operands operands(collectives, spec.dtype, spec.elements, true);
    for (int64_t i = 0; i < 1003; ++i)
      set(spec, operands.tensors[0], i,
          std::ldexp(static_cast<float>(std::sin(ranks.rank() * 7919.0 + static_cast<double>(i))),
                     (ranks.rank() * 5) % 11));
    collectives.start(id, operands.tensors);
    collectives.wait(id);
    std::vector<uint32_t> bits(1003);
    std::memcpy(bits.data(), operands.tensors[0], 4 * bits.size());
    const std::lock_guard lock(mutex);
    results[ranks.rank()] = bits;
  });
  for (const auto& [rank, bits] : results) EXPECT_EQ(bits, results[0]) << rank;
}

TEST_P(AllReduce, SeveralUnderWayFinishInAnyOrder) {
  run_ranks(host_groups()[GetParam()], [&](Communicator& ranks) {
    Collectives collectives(ranks, {});
    std::vector<CollectiveSpec> specs;
    std::vector<CollectiveId> ids;
    std::vector<Operands> operands;
    for (int k = 0; k < 6; ++k) {
      specs.push_back({"x" + std::to_string(k), DType::f32, Reduction::sum, {100 * k + 1, 17}});
      ids.push_back(collectives.prepare(specs.back()));
      operands.emplace_back(collectives, specs.back().dtype, specs.back().elements, k % 2 == 0);
    }
    for (int step = 0; step < 3; ++step) {
      for (size_t k = 0; k < specs.size(); ++k) {
        for (size_t t = 0; t < 2; ++t)
          for (int64_t i = 0; i < specs[k].elements[t]; ++i)
            set(specs[k], operands[k].tensors[t], i, static_cast<float>(ranks.rank() + step) + static_cast<float>(k));
        collectives.start(ids[k], operands[k].tensors);
      }
      for (const size_t k : {3u, 0u, 5u, 1u, 4u, 2u}) {
        collectives.wait(ids[k]);
        const int size = ranks.size();
        const auto expected = static_cast<float>(size * (size - 1) / 2 + size * step + size * static_cast<int>(k));
        for (size_t t = 0; t < 2; ++t)
          for (int64_t i = 0; i < specs[k].elements[t]; ++i)
            ASSERT_EQ(get(specs[k], operands[k].tensors[t], i), expected) << k << " " << t << " " << i;
      }
    }
  });
}

TEST(Collectives, EqualSpecsAreTheSameCollective) {
  run_ranks({"a"}, [](Communicator& ranks) {
    Collectives collectives(ranks, {});
    const CollectiveSpec spec{"x", DType::f32, Reduction::sum, {4}};
    CollectiveSpec other = spec;
    other.reduction = Reduction::mean;
    const CollectiveId first = collectives.prepare(spec);
    EXPECT_NE(collectives.prepare(other).index, first.index);
    EXPECT_EQ(collectives.prepare(spec).index, first.index);
  });
}

TEST(Collectives, SumsBf16InF32) {
  // 256 + 1 is 256 in bf16, so that one rounding per addition would lose all three ones.
  run_ranks({"a", "a", "a", "a"}, [](Communicator& ranks) {
    Collectives collectives(ranks, {});
    const CollectiveSpec spec{"x", DType::bf16, Reduction::sum, {1}};
    const CollectiveId id = collectives.prepare(spec);
    const Operands operands(collectives, spec.dtype, spec.elements, true);
    set(spec, operands.tensors[0], 0, ranks.rank() == 0 ? 256.0f : 1.0f);
    collectives.start(id, operands.tensors);
    collectives.wait(id);
    EXPECT_EQ(get(spec, operands.tensors[0], 0), 260.0f);
  });
}

class Algorithms : public testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(All, Algorithms, testing::ValuesIn(all_algorithms()));

TEST_P(Algorithms, ReduceBetweenHosts) {
  for (const auto& group : {host_groups()[2], host_groups()[4], host_groups()[6], host_groups()[9], host_groups()[10]})
    for (const DType dtype : {DType::f32, DType::bf16})
      expect_reduces(group, {"x", dtype, Reduction::sum, {50'000, 3, 777}}, true, {.algorithm = GetParam()});
}

/// Two ranks, of which each starts and awaits another collective: what they threw.
std::vector<std::string> start_different_ones(LocalGroup& group, const CollectivesOptions& options) {
  return errors_of_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, options);
    std::vector<CollectiveId> ids;
    for (const char* name : {"first", "second"})
      ids.push_back(collectives.prepare({name, DType::f32, Reduction::sum, {100}}));
    const auto memory = collectives.allocate(400);
    void* const tensor = memory.get();
    const CollectiveId id = ids[static_cast<size_t>(ranks.rank())];
    collectives.start(id, std::span(&tensor, 1));
    collectives.wait(id);
  });
}

TEST(Collectives, DoNotWaitForEverWhereAnotherHostStartsSomethingElse) {
  LocalGroup group({"a", "b"});
  const auto errors = start_different_ones(group, {.silence_seconds = 0.3, .wait_seconds = 1});
  EXPECT_NE((errors[0] + errors[1]).find("did not come within"), std::string::npos) << errors[0] << errors[1];
}

TEST(Collectives, NameTheCollectiveThatAPeerOfTheHostStartedInstead) {
  LocalGroup group({"a", "a"});
  const auto errors = start_different_ones(group, {.silence_seconds = 0.3});
  const bool first_named = errors[0].find("[all_reduce] 'first': rank 1 on host 'a' started 'second'") == 0;
  const bool second_named = errors[1].find("[all_reduce] 'second': rank 0 on host 'a' started 'first'") == 0;
  EXPECT_TRUE(first_named || second_named) << errors[0] << "\n" << errors[1];
}

TEST(Collectives, AddNeighboursFirstWhateverTheirMemory) {
  // From the left, or in pairs of another kind, 1e8 would swallow the ones: (1e8 + 1) + (-1e8 + 1) is 0 in f32.
  for (const bool shared : {true, false})
    for (const int64_t elements : {1, 100'000})
      run_ranks({"a", "a", "a", "a"}, [&](Communicator& ranks) {
        Collectives collectives(ranks, {});
        const CollectiveSpec spec{"x", DType::f32, Reduction::sum, {elements}};
        const CollectiveId id = collectives.prepare(spec);
        const Operands operands(collectives, spec.dtype, spec.elements, shared);
        const float of_rank[] = {1e8f, 1, -1e8f, 1};
        for (int64_t i = 0; i < elements; ++i) set(spec, operands.tensors[0], i, of_rank[ranks.rank()]);
        collectives.start(id, operands.tensors);
        collectives.wait(id);
        EXPECT_EQ(get(spec, operands.tensors[0], elements - 1), (1e8f + 1) + (-1e8f + 1));
      });
}

TEST(Collectives, ReportHowTheyAreDone) {
  run_ranks({"a", "a", "b", "b", "b"}, [](Communicator& ranks) {
    Collectives collectives(ranks, {});
    const auto report = collectives.report(collectives.prepare({"x", DType::f32, Reduction::sum, {1 << 20}}));
    EXPECT_EQ(report.hosts, 2);
    EXPECT_EQ(report.lanes, 2);
    EXPECT_EQ(report.ranks_on_host, ranks.rank() < 2 ? 2 : 3);
    // Half of 4 MB each way over half of the link: at least as long as 4 MB at its full speed.
    EXPECT_GT(report.between.seconds, 4.0 * (1 << 20) / 1.2e9);
    EXPECT_GT(report.predicted_seconds, report.between.seconds);
  });
}

TEST(Collectives, ArePredictedAlikeOnAllRanks) {
  const std::vector<std::string> group{"a", "a", "b"};
  std::vector<std::pair<double, double>> seconds(group.size());
  run_ranks(group, [&](Communicator& ranks) {
    const Collectives collectives(ranks, {});
    seconds[static_cast<size_t>(ranks.rank())] = {collectives.predict_seconds(DType::f32, 1 << 20),
                                                  collectives.predict_gather_seconds(DType::f32, 1 << 20)};
  });
  EXPECT_EQ(seconds[1], seconds[0]);
  EXPECT_EQ(seconds[2], seconds[0]);
}

class LostRank : public testing::TestWithParam<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(Hosts, LostRank,
                         testing::Values(std::vector<std::string>{"a", "a", "a"},
                                         std::vector<std::string>{"a", "b", "c"}));

TEST_P(LostRank, IsNamedWithTensorsAndPosition) {
  LocalGroup group(GetParam());
  const auto errors = errors_of_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, {.silence_seconds = 0.2});
    const CollectiveId id = collectives.prepare({"conv1.weight, fc.bias", DType::f32, Reduction::sum, {10000}});
    const auto memory = collectives.allocate(40000);
    void* const tensor = memory.get();
    for (int step = 0; step < 5; ++step) {
      if (ranks.rank() == 1 && step == 3) {
        group.silence(1);
        return;
      }
      collectives.set_position("step " + std::to_string(step) + " of epoch 2");
      collectives.start(id, std::span(&tensor, 1));
      collectives.wait(id);
    }
  });
  int named = 0;
  for (const int rank : {0, 2}) {
    const std::string& error = errors[static_cast<size_t>(rank)];
    for (const char* text : {"[all_reduce] 'conv1.weight, fc.bias' at step 3 of epoch 2", "no sign of life"})
      EXPECT_NE(error.find(text), std::string::npos) << rank << ": " << error;
    named += error.find("rank 1 on host") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(named, 2);
}

TEST(Collectives, AStartWithoutAWaitIsRefused) {
  expect_error(
      [] {
        run_ranks({"a"}, [](Communicator& ranks) {
          Collectives collectives(ranks, {});
          const CollectiveId id = collectives.prepare({"x", DType::f32, Reduction::sum, {4}});
          const auto memory = collectives.allocate(16);
          void* const tensor = memory.get();
          collectives.start(id, std::span(&tensor, 1));
          collectives.start(id, std::span(&tensor, 1));
        });
      },
      ErrorKind::internal, {"before it was awaited"});
}

}  // namespace
}  // namespace weft::comm
