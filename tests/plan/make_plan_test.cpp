#include "weft/plan/make_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/plan/plain_backend.h"
#include "weft/base/error.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/passes/memory/mark_in_place.h"
#include "weft/plan/execution_order.h"
#include "weft/plan/plan_json.h"
#include "weft/plan/storage.h"

namespace weft {
namespace {

class MakePlan : public testing::Test {
 protected:
  Graph parse(const char* text) { return parse_graph(text, registry_); }
  const Placement& placement(const Graph& graph, const Plan& plan, const std::string& value) {
    return plan.placements[static_cast<size_t>(graph.find_value(value).index)];
  }
  std::vector<std::string> order(const Graph& graph, const Plan& plan) {
    std::vector<std::string> names;
    for (const PlannedNode& step : plan.steps) names.push_back(graph.node_name(step.node));
    return names;
  }
  OpRegistry registry_ = ops::make_registry();
  PlainBackend backend_{"conv2d"};
};

TEST_F(MakePlan, ChainUsesTwoBuffersInTurn) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[1024]
    %a = relu(%x) : f32[1024]
    %b = tanh(%a) : f32[1024]
    %c = exp(%b) : f32[1024]
    output "c" %c
  })");
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(plan.arena_bytes, 2 * 4096);
  EXPECT_EQ(plan.lower_bound_bytes, 2 * 4096);
  EXPECT_EQ(plan.batch_bytes, 4096);
}

TEST_F(MakePlan, InPlaceAttributeSharesTheBuffer) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[1024]
    %a = relu(%x) : f32[1024]
    %b = tanh(%a) {in_place=[0,0]} : f32[1024]
    output "b" %b
  })");
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(plan.arena_bytes, 4096);
  EXPECT_EQ(placement(graph, plan, "a").offset, placement(graph, plan, "b").offset);
}

TEST_F(MakePlan, ViewsShareTheBufferAndLiveAsLongAsTheLongest) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[4,256]
    %a = relu(%x) : f32[4,256]
    %flat = reshape(%a) {shape=[1024]} : f32[1024]
    %b = tanh(%x) : f32[4,256]
    %c = exp(%flat) : f32[1024]
    output "b" %b
    output "c" %c
  })");
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(placement(graph, plan, "a").offset, placement(graph, plan, "flat").offset);
  EXPECT_NE(placement(graph, plan, "b").offset, placement(graph, plan, "flat").offset);
  EXPECT_EQ(plan.arena_bytes, 3 * 4096);
}

TEST_F(MakePlan, BlocksLiveFromTheFirstWriteToTheLastRead) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[1024]
    %a = relu(%x) : f32[1024]
    %flat = reshape(%a) {shape=[4,256]} : f32[4,256]
    %b = tanh(%x) : f32[1024]
    %c = exp(%flat) : f32[4,256]
    output "b" %b
    output "c" %c
  })");
  const Plan plan = make_plan(graph, backend_, 1);
  const auto step_of = [&](const std::string& name) {
    const auto names = order(graph, plan);
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  ASSERT_EQ(plan.blocks.size(), 3u);
  const ArenaBlock& shared = plan.blocks[0];
  EXPECT_EQ(shared.value, graph.find_value("a"));
  EXPECT_EQ(shared.offset, placement(graph, plan, "a").offset);
  EXPECT_EQ(shared.bytes, 4096);
  EXPECT_EQ(shared.first_step, step_of("a"));
  EXPECT_EQ(shared.last_step, step_of("c"));
  EXPECT_EQ(plan.blocks[1].last_step, 3) << "outputs are read after the last step";
}

TEST_F(MakePlan, WorkspaceIsPartOfTheArena) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[1,1,4,4]
    batch %w "w" : f32[1,1,1,1]
    %y = conv2d(%x, %w) : f32[1,1,4,4]
    output "y" %y
  })");
  EXPECT_EQ(make_plan(graph, backend_, 1).arena_bytes, 1024 + 64);
}

TEST_F(MakePlan, UpdatesWriteIntoTheStateAfterItsOtherReaders) {
  const Graph graph = passes::mark_in_place(parse(R"(graph "g" {
    parameter %w "w" : f32[8]
    state %v "v" : f32[8]
    batch %g "g" : f32[8]
    scalar %lr "lr" : f32[]
    %update, %update.1 = sgd_update(%w, %g, %v, %lr) : f32[8], f32[8]
    %view = reshape(%w) {shape=[2,4]} : f32[2,4]
    %later = relu(%view) : f32[2,4]
    output "later" %later
    update "w" %update
    update "v" %update.1
  })"));
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(placement(graph, plan, "update").where, Placement::Where::state);
  EXPECT_EQ(placement(graph, plan, "update.1").where, Placement::Where::state);
  EXPECT_EQ(order(graph, plan), (std::vector<std::string>{"view", "later", "update"}));
}

