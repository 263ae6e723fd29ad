// What collectives will take of memory, said before any rank prepares them.
#include "weft/comm/collective_planner.h"

#include <gtest/gtest.h>

#include <atomic>
#if defined(__linux__)
#include <dlfcn.h>
#include <sys/mman.h>
#endif

// A sanitizer has an allocator of its own. GCC defines a macro for it, clang a feature.
#if !defined(__linux__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#define WEFT_COUNTS_ALLOCATIONS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define WEFT_COUNTS_ALLOCATIONS 1
#endif

#include "weft/comm/exchange.h"
#include "weft/comm/local/local_group.h"

namespace weft::comm {
namespace {

constexpr int64_t kElements = 3 << 20;

CollectiveSpec spec_of(CollectiveKind kind, DType dtype, std::vector<int64_t> elements) {
  return {.name = "'w'", .dtype = dtype, .elements = std::move(elements), .kind = kind};
}

std::vector<CollectiveSpec> specs() {
  std::vector<CollectiveSpec> specs;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::broadcast, CollectiveKind::reduce}) {
      specs.push_back(spec_of(kind, dtype, {kElements}));
      specs.push_back(spec_of(kind, dtype, {kElements / 2 + 5, 100, 70'000}));
    }
  return specs;
}

#if WEFT_COUNTS_ALLOCATIONS
std::atomic<int64_t> aligned_bytes = 0;  // allocated so far, by all threads

}  // namespace
}  // namespace weft::comm

// Every buffer of weft comes through one of these (allocate_aligned), large ones through the second; the allocator's
// own figures count gaps as well.
extern "C" int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  using Function = int (*)(void**, size_t, size_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "posix_memalign"));
  weft::comm::aligned_bytes += static_cast<int64_t>(bytes);
  return real(memory, alignment, bytes);
}
extern "C" int madvise(void* memory, size_t bytes, int advice) noexcept {
  using Function = int (*)(void*, size_t, int);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "madvise"));
  if (advice == MADV_HUGEPAGE) weft::comm::aligned_bytes += static_cast<int64_t>(bytes);
  return real(memory, bytes, advice);
}

namespace weft::comm {
namespace {

TEST(CollectivePlanner, SaysWhatPreparationsAllocate) {
  const std::vector<std::vector<std::string>> groups = {{"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d"}};
  for (const std::vector<std::string>& hosts : groups)
    for (const CollectiveSpec& spec : specs()) {
      int64_t before = 0, after = 0;
      std::atomic<int64_t> planned = 0;
      run_ranks(hosts, [&](Communicator& ranks) {
        Collectives collectives(ranks, {});
        planned += collectives.buffer_bytes(spec);
        barrier(ranks, "before");
        if (ranks.rank() == 0) before = aligned_bytes;
        barrier(ranks, "begin");
        collectives.prepare(spec);
        barrier(ranks, "end");
        if (ranks.rank() == 0) after = aligned_bytes;
        barrier(ranks, "after");
      });
      // Runners that need no buffer have one of the least size.
      EXPECT_NEAR(static_cast<double>(after - before), static_cast<double>(planned), 1e4)
          << name_of(spec.kind) << " of " << name_of(spec.dtype) << " over " << hosts.size() << " hosts";
      EXPECT_TRUE(planned > 0 || !has_sums(spec.kind)) << name_of(spec.kind);
    }
}
#endif

TEST(CollectivePlanner, NeedsNothingForRanksOfOneHost) {
  const CollectivePlanner planner({{.host = "a", .local_rank = 0}, {.host = "a", .local_rank = 1}}, 0, false, {});
  for (const CollectiveSpec& spec : specs()) EXPECT_EQ(planner.buffer_bytes(spec), 0);
}

TEST(CollectivePlanner, GivesBuffersToTheRanksThatCarryShares) {
  std::vector<Member> members;
  for (int rank = 0; rank < 5; ++rank) members.push_back({.host = {}, .host_index = rank / 3, .local_rank = rank % 3});
  const CollectiveSpec spec = spec_of(CollectiveKind::all_reduce, DType::f32, {kElements});
  const auto bytes = [&](int rank) { return CollectivePlanner(members, rank, false, {}).buffer_bytes(spec); };
  EXPECT_GT(bytes(0), 4 * kElements / 2);
  EXPECT_GT(bytes(1), 4 * kElements / 2);
  EXPECT_EQ(bytes(2), 0) << "the other host has two ranks";
}

TEST(CollectivePlanner, SumsTensorsOfRanksThatAreAloneInTheirPlaces) {
  const std::vector<Member> members = {{.host = "a", .host_index = 0}, {.host = "b", .host_index = 1}};
  const CollectivePlanner planner(members, 0, false, {});
  const LanePlan one = planner.plan(planner.layout_of(spec_of(CollectiveKind::all_reduce, DType::f32, {kElements})));
  EXPECT_EQ(one.lane_elements, 0);
  const LanePlan narrow =
      planner.plan(planner.layout_of(spec_of(CollectiveKind::all_reduce, DType::bf16, {kElements})));
  EXPECT_EQ(narrow.lane_elements, kElements);
}

}  // namespace
}  // namespace weft::comm
