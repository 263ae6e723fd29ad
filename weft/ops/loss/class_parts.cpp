// Cross-entropy and the count of right predictions where each rank has the logits of some classes (Shoeybi et al. 2019,
// "Megatron-LM", section 3): the largest logit and the sum of the exponentials go over the ranks, and the logits stay.
#include "weft/ops/loss/class_parts.h"

#include <fmt/format.h>

#include "weft/graph/collective.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

std::vector<AttributeSpec> terms_attributes() {
  return {attribute("label_smoothing", 0.0, "as of cross_entropy"),
          attribute("ignore_index", int64_t{-100}, "as of cross_entropy"),
          required_attribute("parts", int64_t{2}, "in which the classes are split")};
}

/// Logits [N,C] in operand `logits`, and numbers per row in those of `rows`.
void require_rows(const InferContext& context, int logits, std::initializer_list<int> rows) {
  context.require_rank(logits, 2);
  context.require_dtype(logits, DType::f32);
  for (const int operand : rows)
    if (context.shape(operand) != Shape{context.shape(logits)[0]})
      context.fail(
          fmt::format("{} wants a number for each row of {}", context.describe(operand), context.describe(logits)));
  if (context.attributes.integer("parts") < 1) context.fail("parts must be at least 1");
}

OpDef terms_op() {
  OpDef op;
  op.name = kClassTerms;
  op.summary =
      "Of a rank's part of the classes, per row: the sum of exp(logit - largest), and what the target takes of the "
      "logits.";
  op.inputs = {"logits", "labels", "largest", "place"};
  op.outputs = {"terms"};
  op.attributes = terms_attributes();
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_rows(context, 0, {1, 2});
    context.require_dtype(1, DType::i32);
    context.require_dtype(2, DType::f32);
    require_place(context, 3);
    return {f32({2, context.shape(0)[0]})};
  };
  op.flops = [](const std::vector<TensorType>& inputs, const std::vector<TensorType>&, const Attributes&) {
    return 3 * inputs.front().elements();
  };
  const std::vector<OpExample::Range> ranges{{-2, 2}, {0, 5}, {1, 2}, {0, 2}};
  op.examples = {{"two parts", {f32({6, 5}), i32({6}), f32({6}), i64({})}, {{"parts", int64_t{2}}}, ranges},
                 {"three parts", {f32({3, 17}), i32({3}), f32({3}), i64({})}, {{"parts", int64_t{3}}}, ranges},
                 {"label smoothing",
                  {f32({4, 5}), i32({4}), f32({4}), i64({})},
                  {{"parts", int64_t{2}}, {"label_smoothing", 0.1}},
                  ranges}};
  return op;
}

OpDef backward_op() {
  OpDef op;
  op.name = kClassTermsBackward;
  op.summary =
      "Gradient of cross_entropy for a rank's part of the classes: loss_gradient times (exp(logit - log_sum) - "
      "target).";
  op.inputs = {"loss_gradient", "logits", "labels", "log_sum", "place"};
  op.outputs = {"logits_gradient"};
  op.attributes = terms_attributes();
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_rows(context, 1, {0, 2, 3});
    context.require_dtype(0, DType::f32);
    context.require_dtype(2, DType::i32);
    context.require_dtype(3, DType::f32);
    require_place(context, 4);
    return {f32(context.shape(1))};
  };
  op.flops = [](const std::vector<TensorType>&, const std::vector<TensorType>& outputs, const Attributes&) {
    return 5 * outputs.front().elements();
  };
  const std::vector<OpExample::Range> ranges{{-1, 1}, {-2, 2}, {0, 5}, {2, 4}, {0, 2}};
  op.examples = {
      {"two parts", {f32({6}), f32({6, 5}), i32({6}), f32({6}), i64({})}, {{"parts", int64_t{2}}}, ranges},
      {"three parts", {f32({3}), f32({3, 17}), i32({3}), f32({3}), i64({})}, {{"parts", int64_t{3}}}, ranges},
      {"label smoothing",
       {f32({4}), f32({4, 5}), i32({4}), f32({4}), i64({})},
       {{"parts", int64_t{2}}, {"label_smoothing", 0.1}},
       ranges}};
  return op;
}

