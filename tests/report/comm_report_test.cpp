#include "weft/report/comm_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/device/cost_model.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"
#include "weft/ops/ranks/collective.h"

namespace weft::report {
namespace {

/// The op of each planned step.
std::vector<std::string> ops_of(const CompiledStep& compiled) {
  std::vector<std::string> ops;
  for (const PlannedNode& step : compiled.plan.steps) ops.push_back(compiled.graph.node(step.node).op->name);
  return ops;
}

/// One run in which a product takes 2 s, the beginning of an exchange 0.5 s, all else 0.25 s.
Profile one_run(const std::vector<std::string>& ops) {
  Profile profile{.seconds = {}, .runs = 1};
  for (const std::string& op : ops) profile.seconds.push_back(op == "matmul" ? 2 : op.ends_with("_start") ? 0.5 : 0.25);
  return profile;
}

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
  const std::vector<std::string> ops = ops_of(compiled);
  const Profile profile = one_run(ops);
  ASSERT_THAT(ops, testing::ElementsAre("matmul", "all_reduce_start", "matmul", "all_reduce_wait"));
  const auto collectives = profile_collectives(compiled.graph, compiled.plan, profile, ranks, *rated_costs());
  ASSERT_EQ(collectives.size(), 1);
  const CollectiveProfile& one = collectives[0];
  EXPECT_EQ(one.tensors, "first.mean");
  EXPECT_EQ(one.bytes, 64 * 64 * 4);
  EXPECT_EQ(one.starts_at, 2);
  EXPECT_EQ(one.start_seconds, 0.5);
  EXPECT_EQ(one.hidden_seconds, 2);
  EXPECT_EQ(one.wait_seconds, 0.25);
  EXPECT_NEAR(one.predicted_seconds, 1.001e-3, 1e-9);
  const double product = rated_costs()->seconds(signature_of(compiled.graph, compiled.plan.steps[2].node), 1);
  EXPECT_DOUBLE_EQ(one.predicted_hidden_seconds, product);
  EXPECT_NEAR(one.predicted_wait_seconds, 1.001e-3 - product, 1e-9);
  EXPECT_THAT(collectives_table(collectives, 4.75, ranks),
              testing::AllOf(testing::HasSubstr("first.mean"),
                             testing::HasSubstr("1 collective of 16.4 kB in each step; starting them and waiting for "
                                                "them takes 750 ms, 15.8 % of it")));
}

// The second of two ranks: it receives, computes while it sends, and sends once more.
TEST(CommReport, ListsMessagesBesideCollectives) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "g");
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, {64, 64}, {}});
  const ValueId activations = ops::receive(graph, 0, 3, {DType::f32, {64, 64}, {}}, "activations");
  const ValueId gradient = ops::matmul(graph, x, activations);
  const ValueId start = graph.add(
      "send_start", {gradient},
      {{"number", int64_t{0}}, {"tensors", std::string("gradient")}, {"peer", int64_t{0}}, {"tag", int64_t{4}}});
  const ValueId other = ops::matmul(graph, x, gradient);
  const ValueId wait = graph.add(
      "send_wait", {start},
      {{"number", int64_t{0}}, {"tensors", std::string("gradient")}, {"peer", int64_t{0}}, {"tag", int64_t{4}}});
  graph.add_output("sent", wait);
  graph.add_output("y", ops::all_reduce(graph, other, "mean", "other"));
  const CpuBackend backend(1);
  const passes::Ranks ranks{.count = 2, .latency_seconds = 1e-6, .bytes_per_second = 16384e3};
  const CompiledStep compiled = compile(graph, backend, {.threads = 1, .ranks = ranks});
  const std::vector<std::string> ops = ops_of(compiled);
  const Profile profile = one_run(ops);
  ASSERT_THAT(ops, testing::IsSupersetOf({"receive", "send_start", "send_wait"}));
  const auto all = profile_collectives(compiled.graph, compiled.plan, profile, ranks, *rated_costs());
  const auto of = [&](const std::string& kind) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.kind == kind; });
    return found == all.end() ? CollectiveProfile{} : *found;
  };
  const CollectiveProfile received = of("receive"), sent = of("send");
  EXPECT_EQ(received.tensors, "activations");
  EXPECT_EQ(received.algorithm, "from rank 0");
  EXPECT_EQ(received.bytes, 64 * 64 * 4);
  EXPECT_EQ(received.wait_seconds, 0.25);
  EXPECT_EQ(received.took_seconds, 0.25);
  EXPECT_NEAR(received.predicted_seconds, 1.001e-3, 1e-9);
  EXPECT_EQ(sent.tensors, "gradient");
  EXPECT_EQ(sent.algorithm, "to rank 0");
  EXPECT_EQ(sent.bytes, 64 * 64 * 4);
  EXPECT_EQ(sent.start_seconds, 0.5);
  EXPECT_EQ(sent.wait_seconds, 0.25);
  EXPECT_EQ(sent.took_seconds, 0.75 + sent.hidden_seconds);
  EXPECT_NEAR(received.predicted_wait_seconds, 1.001e-3, 1e-9);
  EXPECT_GT(of("all_reduce").predicted_wait_seconds, 1.001e-3) << "behind the message on the link";
  EXPECT_FALSE(of("all_reduce").is_message());
  EXPECT_THAT(collectives_table(all, 10, ranks),
              testing::AllOf(testing::HasSubstr("to rank 0"), testing::HasSubstr("from rank 0"),
                             testing::HasSubstr("1 collective, 2 messages of 32.8 kB in each step")));
}

}  // namespace
}  // namespace weft::report