TEST_F(MakePlan, ReadersOfTheNewStateThroughAViewComeAfterTheUpdate) {
  const Graph graph = parse(R"(graph "g" {
    parameter %w "w" : f32[8]
    state %v "v" : f32[8]
    batch %g "g" : f32[8]
    scalar %lr "lr" : f32[]
    %update, %update.1 = sgd_update(%w, %g, %v, %lr) : f32[8], f32[8]
    %view = reshape(%update) {shape=[2,4]} : f32[2,4]
    %later = relu(%view) : f32[2,4]
    output "later" %later
    update "w" %update
    update "v" %update.1
  })");
  EXPECT_EQ(order(graph, make_plan(graph, backend_, 1)), (std::vector<std::string>{"update", "view", "later"}));
}

TEST_F(MakePlan, AnUpdateOfAnUpdateWritesIntoTheSameState) {
  const Graph graph = passes::mark_in_place(parse(R"(graph "g" {
    parameter %w "w" : f32[8]
    state %slow "slow" : f32[8]
    state %mean "mean" : f32[8]
    batch %g "g" : f32[8]
    scalar %a "a" : f32[]
    scalar %b "b" : f32[]
    %fast = blend_update(%w, %g, %a, %b) : f32[8]
    %slower = blend_update(%slow, %fast, %a, %b) : f32[8]
    %joined = blend_update(%fast, %slower, %a, %b) : f32[8]
    %average = blend_update(%mean, %joined, %a, %b) : f32[8]
    %old = relu(%w) : f32[8]
    output "old" %old
    update "w" %joined
    update "slow" %slower
    update "mean" %average
  })"));
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_TRUE(map_storage(graph).copied_updates.empty());
  EXPECT_EQ(placement(graph, plan, "joined").where, Placement::Where::state);
  EXPECT_EQ(placement(graph, plan, "joined").offset, placement(graph, plan, "fast").offset);
  EXPECT_EQ(order(graph, plan), (std::vector<std::string>{"old", "fast", "slower", "joined", "average"}));
}

TEST_F(MakePlan, UpdatesRunAsSoonAsTheyCan) {
  const Graph graph = parse(R"(graph "g" {
    parameter %w "w" : f32[8]
    state %v "v" : f32[8]
    batch %x "x" : f32[8]
    scalar %lr "lr" : f32[]
    %gradient = relu(%x) : f32[8]
    %other = tanh(%x) : f32[8]
    %update, %update.1 = sgd_update(%w, %gradient, %v, %lr) : f32[8], f32[8]
    output "other" %other
    update "w" %update
    update "v" %update.1
  })");
  EXPECT_EQ(order(graph, make_plan(graph, backend_, 1)), (std::vector<std::string>{"gradient", "update", "other"}));
}

TEST_F(MakePlan, WhatOnlyUpdatesReadRunsAsSoonAsItCan) {
  const Graph graph = parse(R"(graph "g" {
    parameter %w "w" : f32[2048]
    batch %x "x" : f32[2048]
    scalar %a "a" : f32[]
    %gradient = relu(%x) : f32[2048]
    %other = tanh(%x) : f32[2048]
    %decay = multiply_scalar(%w) {value=0.1} : f32[2048]
    %norm = squared_norm(%w) : f32[]
    %direction = add(%gradient, %decay) : f32[2048]
    %update = blend_update(%w, %direction, %a, %norm) : f32[2048]
    output "other" %other
    update "w" %update
  })");
  const auto steps = order(graph, make_plan(graph, backend_, 1));
  const auto position = [&](const char* name) { return std::find(steps.begin(), steps.end(), name) - steps.begin(); };
  EXPECT_EQ(position("norm"), 0) << "one number";
  EXPECT_LT(position("gradient"), position("decay")) << "which lies around until there is a gradient";
  EXPECT_EQ(position("update"), position("direction") + 1);
}

TEST_F(MakePlan, WhatEmptiesTheArenaRunsEarlyWhereThatLowersThePeak) {
  const Graph graph = parse(R"(graph "g" {
    batch %b "b" : f32[1024]
    %x = relu(%b) : f32[1024]
    %y = tanh(%x) : f32[1024]
    %dy = exp(%y) : f32[1024]
    %dx = negate(%dy) : f32[1024]
    %dw = reduce_sum(%x) : f32[]
    output "dx" %dx
    output "dw" %dw
  })");
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(order(graph, plan), (std::vector<std::string>{"x", "y", "dw", "dy", "dx"}));
  EXPECT_EQ(plan.arena_bytes, 2 * 4096 + 64);
}

