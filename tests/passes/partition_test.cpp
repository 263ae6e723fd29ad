// From a step on whole tensors to that of ranks that keep parts of some states: graphs in, graphs out.
#include "weft/passes/ranks/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/graph/text.h"
#include "weft/graph/verify.h"
#include "weft/ops/all.h"

namespace weft::passes {
namespace {

const OpRegistry& registry() {
  static const OpRegistry all = ops::make_registry();
  return all;
}

PartitionOptions of_two(const std::map<std::string, Shape>& states) {
  PartitionOptions options{.axis = {"data", 2}, .states = {}};
  for (const auto& [name, shape] : states) options.states[name] = {.whole = shape, .flat = options.axis};
  return options;
}

void expect_becomes(const std::string& before, const PartitionOptions& options, const std::string& after) {
  const Graph graph = partition(parse_graph(before, registry()), options);
  verify(graph, "partition");
  EXPECT_EQ(print_graph(graph), print_graph(parse_graph(after, registry())));
}

TEST(Partition, AnUpdateOfASplitStateScattersTheGradientAndGathersTheWeight) {
  expect_becomes(R"graph(graph "g" {
  batch %x "x" : f32[8,40]
  parameter %w "w" : f32[40]
  state %v "v" : f32[40]
  scalar %rate "rate" : f32[]
  %gradient = reduce_sum(%x) {axes=[0]} : f32[40]
  %mean = all_reduce(%gradient) : f32[40]
  %next, %next.1 = sgd_update(%w, %mean, %v, %rate) : f32[40], f32[40]
  update "w" %next
  update "v" %next.1
})graph",
                 of_two({{"v", {40}}}), R"graph(graph "g" {
  batch %x "x" : f32[8,40]
  parameter %w "w" : f32[40]
  state %v "v" : f32[32] {sharding="flat(data=2) of (40)"}
  scalar %rate "rate" : f32[]
  %gradient = reduce_sum(%x) {axes=[0]} : f32[40]
  %gradient.padded = pad(%gradient) {high=[24], low=[0]} : f32[64]
  %mean = reduce_scatter(%gradient.padded) {ranks=2} : f32[32] {sharding="flat(data=2) of (40)"}
  %w.padded = pad(%w) {high=[24], low=[0]} : f32[64]
  %w.part = own_part(%w.padded) {ranks=2} : f32[32] {sharding="flat(data=2) of (40)"}
  %next, %next.1 = sgd_update(%w.part, %mean, %v, %rate) : f32[32] {sharding="flat(data=2) of (40)"}, f32[32] {sharding="flat(data=2) of (40)"}
  %all_gather/w = all_gather(%next) {ranks=2} : f32[64]
  %w.elements = slice(%all_gather/w) {ends=[40], starts=[0]} : f32[40]
  %constant = constant() {shape=[], value=0.0} : f32[]
  %constant_2 = constant() {shape=[], value=1.0} : f32[]
  %assign/w = blend_update(%w, %w.elements, %constant, %constant_2) : f32[40]
  update "w" %assign/w
  update "v" %next.1
})graph");
}

