#include "weft/cpu/tuned_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "weft/base/error.h"
#include "weft/cpu/measure_kernels.h"
#include "weft/device/function_kernel.h"
#include "weft/graph/signature_key.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// relu by a slow kernel, which comes first, by a fast one, and by one that only alternatives offer.
class TunedBackendTest : public testing::Test {
 protected:
  TunedBackendTest() {
    table_.add("relu", {"native", kernel("slow", 3)});
    table_.add("relu", {"onednn", kernel("fast", 0)});
    table_.add("relu", {"reference", kernel("reference", 0)});
    table_.add("exp", {"native", kernel("alone", 0)});
  }
  KernelFactory kernel(const std::string& name, int milliseconds) {
    return function_kernel(name, [this, milliseconds](const NodeSignature&, const KernelOptions&) -> KernelBody {
      return [this, milliseconds](const KernelArguments&) {
        ++calls_;
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      };
    });
  }
  NodeSignature node(const std::string& op, int64_t size = 4) const {
    const TensorType type{DType::f32, {size}, {}};
    return {&registry_.get(op), "node", {type}, {type}, {}};
  }
  static std::vector<KernelTime> times_of(const TunedBackend& backend, const NodeSignature& node) {
    const KernelTimes chosen = backend.chosen();
    const auto found = chosen.find(signature_key(node));
    return found == chosen.end() ? std::vector<KernelTime>() : found->second;
  }
  static std::vector<std::string> names(const std::vector<KernelTime>& times) {
    std::vector<std::string> all;
    for (const KernelTime& time : times) all.push_back(time.kernel);
    return all;
  }

  OpRegistry registry_ = ops::make_registry();
  KernelTable table_;
  std::atomic<int> calls_ = 0;
};

TEST_F(TunedBackendTest, TakesTheFastestAndTellsTheTimes) {
  const TunedBackend backend(1, table_, {.budget_seconds = 10});
  EXPECT_EQ(backend.choose_kernel(node("relu")).kernel, "fast");
  const std::vector<KernelTime> times = times_of(backend, node("relu"));
  ASSERT_THAT(names(times), ElementsAre("fast", "slow"));
  EXPECT_GE(times[1].seconds, 3e-3);
  EXPECT_LT(times[0].seconds, times[1].seconds);
  EXPECT_EQ(backend.measured(), backend.chosen());
}

TEST_F(TunedBackendTest, MeasuresEachKindOfNodeOnce) {
  const TunedBackend backend(1, table_, {.budget_seconds = 10});
  backend.choose_kernel(node("relu"));
  const int calls = calls_;
  NodeSignature same = node("relu");
  same.name = "another";
  same.attributes.set("in_place", std::vector<int64_t>{0, 0});
  EXPECT_EQ(backend.choose_kernel(same).kernel, "fast");
  EXPECT_EQ(calls_, calls);
  backend.choose_kernel(node("relu", 5));
  EXPECT_GT(calls_, calls);
}

TEST_F(TunedBackendTest, WhereOneKernelServesNothingIsMeasured) {
  const TunedBackend backend(1, table_, {.budget_seconds = 10});
  EXPECT_EQ(backend.choose_kernel(node("exp")).kernel, "alone");
  EXPECT_TRUE(backend.chosen().empty());
  EXPECT_EQ(calls_, 0);
}

TEST_F(TunedBackendTest, WithoutABudgetTheFirstCandidateServes) {
  const TunedBackend backend(1, table_);
  EXPECT_EQ(backend.choose_kernel(node("relu")).kernel, "slow");
  EXPECT_EQ(calls_, 0);
}

TEST_F(TunedBackendTest, NoNewNodeIsMeasuredWhenTheBudgetIsUsedUp) {
  const TunedBackend backend(1, table_, {.budget_seconds = 1e-9});
  EXPECT_EQ(backend.choose_kernel(node("relu")).kernel, "fast");
  EXPECT_EQ(backend.choose_kernel(node("relu", 5)).kernel, "slow");
}

