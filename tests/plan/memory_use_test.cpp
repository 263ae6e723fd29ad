// What the blocks of a plan's arena are for.
#include "weft/plan/memory_use.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/plan/plain_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/plan/make_plan.h"

namespace weft {
namespace {

/// The use of the block that a value has.
MemoryUse use_of(const std::string& text, const std::string& value) {
  const OpRegistry registry = ops::make_registry();
  const Graph graph = parse_graph(text, registry);
  const Plan plan = make_plan(graph, PlainBackend("none"), 1);
  const std::vector<MemoryUse> uses = uses_of_blocks(graph, plan);
  for (size_t block = 0; block < plan.blocks.size(); ++block)
    if (plan.blocks[block].value == graph.find_value(value)) return uses[block];
  ADD_FAILURE() << value << " has no block";
  return MemoryUse::state;
}

TEST(MemoryUse, WhatALossDependsOnIsAnActivation) {
  EXPECT_EQ(use_of(R"(graph "g" {
    batch %x "x" : f32[1024]
    %a = relu(%x) : f32[1024]
    %loss = exp(%a) : f32[1024]
    output "loss" %loss
  })",
                   "a"),
            MemoryUse::activation);
}

/// The first stages of a pipeline have no output of the forward part.
TEST(MemoryUse, WhatAStageSendsForwardDependsOnActivations) {
  const auto text = [](const char* forward) {
    return fmt::format(R"(graph "g" {{
      batch %x "x" : f32[1024]
      %a = relu(%x) : f32[1024]
      %b = exp(%a) : f32[1024]
      %leaves = send_start(%b) {{{}number=0, peer=1, tag=1, tensors="b"}} : f32[1024]
      %left = send_wait(%leaves) {{number=0, peer=1, tag=1, tensors="b"}} : f32[1024]
      output "own_gradient" %left
    }})",
                       forward);
  };
  EXPECT_EQ(use_of(text("forward=true, "), "a"), MemoryUse::activation);
  EXPECT_EQ(use_of(text(""), "a"), MemoryUse::gradient);
}

}  // namespace
}  // namespace weft
