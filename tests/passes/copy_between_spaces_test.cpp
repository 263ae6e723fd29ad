#include "weft/passes/layout/copy_between_spaces.h"

#include <gtest/gtest.h>

#include "tests/passes/fake_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"

namespace weft::passes {
namespace {

class ApartBackend : public test::FakeBackend {
 public:
  MemoryRules memory_rules() const override { return {.is_separate = true}; }
};

class CopyBetweenSpacesTest : public testing::Test {
 protected:
  void expect_copies(const std::string& before, const std::string& after) {
    const Graph result = copy_between_spaces(parse_graph(before, registry_), backend_);
    EXPECT_EQ(print_graph(result), print_graph(parse_graph(after, registry_)));
  }
  OpRegistry registry_ = ops::make_registry();
  const ApartBackend backend_;
};

TEST_F(CopyBetweenSpacesTest, CarriesWhatRanksExchange) {
  expect_copies(R"(graph "g" {
    batch %x "x" : f32[4]
    state %w "w" : f32[4]
    %g = exp(%x) : f32[4]
    %all = all_reduce(%g) : f32[4]
    %v = add(%w, %all) : f32[4]
    output "all" %all
    update "w" %v
  })",
                R"(graph "g" {
    batch %x "x" : f32[4]
    state %w "w" : f32[4]
    %x.on_device = copy_to_device(%x) : f32[4]
    %g = exp(%x.on_device) : f32[4]
    %g.on_host = copy_to_host(%g) : f32[4]
    %all = all_reduce(%g.on_host) : f32[4]
    %all.on_device = copy_to_device(%all) : f32[4]
    %v = add(%w, %all.on_device) : f32[4]
    output "all" %all
    update "w" %v
  })");
}

TEST_F(CopyBetweenSpacesTest, WhatTravelsStaysOnTheHost) {
  expect_copies(R"(graph "g" {
    state %w "w" : f32[4]
    %g = exp(%w) : f32[4]
    %begun = all_reduce_start(%g) {number=0, tensors="g"} : f32[4]
    %all = all_reduce_wait(%begun) {number=0, tensors="g"} : f32[4]
    update "w" %all
  })",
                R"(graph "g" {
    state %w "w" : f32[4]
    %g = exp(%w) : f32[4]
    %g.on_host = copy_to_host(%g) : f32[4]
    %begun = all_reduce_start(%g.on_host) {number=0, tensors="g"} : f32[4]
    %all = all_reduce_wait(%begun) {number=0, tensors="g"} : f32[4]
    %all.on_device = copy_to_device(%all) : f32[4]
    update "w" %all.on_device
  })");
}

TEST_F(CopyBetweenSpacesTest, LeavesGraphsForOneMemoryAsTheyAre) {
  const Graph graph = parse_graph(R"(graph "g" {
    batch %x "x" : f32[4]
    %all = all_reduce(%x) : f32[4]
    output "all" %all
  })",
                                  registry_);
  EXPECT_EQ(print_graph(copy_between_spaces(graph, test::FakeBackend())), print_graph(graph));
}

}  // namespace
}  // namespace weft::passes
