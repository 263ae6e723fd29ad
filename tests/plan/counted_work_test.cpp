#include "weft/plan/counted_work.h"

#include <gtest/gtest.h>

#include "tests/plan/plain_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/plan/make_plan.h"

namespace weft {
namespace {

CountedWork count(const char* text, CountedWork (*count_of)(const Graph&, const Plan&) = count_work) {
  const OpRegistry registry = ops::make_registry();
  const Graph graph = parse_graph(text, registry);
  return count_of(graph, make_plan(graph, PlainBackend("cast"), 1));
}

// A product of [2,3] and [3,4], its result viewed as another shape, cast, and laid out as images.
constexpr const char* kGraph = R"(graph "g" {
  batch %x "x" : f32[2,3]
  parameter %w "w" : f32[3,4]
  %y = matmul(%x, %w) : f32[2,4]
  %v = reshape(%y) {shape=[1,8,1,1]} : f32[1,8,1,1]
  %n = cast(%v) {dtype="bf16"} : bf16[1,8,1,1]
  %r = reorder(%v) : f32[1,8,1,1]@aBcd8b
  output "n" %n
  output "r" %r
})";

TEST(CountedWork, CountsNodesArithmeticAndTraffic) {
  const CountedWork work = count(kGraph);
  EXPECT_EQ(work.nodes, 3) << "a view runs no kernel";
  EXPECT_EQ(work.flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(work.bytes, 4 * (6 + 12 + 8) + (4 + 2) * 8 + (4 + 4) * 8);
  EXPECT_EQ(work.casts, 1);
  EXPECT_EQ(work.cast_bytes, (4 + 2) * 8);
  EXPECT_EQ(work.reorders, 1);
  EXPECT_EQ(work.reorder_bytes, (4 + 4) * 8);
  EXPECT_EQ(work.workspace_bytes, 1024);
  EXPECT_EQ(work.state_bytes, 64);
  EXPECT_EQ(work.kernels.at({"matmul", "plain"}), 1);
}

TEST(CountedWork, CountsStatesThatAreCopiedAfterTheStep) {
  const CountedWork work = count(R"(graph "g" {
    state %s "s" : f32[1024]
    %t = tanh(%s) : f32[1024]
    update "s" %t
  })");
  EXPECT_EQ(work.state_copies, 1);
  EXPECT_EQ(work.state_copy_bytes, 2 * 4096);
}

TEST(CountedWork, CountsAKeptCopyWhereItIsRenewedNotWhereItIsFirstMade) {
  const CountedWork work = count(R"(graph "g" {
    state %s "s" : f32[1024]
    batch %x "x" : f32[1024]
    %copy = cast(%s) {dtype="bf16", kept=true} : bf16[1024]
    %square = square(%copy) : bf16[1024]
    %next = running_average(%s, %x) : f32[1024]
    %anew = renew(%copy, %next) : bf16[1024]
    output "square" %square
    update "s" %next
  })");
  EXPECT_EQ(work.nodes, 3);
  EXPECT_EQ(work.casts, 1);
  EXPECT_EQ(work.cast_bytes, 4096 + 2048) << "the old copy is not read";
  EXPECT_EQ(work.kernels_when_bound.at({"cast", "plain"}), 1);
}

TEST(CountedWork, OfAPartLeavesOutWhatWaitsForTheSumAndWhatRunsWhenStatesAreBound) {
  constexpr const char* kSums = R"(graph "g" {
    state %w "w" : f32[1024]
    state %s "s" : f32[1024]
    batch %x "x" : bf16[1024]
    scalar %keep "keep" : f32[]
    scalar %take "take" : f32[]
    scalar %complete "complete" : f32[]
    %copy = cast(%w) {dtype="bf16", kept=true} : bf16[1024]
    %y = multiply(%x, %copy) : bf16[1024]
    %gradient = cast(%y) {dtype="f32"} : f32[1024]
    %sum = accumulate_update(%s, %gradient, %keep, %take, %complete) : f32[1024]
    %next = running_average(%w, %sum) : f32[1024]
    %anew = renew(%copy, %next) : bf16[1024]
    update "s" %sum
    update "w" %next
  })";
  const CountedWork part = count(kSums, count_work_of_part), whole = count(kSums);
  EXPECT_EQ(part.nodes, 3);
  EXPECT_EQ(whole.nodes, 5);
  EXPECT_EQ(part.kernels_when_bound.size(), 0);
  EXPECT_EQ(whole.kernels_when_bound.at({"cast", "plain"}), 1);
}

TEST(CountedWork, AddsBatchesAndTheUpdateInOneArena) {
  CountedWork batch = count(kGraph);
  const CountedWork once = batch;
  batch.arena_bytes = 10;
  CountedWork sum;
  sum.add(batch, 3);
  sum.add(once, 1);
  EXPECT_EQ(sum.nodes, 4 * once.nodes);
  EXPECT_EQ(sum.reorder_bytes, 4 * once.reorder_bytes);
  EXPECT_EQ(sum.kernels.at({"cast", "plain"}), 4);
  EXPECT_EQ(sum.arena_bytes, once.arena_bytes);
  EXPECT_EQ(sum.state_bytes, once.state_bytes);
}

}  // namespace
}  // namespace weft
