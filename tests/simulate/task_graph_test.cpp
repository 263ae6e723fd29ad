#include "weft/simulate/task_graph.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "weft/simulate/trace.h"

namespace weft::simulate {
namespace {

TEST(TaskGraph, AStreamDoesOneTaskAtATime) {
  TaskGraph graph;
  const int stream = graph.add_stream("rank 0");
  graph.add({.name = "a", .stream = stream, .seconds = 2});
  graph.add({.name = "b", .stream = stream, .seconds = 3});
  const std::vector<Span> spans = graph.run();
  EXPECT_DOUBLE_EQ(spans[1].begin, 2);
  EXPECT_DOUBLE_EQ(end_of(spans), 5);
  EXPECT_DOUBLE_EQ(busy_seconds(graph, spans, stream), 5);
}

TEST(TaskGraph, TasksWaitForOthers) {
  TaskGraph graph;
  const int one = graph.add_stream("one"), two = graph.add_stream("two");
  const int32_t a = graph.add({.name = "a", .stream = one, .seconds = 2});
  graph.add({.name = "b", .stream = two, .seconds = 1, .after = {a}});
  EXPECT_DOUBLE_EQ(end_of(graph.run()), 3);
}

TEST(TaskGraph, ThoseThatShareALinkShareItsRate) {
  TaskGraph graph;
  const int link = graph.add_link("link", 100);
  graph.add({.name = "a", .demands = {{link, 100}}});
  graph.add({.name = "b", .demands = {{link, 300}}});
  const std::vector<Span> spans = graph.run();
  EXPECT_NEAR(spans[0].end, 2, 1e-9);  // at half the rate
  EXPECT_NEAR(spans[1].end, 4, 1e-9);  // alone from then on
  EXPECT_DOUBLE_EQ(graph.link_bytes()[0], 400);
  EXPECT_NEAR(graph.link_busy_seconds()[0], 4, 1e-9);
}

TEST(TaskGraph, AFlowGoesAtThePaceOfItsSlowestLink) {
  TaskGraph graph;
  const int fast = graph.add_link("fast", 100), slow = graph.add_link("slow", 10);
  graph.add({.name = "a", .seconds = 1, .demands = {{fast, 100}, {slow, 50}}});
  EXPECT_NEAR(end_of(graph.run()), 6, 1e-9);
}

TEST(Trace, IsJsonWithASliceForEachTask) {
  TaskGraph graph;
  const int stream = graph.add_stream("rank 0");
  const int32_t a = graph.add({.name = "a \"b\"", .kind = "compute", .stream = stream, .seconds = 1e-3});
  graph.add({.name = "message", .kind = "message", .seconds = 2e-3, .after = {a}});
  const auto trace = nlohmann::json::parse(chrome_trace(graph, graph.run(), "run"));
  int slices = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++slices;
    EXPECT_DOUBLE_EQ(event["dur"].get<double>(), event["name"] == "message" ? 2000 : 1000);
  }
  EXPECT_EQ(slices, 2);
}

}  // namespace
}  // namespace weft::simulate