TEST_F(TunedBackendTest, TakesKnownTimesWithoutMeasuring) {
  const std::string key = signature_key(node("relu"));
  const TunedBackend backend(1, table_, {.known = {{key, {{"fast", 1}, {"slow", 2}}}}});
  EXPECT_EQ(backend.choose_kernel(node("relu")).kernel, "fast");
  EXPECT_EQ(calls_, 0);
  EXPECT_TRUE(backend.measured().empty());
  EXPECT_EQ(backend.chosen().count(key), 1u);
}

TEST_F(TunedBackendTest, AKernelThatThisMachineLacksIsReplacedByTheFirstCandidate) {
  const TunedBackend backend(1, table_, {.known = {{signature_key(node("relu")), {{"amx", 1}}}}});
  EXPECT_EQ(backend.choose_kernel(node("relu")).kernel, "slow");
  EXPECT_TRUE(backend.chosen().empty());
}

TEST_F(TunedBackendTest, SettledItKeepsItsChoicesAndMeasuresNothingMore) {
  const std::string other = signature_key(node("relu", 6));
  TunedBackend backend(1, table_, {.known = {{other, {{"fast", 1}, {"slow", 2}}}}, .budget_seconds = 10});
  backend.choose_kernel(node("relu"));
  backend.settle();
  EXPECT_EQ(backend.choose_kernel(node("relu")).kernel, "fast");
  EXPECT_EQ(backend.choose_kernel(node("relu", 5)).kernel, "slow");
  EXPECT_EQ(backend.choose_kernel(node("relu", 6)).kernel, "slow") << "was known, but not chosen before";
}

TEST_F(TunedBackendTest, SaysOnceThatItMeasures) {
  std::vector<std::string> notes;
  const TunedBackend backend(1, table_,
                             {.budget_seconds = 10, .note = [&](const std::string& line) { notes.push_back(line); }});
  for (const int64_t size : {4, 5, 6}) backend.choose_kernel(node("relu", size));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("measuring which kernels are the fastest here, for at most 10 s")));
}

TEST_F(TunedBackendTest, TheFirstCandidateStaysUnlessAnotherIsClearlyFaster) {
  EXPECT_THAT(names(rank_kernels({{"first", 1.0}, {"a", 0.99}, {"b", 0.98}})), ElementsAre("first", "b", "a"));
  EXPECT_THAT(names(rank_kernels({{"first", 1.0}, {"a", 0.99}, {"b", 0.9}})), ElementsAre("b", "first", "a"));
  EXPECT_THAT(names(rank_kernels({{"first", INFINITY}, {"a", 2}, {"b", INFINITY}})), ElementsAre("a"));
}

TEST_F(TunedBackendTest, AKernelThatFailsIsOutOfTheQuestion) {
  table_.add("tanh", {"native", function_kernel("fails", [](const NodeSignature&, const KernelOptions&) -> KernelBody {
                        return [](const KernelArguments&) { fail(ErrorKind::internal, "out of order"); };
                      })});
  table_.add("tanh", {"onednn", kernel("works", 1)});
  const TunedBackend backend(1, table_, {.budget_seconds = 10});
  EXPECT_EQ(backend.choose_kernel(node("tanh")).kernel, "works");
  EXPECT_THAT(names(times_of(backend, node("tanh"))), ElementsAre("works"));
}

TEST_F(TunedBackendTest, KernelsTakeTurnsOnMemoryThatTheyMayRead) {
  std::vector<int> order;
  const auto recorder = [&](int id) {
    return function_kernel("k", [&order, id](const NodeSignature&, const KernelOptions&) -> KernelBody {
      return [&order, id](const KernelArguments& a) {
        order.push_back(id);
        EXPECT_GE(a.input(0)[3], 0.5f);
        EXPECT_LE(a.input(0)[3], 1.5f);
      };
    });
  };
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::string why_not;
  for (const int id : {0, 1}) kernels.push_back(recorder(id)(node("relu"), {}, why_not));
  measure_kernels(kernels, node("relu"), 0);
  EXPECT_THAT(order, ElementsAre(0, 1, 1, 0, 0, 1, 1, 0));
}

}  // namespace
}  // namespace weft