/// What is known of each row of logits [N,C] once the ranks have told each other their largest.
struct LargestLogits {
  ValueId value, index;  // f32 [N]: the largest of all, and the first class that has it
};

LargestLogits largest_of(ComposedContext& context, ValueId logits) {
  Graph& graph = context.graph;
  const int64_t rows = graph.shape(logits)[0], classes = graph.shape(logits)[1], ranks = context.ranks;
  const ValueId own = reduce_max(graph, logits, {1}, false, context.name + ".own_largest");
  const ValueId at = cast(graph, argmax(graph, logits, 1, false), DType::f32);
  const ValueId first = multiply_scalar(graph, cast(graph, context.place, DType::f32), static_cast<double>(classes));
  const ValueId both =
      concat(graph, {reshape(graph, own, {1, 1, rows}), reshape(graph, add(graph, at, first), {1, 1, rows})}, 1);
  const ValueId all =
      graph.add(kAllGather, {both}, {{"ranks", ranks}, {kAxis, context.axis}}, context.name + ".all_largest");
  const auto row = [&](int64_t which) {
    return reshape(graph, slice(graph, all, {0, which, 0}, {ranks, which + 1, rows}), {ranks, rows});
  };
  const ValueId values = row(0);
  const ValueId largest = reduce_max(graph, values, {0}, false, context.name + ".largest");
  const ValueId none = constant(graph, {}, 1e9);
  const ValueId found = where(graph, greater_equal(graph, values, largest), row(1), none);
  return {largest, reduce_min(graph, found, {0}, false, context.name + ".largest_class")};
}

Attributes attributes_of_terms(const ComposedContext& context) {
  return {{"label_smoothing", context.whole.attributes.real("label_smoothing")},
          {"ignore_index", context.whole.attributes.integer("ignore_index")},
          {"parts", context.ranks}};
}

/// Of all ranks, per row: the logarithm of the sum of the exponentials, and what the target takes of the logits.
struct RowTerms {
  ValueId log_sum, taken;  // f32 [N]
};

RowTerms terms_of(ComposedContext& context, ValueId logits, ValueId labels) {
  Graph& graph = context.graph;
  const int64_t rows = graph.shape(logits)[0];
  const ValueId largest = largest_of(context, logits).value;
  const ValueId own = graph.add(kClassTerms, {logits, labels, largest, context.place}, attributes_of_terms(context),
                                context.name + ".own_terms");
  const ValueId terms = all_reduce(graph, own, "sum", context.name + ".terms", context.axis);
  const auto row = [&](int64_t which) {
    return reshape(graph, slice(graph, terms, {which, 0}, {which + 1, rows}), {rows});
  };
  return {add(graph, log(graph, row(0)), largest, context.name + ".log_sum"), row(1)};
}

}  // namespace

void add_class_part_ops(OpRegistry& registry) {
  registry.add(of_work(work::kLosses, terms_op()));
  registry.add(of_work(work::kLosses, backward_op()));
}

std::vector<ValueId> cross_entropy_in_parts(ComposedContext& context) {
  Graph& graph = context.graph;
  const ValueId labels = context.inputs[1];
  const RowTerms terms = terms_of(context, context.inputs[0], labels);
  const ValueId ignored = constant(graph, DType::i32, {}, context.whole.attributes.integer("ignore_index"));
  const ValueId counts = not_equal(graph, labels, ignored, context.name + ".counts");
  return {multiply(graph, subtract(graph, terms.log_sum, terms.taken), counts, context.name)};
}

std::vector<ValueId> cross_entropy_backward_in_parts(ComposedContext& context) {
  const ValueId log_sum = terms_of(context, context.inputs[1], context.inputs[2]).log_sum;
  return {context.graph.add(kClassTermsBackward,
                            {context.inputs[0], context.inputs[1], context.inputs[2], log_sum, context.place},
                            attributes_of_terms(context), context.name)};
}

std::vector<ValueId> count_correct_in_parts(ComposedContext& context) {
  Graph& graph = context.graph;
  const ValueId labels = cast(graph, context.inputs[1], DType::f32);
  const ValueId is_right = equal(graph, largest_of(context, context.inputs[0]).index, labels);
  return {reduce_sum(graph, is_right, {}, false, context.name)};
}

}  // namespace weft::ops
