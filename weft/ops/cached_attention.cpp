// Causal attention over the keys and values of earlier calls, which states keep: for models that generate.
#include <fmt/format.h>

#include <cmath>

#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {
namespace {

std::vector<TensorType> infer_cached_attention(const InferContext& context) {
  for (int operand = 0; operand < 5; ++operand) {
    context.require_rank(operand, 4);
    context.require_dtype(operand, DType::f32);
  }
  context.require_same_shape(1, 0);
  context.require_same_shape(2, 0);
  context.require_same_shape(4, 3);
  context.require_rank(5, 0);
  context.require_dtype(5, DType::i64);
  const Shape &q = context.shape(0), &cache = context.shape(3);
  if (cache[0] != q[0] || cache[1] != q[1] || cache[3] != q[3] || cache[2] < q[2])
    context.fail(
        fmt::format("{} wants caches of as many samples and heads and of its width, with room for {} rows or "
                    "more, got {}",
                    context.describe(0), q[2], context.describe(3)));
  return {typed(DType::f32, q), typed(DType::f32, cache), typed(DType::f32, cache)};
}

OpExample cached_example(std::string label, Shape queries, int64_t capacity, int64_t position) {
  const Shape cache{queries[0], queries[1], capacity, queries[3]};
  const auto at = static_cast<double>(position);
  return {std::move(label),
          {f32(queries), f32(queries), f32(queries), f32(cache), f32(cache), i64({})},
          {{"scale", 0.5}},
          {{}, {}, {}, {}, {}, {at, at + 1}}};
}

OpDef cached_attention_op() {
  OpDef op;
  op.name = "cached_attention";
  op.summary =
      "Causal attention of the tokens from `position` on, whose keys and values join those of earlier calls in the "
      "caches.";
  op.inputs = {"q", "k", "v", "keys", "values", "position"};
  op.outputs = {"y", "keys", "values"};
  op.attributes = {attribute("scale", 1.0, "factor of the scores, before the softmax")};
  op.infer = infer_cached_attention;
  // Over the whole cache: how much of it is read is known when it runs.
  op.flops = [](const auto& inputs, const auto&, const Attributes&) {
    return 4 * inputs[0].elements() * inputs[3].shape[2];
  };
  op.in_place = {{1, 3}, {2, 4}};
  op.is_update = true;
  op.examples = {cached_example("one token", {1, 3, 1, 16}, 9, 4),
                 cached_example("the first tokens", {2, 2, 5, 8}, 7, 0),
                 cached_example("up to the end", {1, 2, 3, 20}, 8, 5), cached_example("wide", {1, 1, 2, 33}, 40, 30)};
  return of_work(work::kMatrixProducts, std::move(op));
}

}  // namespace

void add_cached_attention_ops(OpRegistry& registry) { registry.add(cached_attention_op()); }

CachedAttentionResult cached_attention(Graph& graph, ValueId q, ValueId k, ValueId v, ValueId keys, ValueId values,
                                       ValueId position, const std::string& name) {
  const double scale = 1 / std::sqrt(static_cast<double>(graph.shape(q)[graph.shape(q).rank() - 1]));
  const auto results = graph.add_node("cached_attention", {q, k, v, keys, values, position}, {{"scale", scale}}, name);
  return {results[0], results[1], results[2]};
}

}  // namespace weft::ops