TEST(Partition, ASplitWeightIsGatheredForwardAndAgainBackward) {
  const std::string before = R"graph(graph "g" {
  batch %x "x" : f32[8,32]
  parameter %w "w" : f32[32,32]
  scalar %rate "rate" : f32[]
  %y = matmul(%x, %w) : f32[8,32]
  %loss = reduce_mean(%y) : f32[]
  %dx = matmul(%y, %w) {transpose_b=true} : f32[8,32]
  %dw = matmul(%dx, %y) {transpose_a=true} : f32[32,32]
  %mean = all_reduce(%dw) : f32[32,32]
  %next = blend_update(%w, %mean, %rate, %rate) : f32[32,32]
  output "loss" %loss
  update "w" %next
})graph";
  PartitionOptions options = of_two({{"w", {32, 32}}});
  const Graph graph = parse_graph(before, registry());
  options.last_of_forward = graph.value(graph.find_value("loss")).producer;
  expect_becomes(before, options, R"graph(graph "g" {
  batch %x "x" : f32[8,32]
  parameter %w "w" : f32[512] {sharding="flat(data=2) of (32,32)"}
  scalar %rate "rate" : f32[]
  %all_gather/w = all_gather(%w) {ranks=2} : f32[1024]
  %w.whole = reshape(%all_gather/w) {shape=[32,32]} : f32[32,32]
  %y = matmul(%x, %w.whole) : f32[8,32]
  %loss = reduce_mean(%y) : f32[]
  %all_gather/w_2 = all_gather(%w) {ranks=2, turn=1} : f32[1024]
  %w.whole_2 = reshape(%all_gather/w_2) {shape=[32,32]} : f32[32,32]
  %dx = matmul(%y, %w.whole_2) {transpose_b=true} : f32[8,32]
  %dw = matmul(%dx, %y) {transpose_a=true} : f32[32,32]
  %dw.flat = reshape(%dw) {shape=[1024]} : f32[1024]
  %mean = reduce_scatter(%dw.flat) {ranks=2} : f32[512] {sharding="flat(data=2) of (32,32)"}
  %next = blend_update(%w, %mean, %rate, %rate) : f32[512] {sharding="flat(data=2) of (32,32)"}
  output "loss" %loss
  update "w" %next
})graph");
}

/// The norm of several gradients goes over the ranks once, a whole one's as a share of it.
TEST(Partition, NormsBecomeOneSumOverTheRanks) {
  expect_becomes(R"graph(graph "g" {
  batch %x "x" : f32[8,64]
  parameter %w "w" : f32[64]
  parameter %b "b" : f32[8]
  state %v "v" : f32[64]
  scalar %rate "rate" : f32[]
  %g = reduce_sum(%x) {axes=[0]} : f32[64]
  %h = reduce_sum(%x) {axes=[1]} : f32[8]
  %gw = all_reduce(%g) : f32[64]
  %gb = all_reduce(%h) : f32[8]
  %one = squared_norm(%gw) : f32[]
  %other = squared_norm(%gb) : f32[]
  %sum = add(%one, %other) : f32[]
  %norm = sqrt(%sum) : f32[]
  %scaled = multiply(%gw, %norm) : f32[64]
  %next, %next.1 = sgd_update(%w, %scaled, %v, %rate) : f32[64], f32[64]
  output "norm" %norm
  update "v" %next.1
})graph",
                 of_two({{"v", {64}}}), R"graph(graph "g" {
  batch %x "x" : f32[8,64]
  parameter %w "w" : f32[64]
  parameter %b "b" : f32[8]
  state %v "v" : f32[32] {sharding="flat(data=2) of (64)"}
  scalar %rate "rate" : f32[]
  %g = reduce_sum(%x) {axes=[0]} : f32[64]
  %h = reduce_sum(%x) {axes=[1]} : f32[8]
  %gw = reduce_scatter(%g) {ranks=2} : f32[32] {sharding="flat(data=2) of (64)"}
  %gb = all_reduce(%h) : f32[8]
  %one = squared_norm(%gw) : f32[] {sharding="partial(data=2) of ()"}
  %other = squared_norm(%gb) : f32[]
  %other.term = multiply_scalar(%other) {value=0.5} : f32[] {sharding="partial(data=2) of ()"}
  %sum = add(%one, %other.term) : f32[] {sharding="partial(data=2) of ()"}
  %sum.of_ranks = all_reduce(%sum) {reduction="sum"} : f32[]
  %norm = sqrt(%sum.of_ranks) : f32[]
  %scaled = multiply(%gw, %norm) : f32[32] {sharding="flat(data=2) of (64)"}
  %w.part = own_part(%w) {ranks=2} : f32[32] {sharding="flat(data=2) of (64)"}
  %next, %next.1 = sgd_update(%w.part, %scaled, %v, %rate) : f32[32] {sharding="flat(data=2) of (64)"}, f32[32] {sharding="flat(data=2) of (64)"}
  output "norm" %norm
  update "v" %next.1
})graph");
}

