#include "weft/models/mixture_of_experts.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/ops/ranks/collective.h"

namespace weft::models {

namespace {

/// Where each token goes.
struct Routes {
  ValueId slots;    // i32 [rows]: expert * capacity + place in it; experts * capacity where the token is left out
  ValueId gates;    // f32 [rows]: the probability of its expert; 0 where it is left out
  ValueId balance;  // f32[]: experts * sum of (share of tokens) (mean probability); 1 where both are even
};

Routes find_routes(ModelBuilder& m, ValueId x, const std::string& name, const ExpertSizes& s, int64_t capacity) {
  Graph& graph = m.graph();
  const ValueId scores =
      m.linear(x, name + ".router", {.width = s.experts, .bias = false, .start = Start::small_normal});
  const ValueId probabilities = ops::softmax(graph, scores, -1, name + ".probabilities");
  const ValueId expert = ops::argmax(graph, scores, -1, false, name + ".expert");
  const ValueId chosen = ops::one_hot(graph, expert, s.experts, name + ".chosen");
  // Tokens before it that chose the same expert: whole numbers, exact in f32.
  const ValueId before = ops::cumulative_sum(graph, chosen, 0, false, /*exclusive=*/true, name + ".before");
  const ValueId place = ops::reduce_sum(graph, ops::multiply(graph, before, chosen), {1}, false, name + ".place");
  const ValueId limit = ops::constant(graph, Shape{}, static_cast<double>(capacity));
  const ValueId has_room = ops::less(graph, place, limit, name + ".has_room");
  // expert * capacity + place, from the one 1 of its row.
  Tensor starts(DType::f32, Shape{s.experts});
  for (int64_t each = 0; each < s.experts; ++each) starts.data_as<float>()[each] = static_cast<float>(each * capacity);
  const ValueId start = ops::reduce_sum(
      graph, ops::multiply(graph, chosen, ops::constant_tensor(graph, Constant(starts), name + ".starts")), {1});
  const ValueId outside = ops::constant(graph, Shape{}, static_cast<double>(s.experts * capacity));
  const ValueId slot =
      ops::add(graph, ops::multiply(graph, ops::add(graph, start, place), has_room),
               ops::multiply(graph, outside, ops::subtract(graph, ops::constant(graph, Shape{}, 1.0), has_room)));
  Routes routes;
  routes.slots = ops::cast(graph, slot, DType::i32, name + ".slots");
  const ValueId gate = ops::reduce_sum(graph, ops::multiply(graph, probabilities, chosen), {1});
  routes.gates = ops::multiply(graph, gate, has_room, name + ".gates");
  const ValueId shares = ops::reduce_mean(graph, chosen, {0}, false, name + ".shares");
  const ValueId means = ops::reduce_mean(graph, probabilities, {0}, false, name + ".means");
  routes.balance = ops::multiply_scalar(graph, ops::reduce_sum(graph, ops::multiply(graph, shares, means)),
                                        static_cast<double>(s.experts), name + ".balance");
  return routes;
}

/// [experts, capacity, width] of this rank's tokens -> [experts / ranks, ranks * capacity, width]: of all ranks'
/// tokens, the first rank's first, those of the experts that this rank has.
ValueId send_to_experts(Graph& graph, ValueId taken, int64_t ranks, const std::string& name) {
  if (ranks == 1) return taken;
  const Shape shape = graph.shape(taken);
  const int64_t own = shape[0] / ranks;
  ValueId come = ops::all_to_all(graph, taken, ranks, name + ".to_experts");
  come = ops::reshape(graph, come, {ranks, own, shape[1], shape[2]}, name + ".by_rank");
  come = ops::transpose(graph, come, {1, 0, 2, 3}, name + ".by_expert");
  return ops::reshape(graph, come, {own, ranks * shape[1], shape[2]}, name + ".of_all_ranks");
}

/// The way back.
ValueId send_from_experts(Graph& graph, ValueId results, int64_t ranks, const std::string& name) {
  if (ranks == 1) return results;
  const Shape shape = graph.shape(results);
  const int64_t capacity = shape[1] / ranks;
  ValueId go = ops::reshape(graph, results, {shape[0], ranks, capacity, shape[2]}, name + ".results.by_expert");
  go = ops::transpose(graph, go, {1, 0, 2, 3}, name + ".results.by_rank");
  go = ops::reshape(graph, go, {shape[0] * ranks, capacity, shape[2]}, name + ".results.of_ranks");
  return ops::all_to_all(graph, go, ranks, name + ".from_experts");
}

/// [own experts, rows, inputs] -> [own experts, rows, outputs]; own are those of `experts` that this rank has.
ValueId expert_layer(ModelBuilder& m, ValueId x, const std::string& name, int64_t experts, int64_t outputs) {
  Graph& graph = m.graph();
  const int64_t own = graph.shape(x)[0], inputs = graph.shape(x)[2];
  const MeshAxis axis{kDataAxis, m.input().expert_ranks};
  const ValueId weight =
      m.parameter(name + ".weight", {experts, outputs, inputs}, {Initializer::Kind::normal, 0.02}, true, axis);
  const ValueId bias = m.parameter(name + ".bias", {experts, outputs}, {}, false, axis);
  const ValueId product = ops::matmul(graph, x, weight, false, true, name);
  return ops::add(graph, product, ops::reshape(graph, bias, {own, 1, outputs}), name + ".biased");
}

void require_even_parts(const std::string& name, int64_t experts, int64_t ranks) {
  if (experts % ranks == 0) return;
  fail(ErrorKind::usage,
       "shard.experts = 'data': the {} experts of '{}' cannot be divided evenly among {} ranks; choose a multiple of "
       "{} experts, another number of ranks, or shard.experts=whole",
       experts, name, ranks, ranks);
}

}  // namespace

int64_t expert_capacity(int64_t rows, int64_t experts, double factor) {
  const auto share = static_cast<int64_t>(std::ceil(static_cast<double>(rows) * factor / static_cast<double>(experts)));
  return std::min(rows, std::max<int64_t>(share, 4));
}

ValueId mixture_of_experts(ModelBuilder& m, ValueId x, const std::string& name, const ExpertSizes& s) {
  Graph& graph = m.graph();
  const int64_t ranks = m.input().expert_ranks;
  require_even_parts(name, s.experts, ranks);
  const int64_t rows = graph.shape(x)[0], capacity = expert_capacity(rows, s.experts, s.capacity_factor);
  const int64_t slots = s.experts * capacity;
  const Routes routes = find_routes(m, x, name, s, capacity);
  // One slot more takes the tokens that are left out; nothing reads it.
  const ValueId empty = ops::constant(graph, Shape{slots + 1, s.width}, 0.0);
  ValueId taken =
      ops::scatter_nd(graph, empty, ops::reshape(graph, routes.slots, {rows, 1}), x, "none", 0, name + ".taken");
  taken = ops::slice(graph, taken, {0, 0}, {slots, s.width});
  taken = ops::reshape(graph, taken, {s.experts, capacity, s.width}, name + ".of_experts");
  taken = send_to_experts(graph, taken, ranks, name);
  const ValueId wide = expert_layer(m, taken, name + ".fc1", s.experts, s.hidden);
  const ValueId active = ops::gelu(graph, wide, false, name + ".gelu");
  const ValueId computed = expert_layer(m, active, name + ".fc2", s.experts, s.width);
  const ValueId results = send_from_experts(graph, computed, ranks, name);
  const ValueId table =
      ops::pad(graph, ops::reshape(graph, results, {slots, s.width}), {0, 0}, {1, 0}, 0, name + ".results");
  const ValueId given = ops::embedding(graph, table, routes.slots, name + ".given");
  m.add_loss(ops::multiply_scalar(graph, routes.balance, s.balance));
  return ops::multiply(graph, given, ops::reshape(graph, routes.gates, {rows, 1}), name);
}

}  // namespace weft::models