TEST_F(MakePlan, AnUpdateWhoseOldStateIsReadAfterItIsCopiedAtTheEnd) {
  const Graph graph = parse(R"(graph "g" {
    parameter %w "w" : f32[8]
    batch %g "g" : f32[8]
    scalar %a "a" : f32[]
    scalar %b "b" : f32[]
    %new = blend_update(%w, %g, %a, %b) : f32[8]
    %moved = subtract(%new, %w) : f32[8]
    output "moved" %moved
    update "w" %new
  })");
  EXPECT_EQ(map_storage(graph).copied_updates.size(), 1u);
  EXPECT_EQ(placement(graph, make_plan(graph, backend_, 1), "new").where, Placement::Where::arena);
}

TEST_F(MakePlan, OfTwoUpdatesOfOneStateTheLastOneMayOverwriteIt) {
  const Graph graph = parse(R"(graph "g" {
    parameter %w "w" : f32[8]
    state %v "v" : f32[8]
    batch %g "g" : f32[8]
    scalar %a "a" : f32[]
    scalar %b "b" : f32[]
    %one = blend_update(%w, %g, %a, %b) : f32[8]
    %two = blend_update(%w, %v, %b, %a) : f32[8]
    %sum = add(%one, %two) : f32[8]
    output "sum" %sum
    update "w" %two
  })");
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(placement(graph, plan, "one").where, Placement::Where::arena);
  EXPECT_EQ(placement(graph, plan, "two").where, Placement::Where::state);
  EXPECT_EQ(order(graph, plan), (std::vector<std::string>{"one", "two", "sum"}));
}

TEST_F(MakePlan, AnUpdateOfNoStateOverwritesNothing) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[8]
    parameter %w "w" : f32[8]
    scalar %a "a" : f32[]
    scalar %b "b" : f32[]
    %one = blend_update(%x, %w, %a, %b) : f32[8]
    %two = blend_update(%w, %x, %a, %b) : f32[8]
    output "one" %one
    output "two" %two
  })");
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(placement(graph, plan, "one").where, Placement::Where::arena);
  EXPECT_EQ(placement(graph, plan, "two").where, Placement::Where::arena);
}

TEST_F(MakePlan, OutputsAndSuccessorsInAReplacedStateAreRefused) {
  const auto with = [&](const std::string& result) {
    const std::string body = R"(graph "g" {
      parameter %w "w" : f32[8]
      state %v "v" : f32[8]
      scalar %a "a" : f32[]
      scalar %b "b" : f32[]
      %new = blend_update(%w, %v, %a, %b) : f32[8]
      update "w" %new
    )";
    return parse((body + result + "\n}").c_str());
  };
  const auto message = [&](const std::string& result) -> std::string {
    try {
      map_storage(with(result));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("output \"o\" %w"),
            "output 'o' lies in 'w', which the step replaces; the pass copy_states makes a copy");
  EXPECT_EQ(message("update \"v\" %w"), "the successor of 'v' lies in 'w'; the pass copy_states makes a copy");
  EXPECT_EQ(message("output \"o\" %new"), "");
  EXPECT_EQ(message("output \"o\" %v"), "");
}

TEST_F(MakePlan, UpdateThatIsNoInPlaceOpIsCopiedAtTheEnd) {
  const Graph graph = parse(R"(graph "g" {
    parameter %w "w" : f32[8]
    %next = relu(%w) : f32[8]
    update "w" %next
  })");
  EXPECT_EQ(map_storage(graph).copied_updates.size(), 1u);
  EXPECT_EQ(placement(graph, make_plan(graph, backend_, 1), "next").where, Placement::Where::arena);
}

TEST_F(MakePlan, JsonNamesThePeakAndItsBytes) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[16]
    %a = relu(%x) : f32[16]
    output "a" %a
  })");
  const auto json = to_json(make_plan(graph, backend_, 2), graph);
  EXPECT_EQ(json["peak_node"], "a");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["values"]["a"]["bytes"], 64);
}

