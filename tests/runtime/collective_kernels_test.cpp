// The ops that exchange tensors between ranks, which here are threads: what each computes, whole and in halves; and
// that each one's gradient is the transpose of what it does on all ranks together.
#include "weft/runtime/collective_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <mutex>

#include "weft/base/rng.h"
#include "weft/comm/local/local_group.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/collective.h"
#include "weft/ops/all.h"
#include "weft/ops/ranks/collective.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

const OpRegistry& registry() {
  static const OpRegistry all = ops::make_registry();
  return all;
}

Tensor random_tensor(const Shape& shape, uint64_t seed) {
  Tensor tensor({DType::f32, shape, {}});
  RandomStream random(seed);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data_as<float>()[i] = random.uniform() - 0.5f;
  return tensor;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += double{a.data_as<float>()[i]} * double{b.data_as<float>()[i]};
  return sum;
}

const std::vector<std::vector<std::string>> kGroups = {{"a", "a"}, {"a", "b"}, {"a", "a", "b"}, {"a", "b", "c"}};

/// Calls body(rank, evaluate) on each rank; `evaluate` runs a graph.
using Evaluate = std::function<std::map<std::string, Tensor>(const Graph&, const std::map<std::string, Tensor>&)>;
void on_ranks(const std::vector<std::string>& group, const std::function<void(int rank, const Evaluate&)>& body) {
  comm::run_ranks(group, [&](comm::Communicator& ranks) {
    auto collectives = std::make_shared<comm::Collectives>(ranks, comm::CollectivesOptions{});
    KernelTable table = standard_kernels();
    add_collective_kernels(table, collectives);
    const CpuBackend backend(1, std::move(table));
    body(ranks.rank(), [&](const Graph& graph, const std::map<std::string, Tensor>& inputs) {
      return evaluate_graph(graph, inputs, backend);
    });
  });
}

struct OneOp {
  std::string name;
  Attributes attributes;
  Shape operand;
};

Graph graph_of(const OneOp& one) {
  Graph graph(registry(), one.name);
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, one.operand, {}});
  graph.add_output("y", graph.add(one.name, {x}, one.attributes, "exchange"));
  return graph;
}

/// By the op's halves.
Graph graph_of_halves(const OneOp& one) {
  Graph graph(registry(), one.name);
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, one.operand, {}});
  Attributes attributes = one.attributes;
  attributes.set("number", int64_t{0});
  attributes.set("tensors", std::string("x"));
  const ValueId pending = graph.add(one.name + "_start", {x}, attributes, "begin");
  graph.add_output("y", graph.add(one.name + "_wait", {pending}, attributes, "end"));
  return graph;
}

/// With "dx", what the op's rule makes of the gradient "dy" of its result.
Graph graph_of_gradient(const OneOp& one) {
  Graph graph = graph_of(one);
  const Node& node = graph.nodes()[0];
  const ValueId operand = node.inputs[0], result = node.outputs[0];
  const ValueId gradient = graph.add_input(InputKind::batch, "dy", graph.type(result));
  GradContext context{graph, graph.value(result).producer, {operand}, {result}, {gradient}};
  graph.add_output("dx", registry().get(one.name).gradient(context)[0]);
  return graph;
}

std::vector<OneOp> ops_of(int64_t ranks) {
  return {{kAllReduce, {{"reduction", "mean"}}, Shape{5, 3}},
          {kAllGather, {{"ranks", ranks}}, Shape{5, 3}},
          {kReduceScatter, {{"ranks", ranks}, {"reduction", "sum"}}, Shape{ranks * 5, 3}},
          {kReduceScatter, {{"ranks", ranks}, {"reduction", "mean"}}, Shape{ranks * 2000, 3}},
          {kAllToAll, {{"ranks", ranks}}, Shape{ranks * 4, 3}},
          {kBroadcast, {{"root", ranks - 1}}, Shape{5, 3}},
          {kReduceToRoot, {{"root", ranks - 1}}, Shape{4000, 3}}};
}

/// What the ops mean, computed by hand from the operands of all ranks.
Tensor expected(const OneOp& one, const std::vector<Tensor>& all, int rank) {
  const auto ranks = static_cast<int64_t>(all.size());
  const int64_t elements = all[0].elements();
  const auto sum = [&](int64_t i) {
    float total = 0;
    for (const Tensor& tensor : all) total += tensor.data_as<float>()[i];
    return total;
  };
  Shape shape = one.operand;
  if (one.name == kAllGather) shape[0] *= ranks;
  if (one.name == kReduceScatter) shape[0] /= ranks;
  Tensor result({DType::f32, shape, {}});
  const bool is_mean = one.attributes.has("reduction") && one.attributes.text("reduction") == "mean";
  for (int64_t i = 0; i < result.elements(); ++i) {
    float value = 0;
    if (one.name == kAllGather)
      value = all[static_cast<size_t>(i / elements)].data_as<float>()[i % elements];
    else if (one.name == kBroadcast)
      value = all.back().data_as<float>()[i];
    else if (one.name == kAllToAll)
      value = all[static_cast<size_t>(i * ranks / elements)]
                  .data_as<float>()[rank * (elements / ranks) + i % (elements / ranks)];
    else if (one.name == kReduceScatter)
      value = sum(rank * result.elements() + i);
    else if (one.name == kAllReduce || rank == ranks - 1)
      value = sum(i);
    result.data_as<float>()[i] = is_mean ? value / static_cast<float>(ranks) : value;
  }
  return result;
}

