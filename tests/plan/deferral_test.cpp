#include "weft/plan/deferral.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/plan/plain_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/plan/make_plan.h"

namespace weft {
namespace {

/// A step of two layers: `u` is read last in the forward part, so that its gradient is there first.
constexpr const char* kStep = R"(graph "step" {
  batch %x "x" : f32[1024]
  parameter %w "w" : f32[1024]
  parameter %u "u" : f32[1024]
  scalar %rate "rate" : f32[]
  %a = multiply(%x, %w) : f32[1024]
  %b = multiply(%a, %u) : f32[1024]
  %loss = reduce_sum(%b) {axes=[0]} : f32[]
  %du = multiply(%a, %b) : f32[1024]
  %du.start = all_reduce_start(%du) {number=0, tensors="du", in_place=[0,0], priority=2} : f32[1024]
  %da = multiply(%u, %b) : f32[1024]
  %dw = multiply(%x, %da) : f32[1024]
  %dw.start = all_reduce_start(%dw) {number=1, tensors="dw", in_place=[0,0], priority=1} : f32[1024]
  %du.mean = all_reduce_wait(%du.start) {number=0, tensors="du", in_place=[0,0], deferred=true} : f32[1024]
  %dw.mean = all_reduce_wait(%dw.start) {number=1, tensors="dw", in_place=[0,0], deferred=true} : f32[1024]
  %half = multiply_scalar(%rate) {value=0.5} : f32[]
  %u2 = blend_update(%u, %du.mean, %rate, %half) : f32[1024]
  %w2 = blend_update(%w, %dw.mean, %rate, %half) : f32[1024]
  output "loss" %loss
  update "u" %u2
  update "w" %w2
})";

class Deferral : public testing::Test {
 protected:
  Graph parse(std::string text, const std::string& from = "", const std::string& to = "") {
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    return parse_graph(text, registry_);
  }
  std::map<std::string, int> before_by_name(const Graph& graph, const Plan& plan) {
    std::map<std::string, int> before;
    for (const PlannedNode& step : plan.steps) before[graph.node_name(step.node)] = step.before;
    return before;
  }
  static int step_of(const Graph& graph, const Plan& plan, const std::string& name) {
    for (size_t step = 0; step < plan.steps.size(); ++step)
      if (graph.node_name(plan.steps[step].node) == name) return static_cast<int>(step);
    return -1;
  }
  OpRegistry registry_ = ops::make_registry();
  PlainBackend backend_{"blend_update"};
};

TEST_F(Deferral, LeavesWaitsAndUpdatesToWhereTheNextRunReadsTheStates) {
  const Graph graph = parse(kStep);
  const Plan plan = make_plan(graph, backend_, 1);
  const int a = step_of(graph, plan, "a"), b = step_of(graph, plan, "b");
  const auto before = before_by_name(graph, plan);
  for (const char* name : {"a", "b", "loss", "du", "du.start", "da", "dw", "dw.start"})
    EXPECT_EQ(before.at(name), -1) << name;
  EXPECT_EQ(before.at("dw.mean"), a);
  EXPECT_EQ(before.at("w2"), a);
  EXPECT_EQ(before.at("du.mean"), b);
  EXPECT_EQ(before.at("u2"), b);
  EXPECT_EQ(before.at("half"), a) << "what is made of scalars for deferred nodes alone goes with them";
  EXPECT_EQ(plan.deferred_from, 8);
}

TEST_F(Deferral, ARunDoesWhatIsLeftWhereItIsDue) {
  const Graph graph = parse(kStep);
  const Plan plan = make_plan(graph, backend_, 1);
  std::vector<std::string> names;
  for (const size_t step : order_of_run(plan)) names.push_back(graph.node_name(plan.steps[step].node));
  const auto place = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_EQ(names.size(), plan.steps.size());
  EXPECT_LT(place("w2"), place("a"));
  EXPECT_LT(place("a"), place("du.mean"));
  EXPECT_LT(place("u2"), place("b"));
}

TEST_F(Deferral, WhatIsLeftKeepsItsMemoryIntoTheNextRun) {
  const Graph graph = parse(kStep);
  const Plan plan = make_plan(graph, backend_, 1);
  const auto block_of = [&](const std::string& value) {
    for (const ArenaBlock& block : plan.blocks)
      if (graph.value(block.value).name == value) return block;
    return ArenaBlock{};
  };
  const int b = step_of(graph, plan, "b");
  EXPECT_TRUE(lives_at(block_of("du"), b));
  EXPECT_TRUE(lives_at(block_of("du"), 0));
  EXPECT_FALSE(lives_at(block_of("du"), b + 1));
  EXPECT_FALSE(lives_at(block_of("dw"), b));
  for (const ArenaBlock& one : plan.blocks)
    for (const ArenaBlock& other : plan.blocks)
      for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step)
        if (one.value != other.value && lives_at(one, step) && lives_at(other, step)) {
          EXPECT_TRUE(one.offset + one.bytes <= other.offset || other.offset + other.bytes <= one.offset)
              << graph.value(one.value).name << " and " << graph.value(other.value).name << " at " << step;
        }
}

TEST_F(Deferral, NothingIsLeftThatAnOutputNeeds) {
  const Graph graph = parse(kStep, "output \"loss\" %loss", "output \"loss\" %loss\n  output \"mean\" %dw.mean");
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(plan.deferred_from, static_cast<int>(plan.steps.size()));
}

TEST_F(Deferral, NothingIsLeftThatIsNotMarked) {
  std::string text = kStep;
  for (size_t at = 0; (at = text.find(", deferred=true", at)) != std::string::npos;) text.erase(at, 15);
  const Graph graph = parse(text);
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(plan.deferred_from, static_cast<int>(plan.steps.size()));
  EXPECT_EQ(order_of_run(plan).size(), plan.steps.size());
}

}  // namespace
}  // namespace weft