TEST_F(MakePlan, WhatLiesBetweenStoreAndLoadTakesPlaceInTheFileNotInTheArena) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[1000]
    %a = relu(%x) : f32[1000]
    %a.stored = store(%a) : f32[1000]
    %b = tanh(%a) : f32[1000]
    %b.stored = store(%b) : f32[1000]
    %wide = concat(%x, %x) {axis=0} : f32[2000]
    %sum = reduce_sum(%wide) {axes=[0]} : f32[]
    %b.loaded = load(%b.stored) : f32[1000]
    %c = exp(%b.loaded) : f32[1000]
    %c.stored = store(%c) : f32[1000]
    %a.loaded = load(%a.stored) : f32[1000]
    %d = exp(%a.loaded) : f32[1000]
    %c.loaded = load(%c.stored) : f32[1000]
    %e = add(%c.loaded, %d) : f32[1000]
    output "sum" %sum
    output "e" %e
  })");
  const Plan plan = make_plan(graph, backend_, 1);
  EXPECT_EQ(placement(graph, plan, "a.stored").where, Placement::Where::file);
  EXPECT_EQ(placement(graph, plan, "a.loaded").where, Placement::Where::arena);
  // Whole blocks of 4096 bytes; the third takes the place of the second, which has been read by then.
  EXPECT_EQ(plan.file_bytes, 2 * 4096);
  EXPECT_EQ(placement(graph, plan, "b.stored").offset, placement(graph, plan, "c.stored").offset);
  EXPECT_NE(placement(graph, plan, "b.stored").offset, placement(graph, plan, "a.stored").offset);
  EXPECT_EQ(placement(graph, plan, "b.stored").bytes, 4000);
  for (const PlannedNode& step : plan.steps) {
    const std::string& op = graph.node(step.node).op->name;
    EXPECT_EQ(step.kernel == "file", op == "store" || op == "load");
    EXPECT_EQ(step.bytes_written == 0, op == "store") << op;
    EXPECT_EQ(step.bytes_read == 0, op == "load") << op;
  }
  EXPECT_LT(plan.arena_bytes, 4 * 4096);
  EXPECT_EQ(to_json(plan, graph)["file_bytes"], 2 * 4096);
}

TEST_F(MakePlan, ALoadIsNotHurried) {
  const Graph graph = parse(R"(graph "g" {
    parameter %w "w" : f32[2048]
    batch %x "x" : f32[2048]
    scalar %rate "rate" : f32[]
    %a = relu(%x) : f32[2048]
    %a.stored = store(%a) : f32[2048]
    %b = tanh(%a) : f32[2048]
    %c = exp(%b) : f32[2048]
    %a.loaded = load(%a.stored) : f32[2048]
    %gradient = multiply(%a.loaded, %c) : f32[2048]
    %next = running_average(%w, %gradient) : f32[2048]
    update "w" %next
  })");
  EXPECT_EQ(order(graph, make_plan(graph, backend_, 1)),
            (std::vector<std::string>{"a", "a.stored", "b", "c", "a.loaded", "gradient", "next"}));
}

TEST_F(MakePlan, OnlyALoadReadsWhatLiesInTheFile) {
  const Graph graph = parse(R"(graph "g" {
    batch %x "x" : f32[16]
    %a = store(%x) : f32[16]
    %b = exp(%a) : f32[16]
    output "b" %b
  })");
  try {
    make_plan(graph, backend_, 1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "[exp] 'b' reads 'a', which lies in a file; a load brings it back");
  }
}

constexpr const char* kKept = R"(graph "g" {
    batch %x "x" : f32[2048]
    parameter %w "w" : f32[2048]
    %a = exp(%x) : f32[2048]
    %copy = cast(%w) {dtype="bf16", kept=true} : bf16[2048]
    %y = cast(%copy) {dtype="f32"} : f32[2048]
    %gradient = multiply(%a, %y) : f32[2048]
    %next = running_average(%w, %gradient) : f32[2048]
    %anew = renew(%copy, %next) : bf16[2048]
    %b = tanh(%gradient) : f32[2048]
    output "b" %b
    update "w" %next
  })";

TEST_F(MakePlan, AKeptCopyHasItsPlaceInTheArenaDuringTheWholeStep) {
  const Graph graph = parse(kKept);
  const Plan plan = make_plan(graph, backend_, 1);
  const Placement &copy = placement(graph, plan, "copy"), &anew = placement(graph, plan, "anew");
  EXPECT_EQ(copy.where, Placement::Where::arena);
  EXPECT_EQ(anew.offset, copy.offset);
  const auto block = std::find_if(plan.blocks.begin(), plan.blocks.end(),
                                  [&](const ArenaBlock& one) { return graph.value(one.value).name == "copy"; });
  ASSERT_NE(block, plan.blocks.end());
  EXPECT_EQ(block->first_step, 0);
  EXPECT_EQ(block->last_step, static_cast<int>(plan.steps.size()) - 1);
}

TEST_F(MakePlan, ARenewalFollowsItsUpdateAtOnce) {
  const Graph graph = parse(kKept);
  EXPECT_EQ(order(graph, make_plan(graph, backend_, 1)),
            (std::vector<std::string>{"a", "copy", "y", "gradient", "next", "anew", "b"}));
}

TEST_F(MakePlan, ACopyThatIsReadAfterItsRenewalIsRefused) {
  std::string text = kKept;
  text.replace(text.find("tanh(%gradient)"), 15, "tanh(%late)");
  text.insert(text.find("    %b ="), "    %late = cast(%copy) {dtype=\"f32\"} : f32[2048]\n");
  const Graph graph = parse(text.c_str());
  try {
    make_plan(graph, backend_, 1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "[renew] 'anew' does not lie in 'copy', which is read after it or not kept");
  }
}

}  // namespace
}  // namespace weft
