// Scaled dot-product attention, composed of matrix products and a softmax, and the mask of causal attention.
#include <cmath>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"

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

}  // namespace

void add_attention_ops(OpRegistry& registry) {
  OpDef op;
  op.name = "causal_mask";
  op.summary = "Scores [..,T,S] where column <= row + (S - T), else a value that softmax turns into zero.";
  op.inputs = {"scores"};
  op.outputs = {"masked"};
  // Finite, because a row of -infinity alone would become NaN in softmax.
  op.attributes = {attribute("value", -1e30, "what masked scores become")};
  op.infer = infer_causal_mask;
  op.gradient = grad_causal_mask;
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
