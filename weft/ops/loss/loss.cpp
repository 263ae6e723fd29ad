// Cross-entropy with label smoothing, and the count of right predictions.
#include <fmt/format.h>

#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"
#include "weft/ops/loss/class_parts.h"

namespace weft::ops {

namespace {

/// Logits [N,C] and one label per row, in the operands of these positions.
void require_classification(const InferContext& context, int logits, int labels) {
  context.require_rank(logits, 2);
  context.require_dtype(logits, DType::f32);
  context.require_rank(labels, 1);
  context.require_dtype(labels, DType::i32);
  if (context.shape(labels)[0] != context.shape(logits)[0])
    context.fail(fmt::format("{} wants one label per row, {} labels, got {} from {}", context.describe(logits),
                             context.shape(logits)[0], context.shape(labels)[0], context.describe(labels)));
}

void require_smoothing(const InferContext& context) {
  const double smoothing = context.attributes.real("label_smoothing");
  if (!(smoothing >= 0 && smoothing < 1))
    context.fail(fmt::format("label_smoothing {} is out of range; give a number from 0 to below 1", smoothing));
}

AttributeSpec smoothing_attribute() {
  return attribute("label_smoothing", 0.0, "share of the target spread evenly over all classes, from 0 to below 1");
}

AttributeSpec ignore_attribute() {
  return attribute("ignore_index", int64_t{-100}, "rows with this label have loss and gradient 0");
}

OpDef cross_entropy_op() {
  OpDef op;
  op.name = "cross_entropy";
  op.summary = "Per row, minus the log-softmax of the label's logit; with label smoothing (Szegedy et al. 2016).";
  op.inputs = {"logits", "labels"};
  op.outputs = {"losses"};
  op.dimensions = [](const DimensionContext&) {
    return DimensionRule{.inputs = {{0, 1}, {0}}, .outputs = {{0}}, .composed = {1}};
  };
  op.in_parts = cross_entropy_in_parts;
  op.attributes = {smoothing_attribute(), ignore_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_classification(context, 0, 1);
    require_smoothing(context);
    return {f32({context.shape(0)[0]})};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Attributes attributes = attributes_of(context);
    const std::vector<ValueId> operands{context.output_gradients[0], context.inputs[0], context.inputs[1]};
    return {context.graph.add("cross_entropy_backward", operands, attributes, gradient_name(context, "logits")),
            ValueId{}};
  };
  // Log-softmax, then a product and a sum with the target.
  op.flops = [](const std::vector<TensorType>& inputs, const std::vector<TensorType>&, const Attributes&) {
    return 6 * inputs.front().elements();
  };
  op.examples = {
      {"five classes", {f32({3, 5}), i32({3})}, {}, {{-2, 2}, {0, 5}}},
      {"label smoothing", {f32({4, 3}), i32({4})}, {{"label_smoothing", 0.1}}, {{-2, 2}, {0, 3}}},
      {"one row", {f32({1, 7}), i32({1})}, {{"label_smoothing", 0.3}}, {{-2, 2}, {0, 7}}},
      {"seventeen classes", {f32({2, 17}), i32({2})}, {}, {{-2, 2}, {0, 17}}},
      {"one class left out", {f32({9, 3}), i32({9})}, {{"ignore_index", int64_t{1}}}, {{-2, 2}, {0, 3}}},
  };
  return op;
}

OpDef cross_entropy_backward_op() {
  OpDef op;
  op.name = "cross_entropy_backward";
  op.summary = "Gradient of cross_entropy: loss_gradient times (softmax(logits) - target), per row.";
  op.inputs = {"loss_gradient", "logits", "labels"};
  op.outputs = {"logits_gradient"};
  op.dimensions = [](const DimensionContext&) {
    return DimensionRule{.inputs = {{0}, {0, 1}, {0}}, .outputs = {{0, 1}}, .composed = {1}};
  };
  op.in_parts = cross_entropy_backward_in_parts;
  op.attributes = {smoothing_attribute(), ignore_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_classification(context, 1, 2);
    require_smoothing(context);
    context.require_dtype(0, DType::f32);
    context.require_same_shape(0, 2);
    return {f32(context.shape(1))};
  };
  op.flops = [](const std::vector<TensorType>&, const std::vector<TensorType>& outputs, const Attributes&) {
    return 7 * outputs.front().elements();
  };
  op.examples = {
      {"five classes", {f32({3}), f32({3, 5}), i32({3})}, {}, {{-1, 1}, {-2, 2}, {0, 5}}},
      {"label smoothing", {f32({4}), f32({4, 3}), i32({4})}, {{"label_smoothing", 0.1}}, {{-1, 1}, {-2, 2}, {0, 3}}},
      {"one row", {f32({1}), f32({1, 7}), i32({1})}, {{"label_smoothing", 0.3}}, {{-1, 1}, {-2, 2}, {0, 7}}},
      {"one class left out",
       {f32({9}), f32({9, 3}), i32({9})},
       {{"ignore_index", int64_t{1}}},
       {{-1, 1}, {-2, 2}, {0, 3}}},
  };
  return op;
}

OpDef count_correct_op() {
  OpDef op;
  op.name = "count_correct";
  op.summary = "Number of rows whose first largest logit is the label.";
  op.inputs = {"logits", "labels"};
  op.outputs = {"count"};
  op.dimensions = [](const DimensionContext&) {
    return DimensionRule{.inputs = {{0, 1}, {0}}, .outputs = {{}}, .composed = {1}};
  };
  op.in_parts = count_correct_in_parts;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_classification(context, 0, 1);
    return {f32({})};
  };
  op.flops = [](const std::vector<TensorType>& inputs, const std::vector<TensorType>&, const Attributes&) {
    return inputs.front().elements();
  };
  op.examples = {
      {"two classes", {f32({9, 2}), i32({9})}, {}, {{-1, 1}, {0, 2}}},
      {"five classes", {f32({13, 5}), i32({13})}, {}, {{-1, 1}, {0, 5}}},
      {"one class", {f32({3, 1}), i32({3})}, {}, {{-1, 1}, {0, 1}}},
  };
  return op;
}

}  // namespace

void add_loss_ops(OpRegistry& registry) {
  registry.add(of_work(work::kLosses, cross_entropy_op()));
  registry.add(of_work(work::kLosses, cross_entropy_backward_op()));
  registry.add(of_work(work::kLosses, count_correct_op()));
  add_class_part_ops(registry);
}

ValueId cross_entropy(Graph& graph, ValueId logits, ValueId labels, double label_smoothing, const std::string& name) {
  return graph.add("cross_entropy", {logits, labels}, {{"label_smoothing", label_smoothing}}, name);
}
ValueId count_correct(Graph& graph, ValueId logits, ValueId labels, const std::string& name) {
  return graph.add("count_correct", {logits, labels}, {}, name);
}

}  // namespace weft::ops
