// Scaled dot-product attention, composed of matrix products and a softmax, and the mask of causal attention; and the
// same as one op for inference, which keeps no scores in memory.
#include <cmath>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {
namespace {

std::vector<TensorType> infer_causal_mask(const InferContext& context) {
  const DType dtype = context.require_compute_dtype(0);
  const Shape& scores = context.shape(0);
  const int rank = scores.rank();
  if (rank < 2) {
    context.fail(fmt::format("scores want 2 or more dimensions (.., queries, keys), got {}", context.describe(0)));
  }
  if (scores[rank - 2] > scores[rank - 1]) {
    context.fail(fmt::format("{} has {} queries for {} keys: the first queries would see nothing; give as many keys",
                             context.describe(0), scores[rank - 2], scores[rank - 1]));
  }
  return {typed(dtype, scores)};
}

std::vector<ValueId> grad_causal_mask(GradContext& context) {
  return {context.graph.add("causal_mask", {context.output_gradients[0]}, {{"value", 0.0}},
                            gradient_name(context, "scores"))};
}

/// Queries and keys of the scores, [..,T,S], without the dimensions before.
Pair score_size(const Shape& q, const Shape& k, bool transpose_k) {
  return {q[q.rank() - 2], k[k.rank() - (transpose_k ? 2 : 1)]};
}

std::vector<TensorType> infer_fused_attention(const InferContext& context) {
  const DType dtype = context.require_compute_dtype(0);
  const Shape &q = context.shape(0), &k = context.shape(1), &v = context.shape(2);
  const int rank = q.rank();
  const bool transpose_k = context.attributes.boolean("transpose_k");
  for (const int operand : {1, 2}) {
    context.require_dtype(operand, dtype);
    context.require_rank(operand, rank);
  }
  if (rank < 2) context.fail(fmt::format("wants queries [..,T,D], got {}", context.describe(0)));
  for (int axis = 0; axis < rank - 2; ++axis)
    if (q[axis] != k[axis] || q[axis] != v[axis])
      context.fail(fmt::format("{}, {} and {} differ before their last two dimensions", context.describe(0),
                               context.describe(1), context.describe(2)));
  const auto [queries, keys] = score_size(q, k, transpose_k);
  if (k[rank - (transpose_k ? 1 : 2)] != q[rank - 1] || v[rank - 2] != keys)
    context.fail(fmt::format("queries {}, keys {} and values {} do not fit together", context.describe(0),
                             context.describe(1), context.describe(2)));
  if (context.attributes.boolean("causal") && queries > keys)
    context.fail(fmt::format("{} queries see {} keys: the first would see nothing; give as many keys", queries, keys));
  if (context.input_count() > 3) {
    context.require_dtype(3, dtype);
    std::vector<int64_t> scores(q.begin(), q.end() - 1);
    scores.push_back(keys);
    if (!broadcasts_to(context.shape(3), Shape(scores)))
      context.fail(fmt::format("the mask {} does not broadcast to the scores {}", context.describe(3),
                               to_string(Shape(scores))));
  }
  std::vector<int64_t> dims(q.begin(), q.end() - 1);
  dims.push_back(v[rank - 1]);
  return {typed(dtype, Shape(dims))};
}

OpDef fused_attention_op() {
  OpDef op;
  op.name = "fused_attention";
  op.summary =
      "softmax(scale q k^T + mask) v without the scores in memory; for inference: made by the pass fuse_attention "
      "only.";
  op.inputs = {"q", "k", "v", "mask?"};
  op.outputs = {"output"};
  op.attributes = {attribute("scale", 1.0, "factor of the scores"),
                   attribute("causal", false, "query row sees the keys up to row + (S - T)"),
                   attribute("transpose_k", true, "k is [..,S,D]; else [..,D,S]")};
  op.infer = infer_fused_attention;
  op.flops = [](const auto& inputs, const auto& outputs, const Attributes& attributes) {
    const Shape &q = inputs[0].shape, &v = inputs[2].shape;
    const int64_t keys = score_size(q, inputs[1].shape, attributes.boolean("transpose_k"))[1];
    const int64_t rows = v[v.rank() - 1] == 0 ? 0 : outputs[0].shape.elements() / v[v.rank() - 1];
    return 2 * rows * keys * (q[q.rank() - 1] + v[v.rank() - 1]) + 5 * rows * keys;
  };
  op.precision = PrecisionRule::follow;
  const auto example = [](std::string label, Shape q, Shape k, Shape v, Attributes attributes = {}) {
    return OpExample{
        std::move(label), {f32(std::move(q)), f32(std::move(k)), f32(std::move(v))}, std::move(attributes), {}};
  };
  op.examples = {example("heads", {2, 3, 5, 8}, {2, 3, 5, 8}, {2, 3, 5, 8}, {{"scale", 0.35}}),
                 example("causal", {1, 2, 37, 16}, {1, 2, 37, 16}, {1, 2, 37, 16}, {{"causal", true}}),
                 example("causal, one query of many keys", {2, 1, 9}, {2, 300, 9}, {2, 300, 9}, {{"causal", true}}),
                 example("more keys than a tile", {1, 70, 20}, {1, 333, 20}, {1, 333, 33}),
                 example("keys as columns", {2, 6, 5}, {2, 5, 19}, {2, 19, 4}, {{"transpose_k", false}}),
                 example("matrices", {3, 4}, {7, 4}, {7, 2})};
  op.examples.push_back(
      {"a mask for all heads", {f32({2, 3, 4, 6}), f32({2, 3, 9, 6}), f32({2, 3, 9, 6}), f32({2, 1, 4, 9})}, {}, {}});
  op.examples.push_back(
      {"a mask of the keys", {f32({2, 3, 4, 6}), f32({2, 3, 9, 6}), f32({2, 3, 9, 6}), f32({2, 1, 1, 9})}, {}, {}});
  return of_work(work::kMatrixProducts, std::move(op));
}

}  // namespace