TEST(CollectiveKernels, ComputeWhatTheOpsMeanWholeAndInHalves) {
  for (const auto& group : kGroups)
    for (const OneOp& one : ops_of(static_cast<int64_t>(group.size()))) {
      std::vector<Tensor> all;
      for (size_t rank = 0; rank < group.size(); ++rank) all.push_back(random_tensor(one.operand, rank + 1));
      on_ranks(group, [&](int rank, const Evaluate& evaluate) {
        const Tensor wanted = expected(one, all, rank);
        std::vector<Graph> graphs = {graph_of(one)};
        if (one.name != kAllToAll) graphs.push_back(graph_of_halves(one));
        for (const Graph& graph : graphs)
          for (int run = 0; run < 2; ++run) {
            const Tensor operand = all[static_cast<size_t>(rank)].clone();
            const Tensor result = evaluate(graph, {{"x", operand}}).at("y");
            ASSERT_EQ(result.elements(), wanted.elements()) << one.name;
            for (int64_t i = 0; i < wanted.elements(); ++i)
              ASSERT_NEAR(result.data_as<float>()[i], wanted.data_as<float>()[i], 1e-5) << one.name << " on " << rank;
            for (int64_t i = 0; i < operand.elements(); ++i)
              ASSERT_EQ(operand.data_as<float>()[i], all[static_cast<size_t>(rank)].data_as<float>()[i])
                  << one.name << " changes its operand";
          }
      });
    }
}

TEST(CollectiveKernels, GradientsAreTheTransposeOverAllRanks) {
  for (const auto& group : kGroups)
    for (const OneOp& one : ops_of(static_cast<int64_t>(group.size()))) {
      double there = 0, back = 0;
      std::mutex mutex;
      on_ranks(group, [&](int rank, const Evaluate& evaluate) {
        const auto seed = static_cast<uint64_t>(rank);
        const Tensor x = random_tensor(one.operand, seed + 1);
        const Graph graph = graph_of_gradient(one);
        const Tensor dy = random_tensor(graph.type(graph.find_input("dy")->value).shape, seed + 100);
        const auto results = evaluate(graph, {{"x", x}, {"dy", dy}});
        const std::lock_guard lock(mutex);
        there += dot(results.at("y"), dy);
        back += dot(results.at("dx"), x);
      });
      EXPECT_NEAR(there, back, 1e-3) << one.name;
    }
}

TEST(CollectiveKernels, RefuseAGraphForAnotherNumberOfRanks) {
  comm::run_ranks({"a", "a"}, [&](comm::Communicator& ranks) {
    KernelTable table = standard_kernels();
    add_collective_kernels(table, std::make_shared<comm::Collectives>(ranks, comm::CollectivesOptions{}));
    const CpuBackend backend(1, std::move(table));
    const Graph graph = graph_of({kReduceScatter, {{"ranks", int64_t{3}}}, Shape{6, 3}});
    EXPECT_ANY_THROW(evaluate_graph(graph, {{"x", random_tensor(Shape{6, 3}, 1)}}, backend));
  });
}

/// A stage of a pipeline on each rank: what it has goes to the next, and twice what came is its result. By halves the
/// message is begun before anything is awaited.
Graph stage_of(int rank, int ranks, bool halves) {
  Graph graph(registry(), "stage");
  const TensorType type{DType::f32, {50, 3}, {}};
  const ValueId x = graph.add_input(InputKind::batch, "x", type);
  const Attributes half{{"number", int64_t{0}}, {"tensors", "activations"}};
  const auto with = [](Attributes attributes, const Attributes& more) {
    for (const auto& [name, value] : more.values()) attributes.set(name, value);
    return attributes;
  };
  const Attributes to{{"peer", int64_t{rank + 1}}, {"tag", int64_t{4}}};
  const Attributes from{{"peer", int64_t{rank - 1}}, {"tag", int64_t{4}}};
  ValueId result = x;
  if (rank > 0 && halves) {
    const Attributes start = with(with(from, half), {{"shape", type.shape.dims()}});
    result = graph.add(kReceiveWait, {graph.add(kReceiveStart, {}, start, "receiving")}, with(from, half), "received");
  } else if (rank > 0) {
    result = ops::receive(graph, rank - 1, 4, type, "received");
  }
  const ValueId twice = graph.add("add", {result, result}, {}, "twice");
  if (rank + 1 < ranks && halves)
    graph.add(kSendWait, {graph.add(kSendStart, {twice}, with(to, half), "sending")}, with(to, half), "sent");
  else if (rank + 1 < ranks)
    ops::send(graph, twice, rank + 1, 4, "sent");
  graph.add_output("y", twice);
  return graph;
}

TEST(MessageKernels, PassActivationsFromStageToStage) {
  for (const auto& group : kGroups)
    for (const bool halves : {false, true}) {
      const Tensor first = random_tensor(Shape{50, 3}, 1);
      on_ranks(group, [&](int rank, const Evaluate& evaluate) {
        const Tensor x = rank == 0 ? first : random_tensor(Shape{50, 3}, 77);
        const Tensor y = evaluate(stage_of(rank, static_cast<int>(group.size()), halves), {{"x", x}}).at("y");
        for (int64_t i = 0; i < y.elements(); ++i)
          ASSERT_EQ(y.data_as<float>()[i], std::ldexp(first.data_as<float>()[i], rank + 1)) << "stage " << rank;
      });
    }
}

}  // namespace
}  // namespace weft