int count(const Graph& graph, const std::string& op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) { return node.op->name == op; }));
}

TEST(Partition, OpsThatWantWholeTensorsGetThem) {
  const Graph graph = partition(parse_graph(R"graph(graph "g" {
  batch %x "x" : f32[8,8]
  state %v "v" : f32[8,8]
  scalar %rate "rate" : f32[]
  %mean = all_reduce(%x) : f32[8,8]
  %next = blend_update(%v, %mean, %rate, %rate) : f32[8,8]
  %turned = transpose(%next) {permutation=[1,0]} : f32[8,8]
  output "turned" %turned
  update "v" %next
})graph",
                                            registry()),
                                of_two({{"v", {8, 8}}}));
  EXPECT_EQ(count(graph, "all_gather"), 1);
  EXPECT_EQ(count(graph, "reduce_scatter"), 1);
}

/// What each rank has for itself has no parts that belong together.
TEST(Partition, WhatDiffersBetweenTheRanksStaysWhole) {
  const std::string before = R"graph(graph "g" {
  batch %x "x" : f32[8,8]
  parameter %w "w" : f32[8,8]
  scalar %rate "rate" : f32[]
  %y = multiply(%x, %w) : f32[8,8]
  output "y" %y
})graph";
  const Graph graph = partition(parse_graph(before, registry()), of_two({{"w", {8, 8}}}));
  EXPECT_EQ(count(graph, "all_gather"), 1);
  EXPECT_EQ(count(graph, "own_part"), 0);
  EXPECT_EQ(graph.shape(graph.find_output("y")->value), (Shape{8, 8}));
}

/// Behind its last element a part may hold anything once something was added to it: a norm wants the whole then.
TEST(Partition, ANormOfWhatDoesNotEndWithZerosIsThatOfTheWhole) {
  const auto with = [](const std::string& op, const std::string& elements) {
    return partition(
        parse_graph("graph \"g\" {\n  batch %x \"x\" : f32[" + elements + "]\n  state %v \"v\" : f32[" + elements +
                        "]\n  scalar %rate \"rate\" : f32[]\n  %mean = all_reduce(%x) : f32[" + elements +
                        "]\n  %next = blend_update(%v, %mean, %rate, %rate) : f32[" + elements + "]\n  %more = " + op +
                        " : f32[" + elements +
                        "]\n  %norm = squared_norm(%more) : f32[]\n  output \"norm\" %norm\n  update \"v\" "
                        "%next\n}",
                    registry()),
        of_two({{"v", {std::stoll(elements)}}}));
  };
  EXPECT_EQ(count(with("multiply_scalar(%next) {value=2.0}", "40"), "all_gather"), 0);
  EXPECT_EQ(count(with("add_scalar(%next) {value=2.0}", "40"), "all_gather"), 1);
  EXPECT_EQ(count(with("add_scalar(%next) {value=2.0}", "64"), "all_gather"), 0) << "nothing is behind it";
}

TEST(Partition, SumsMayStayWhole) {
  PartitionOptions options = of_two({{"v", {64}}});
  options.scatters = false;
  const Graph graph = partition(parse_graph(R"graph(graph "g" {
  batch %x "x" : f32[64]
  state %v "v" : f32[64]
  scalar %rate "rate" : f32[]
  %mean = all_reduce(%x) : f32[64]
  %next = blend_update(%v, %mean, %rate, %rate) : f32[64]
  update "v" %next
})graph",
                                            registry()),
                                options);
  EXPECT_EQ(count(graph, "all_reduce"), 1);
  EXPECT_EQ(count(graph, "own_part"), 1);
  EXPECT_EQ(count(graph, "reduce_scatter"), 0);
}

}  // namespace
}  // namespace weft::passes