void add_attention_ops(OpRegistry& registry) {
  registry.add(fused_attention_op());
  OpDef op;
  op.name = "causal_mask";
  op.summary = "Scores [..,T,S] where column <= row + (S - T), else a value that softmax turns into zero.";
  op.inputs = {"scores"};
  op.outputs = {"masked"};
  // Finite, because a row of -infinity alone would become NaN in softmax.
  op.attributes = {attribute("value", -1e30, "what masked scores become")};
  op.infer = infer_causal_mask;
  op.gradient = grad_causal_mask;
  op.dimensions = [](const DimensionContext& context) {
    const int rank = context.inputs[0].shape.rank();
    return same_but(context, {rank - 2, rank - 1});
  };
  op.precision = PrecisionRule::follow;
  op.in_place = {{0, 0}};
  // Small values: next to -1e30 no difference of the others could be seen.
  op.examples = {{"square", {f32({4, 4})}, {{"value", -3.0}}, {}},
                 {"heads", {f32({2, 3, 5, 5})}, {{"value", -2.0}}, {}},
                 {"more keys than queries", {f32({2, 3, 7})}, {{"value", -2.0}}, {}},
                 {"one query", {f32({1, 17})}, {{"value", 0.0}}, {}}};
  registry.add(of_work(work::kCopies, std::move(op)));
}

ValueId attention(Graph& graph, ValueId q, ValueId k, ValueId v, bool causal, const std::string& name) {
  const std::string hint = name.empty() ? "attention" : name;
  const Shape query = graph.shape(q), key = graph.shape(k), value = graph.shape(v);
  if (query.rank() != 4 || key.rank() != 4 || key != value || query[0] != key[0] || query[1] != key[1] ||
      query[3] != key[3]) {
    fail(ErrorKind::shape,
         "[attention] '{}': wants q (batch,heads,queries,width) and k and v (batch,heads,keys,width), got '{}' {}, "
         "'{}' {} and '{}' {}",
         hint, graph.value(q).name, to_string(query), graph.value(k).name, to_string(key), graph.value(v).name,
         to_string(value));
  }
  // The factor goes on q, which has fewer elements than the scores.
  const ValueId scaled = multiply_scalar(graph, q, 1 / std::sqrt(static_cast<double>(query[3])), hint + ".scaled");
  ValueId scores = matmul(graph, scaled, k, false, true, hint + ".scores");
  if (causal) scores = graph.add("causal_mask", {scores}, {}, hint + ".masked");
  return matmul(graph, softmax(graph, scores, -1, hint + ".weights"), v, false, false, hint);
}

}  // namespace weft::ops
