#include "weft/cli/comm_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/compile/compile.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/runtime/cpu_backend.h"

namespace weft::cli {
namespace {

// A step of two products; the first one's result is on its way while the second one is computed.
TEST(CommReport, SaysWhatWasHiddenAndWhatWasWaitedFor) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "g");
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, {64, 64}, {}});
  const ValueId first = ops::matmul(graph, x, x), second = ops::matmul(graph, x, first);
  graph.add_output("y", ops::all_reduce(graph, first, "mean", "first.mean"));
  graph.add_output("z", second);
  const CpuBackend backend(1);
  const passes::Ranks ranks{.count = 2, .latency_seconds = 1e-6, .bytes_per_second = 16384e3};
  const CompiledStep compiled = compile(graph, backend, {.threads = 1, .ranks = ranks});
  Profile profile{.seconds = {}, .runs = 1};
  std::vector<std::string> ops;
  for (const PlannedNode& step : compiled.plan.steps) {
    const std::string& op = compiled.graph.node(step.node).op->name;
    ops.push_back(op);
    profile.seconds.push_back(op == "matmul" ? 2 : op == "all_reduce_start" ? 0.5 : 0.25);
  }
  ASSERT_THAT(ops, testing::ElementsAre("matmul", "all_reduce_start", "matmul", "all_reduce_wait"));
  const auto collectives = profile_collectives(compiled.graph, compiled.plan, profile, ranks);
  ASSERT_EQ(collectives.size(), 1);
  const CollectiveProfile& one = collectives[0];
  EXPECT_EQ(one.tensors, "first.mean");
  EXPECT_EQ(one.bytes, 64 * 64 * 4);
  EXPECT_EQ(one.starts_at, 2);
  EXPECT_EQ(one.start_seconds, 0.5);
  EXPECT_EQ(one.hidden_seconds, 2);
  EXPECT_EQ(one.wait_seconds, 0.25);
  EXPECT_NEAR(one.predicted_seconds, 1.001e-3, 1e-9);
  EXPECT_THAT(collectives_table(collectives, 4.75, ranks),
              testing::AllOf(testing::HasSubstr("first.mean"),
                             testing::HasSubstr("1 collectives of 16.4 kB in each step; starting them and waiting for "
                                                "them takes 750 ms, 15.8 % of it")));
}

}  // namespace
}  // namespace weft::cli
