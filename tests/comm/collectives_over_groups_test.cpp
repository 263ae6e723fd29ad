// Ranks as threads whose hosts stand behind two switches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>

#include "tests/comm/host_groups.h"
#include "tests/comm/two_switches.h"
#include "weft/comm/collectives.h"
#include "weft/comm/local/local_group.h"

namespace weft::comm {
namespace {

CollectivesOptions over_two_switches(int hosts, std::optional<Algorithm> algorithm = {}) {
  CollectivesOptions options;
  options.costs.between_hosts = kFar;
  options.costs.topology = two_switches(hosts);
  options.algorithm = algorithm;
  return options;
}

float number_of(int rank, int64_t element) { return static_cast<float>((rank + 1) * (element % 7)); }

/// Over hosts in turn on two switches, all kinds of collectives: whole numbers, so that the order of sums is nothing.
void expect_right_over_two_switches(const std::vector<std::string>& group, const CollectivesOptions& options) {
  constexpr int64_t kElements = 30'000;
  std::mutex mutex;
  std::set<std::string> descriptions;
  run_ranks(group, [&](Communicator& ranks) {
    Collectives collectives(ranks, options);
    const int size = ranks.size();
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::broadcast, CollectiveKind::reduce}) {
      const int root = size - 1;
      const CollectiveSpec spec{"x", DType::f32, Reduction::sum, {kElements}, kind, has_root(kind) ? root : 0};
      const CollectiveId id = collectives.prepare(spec);
      const int64_t whole = has_parts(kind) ? kElements * size : kElements;
      const Operands operands(collectives, DType::f32, {whole}, true);
      auto* const values = static_cast<float*>(operands.tensors[0]);
      for (int64_t i = 0; i < whole; ++i) values[i] = number_of(ranks.rank(), i);
      collectives.start(id, operands.tensors);
      collectives.wait(id);
      const int64_t own = ranks.rank() * kElements;
      if (kind == CollectiveKind::reduce && ranks.rank() != root) continue;
      for (int64_t i = 0; i < whole; ++i) {
        float expected = 0;
        if (kind == CollectiveKind::all_gather)
          expected = number_of(static_cast<int>(i / kElements), i);
        else if (kind == CollectiveKind::broadcast)
          expected = number_of(root, i);
        else
          for (int rank = 0; rank < size; ++rank) expected += number_of(rank, i);
        if (kind == CollectiveKind::reduce_scatter && (i < own || i >= own + kElements)) continue;
        ASSERT_EQ(values[i], expected) << name_of(kind) << " rank " << ranks.rank() << " element " << i;
      }
      const std::lock_guard lock(mutex);
      descriptions.insert(collectives.describe(id));
    }
  });
  // Ranks of hosts with fewer of them say so; how it goes between hosts all say alike.
  const auto says = [&](const char* text) {
    return std::any_of(descriptions.begin(), descriptions.end(),
                       [&](const std::string& one) { return one.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("in 2 groups")) << *descriptions.begin();
  EXPECT_TRUE(options.algorithm || says(", in the order 0 2")) << *descriptions.begin();
}

TEST(CollectivesOverGroups, GiveTheSameAsOverEqualLinks) {
  expect_right_over_two_switches({"a", "b", "c", "d"}, over_two_switches(4));
  expect_right_over_two_switches({"a", "a", "b", "b", "c", "c", "d", "d"}, over_two_switches(4));
  expect_right_over_two_switches({"a", "b", "c", "d", "e"}, over_two_switches(5));
  expect_right_over_two_switches({"a", "b", "c", "d", "e", "f"}, over_two_switches(6));
}

TEST(CollectivesOverGroups, GiveTheSameByEachAlgorithm) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling,
                                    Algorithm::double_binary_tree, Algorithm::direct_exchange, Algorithm::hierarchical})
    expect_right_over_two_switches({"a", "b", "c", "d"}, over_two_switches(4, algorithm));
}

TEST(CollectivesOverGroups, GiveAllRanksTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::mutex mutex;
    std::vector<std::vector<std::byte>> results;
    run_ranks({"a", "b", "c", "d"}, [&](Communicator& ranks) {
      Collectives collectives(ranks, over_two_switches(4));
      const CollectiveId id = collectives.prepare({"x", dtype, Reduction::mean, {70'003}});
      const Operands operands(collectives, dtype, {70'003}, true);
      auto* const bytes = static_cast<std::byte*>(operands.tensors[0]);
      for (int64_t i = 0; i < 70'003; ++i) {
        const float value = std::sin(static_cast<float>(ranks.rank() * 7919 + i));
        if (dtype == DType::f32)
          std::memcpy(bytes + 4 * i, &value, 4);
        else
          std::memcpy(bytes + 2 * i, reinterpret_cast<const char*>(&value) + 2, 2);
      }
      collectives.start(id, operands.tensors);
      collectives.wait(id);
      const std::lock_guard lock(mutex);
      results.emplace_back(bytes, bytes + 70'003 * unpacked_size(dtype));
    });
    for (const auto& result : results) EXPECT_EQ(result, results.front());
  }
}

TEST(CollectivesOverGroups, InTreeOrderKeepTheHostsOrder) {
  run_ranks({"a", "b", "c", "d"}, [&](Communicator& ranks) {
    CollectivesOptions options = over_two_switches(4);
    options.in_tree_order = true;
    Collectives collectives(ranks, options);
    const CollectiveId id = collectives.prepare({"x", DType::f32, Reduction::sum, {100'000}});
    EXPECT_TRUE(collectives.report(id).between.order.empty());
    EXPECT_NE(collectives.report(id).between.algorithm, Algorithm::hierarchical);
  });
}

}  // namespace
}  // namespace weft::comm
