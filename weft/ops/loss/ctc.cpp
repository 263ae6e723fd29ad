// Connectionist temporal classification (Graves et al. 2006): the loss of sequences whose labels come in order, but at
// unknown steps.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {
namespace {

/// log_probabilities [T,N,C], targets [N,S] and the lengths [N] that are given, from this operand on.
void require_sequences(const InferContext& context, int first) {
  context.require_dtype(first, DType::f32);
  context.require_rank(first, 3);
  for (int operand = first + 1; operand < context.input_count(); ++operand) {
    context.require_dtype(operand, DType::i32);
    context.require_rank(operand, operand == first + 1 ? 2 : 1);
    if (context.shape(operand)[0] == context.shape(first)[1]) continue;
    context.fail(fmt::format("{} wants one entry for each of the {} sequences of {} (steps, batch, classes), got {}",
                             context.op.inputs[static_cast<size_t>(operand)], context.shape(first)[1],
                             context.describe(first), context.describe(operand)));
  }
  const int64_t blank = context.attributes.integer("blank"), classes = context.shape(first)[2];
  if (blank < 0 || blank >= classes)
    context.fail(fmt::format("blank {} is none of the {} classes of {}; give a number from 0 to {}", blank, classes,
                             context.describe(first), classes - 1));
}

std::vector<AttributeSpec> ctc_attributes() {
  return {attribute("blank", int64_t{0}, "the class that stands for no label"),
          attribute("zero_infinity", false,
                    "loss and gradient 0 where the input is too short for the target, instead of an infinite loss")};
}

/// The recursion's three sums of logarithms for each step and each label or blank between labels.
int64_t recursion_flops(const TensorType& log_probabilities, const TensorType& targets) {
  return 12 * log_probabilities.shape[0] * (2 * targets.elements() + targets.shape[0]);
}

OpExample forward_example(std::string label, Shape shape, int64_t targets, int64_t shortest, const Attributes& given) {
  const int64_t steps = shape[0], batch = shape[1], classes = shape[2];
  // Labels above the blank, which the examples set to 0 or to the last class.
  const bool first = !given.has("blank");
  return {std::move(label),
          {f32(std::move(shape)), i32({batch, targets}), i32({batch}), i32({batch})},
          given,
          {{-3, -0.2},
           {first ? 1.0 : 0.0, static_cast<double>(first ? classes : classes - 1)},
           {static_cast<double>(shortest), static_cast<double>(steps + 1)},
           {1, static_cast<double>(targets + 1)}}};
}

OpExample backward_example(std::string label, Shape shape, int64_t targets, int64_t shortest, const Attributes& given) {
  const int64_t batch = shape[1];
  OpExample example = forward_example(std::move(label), std::move(shape), targets, shortest, given);
  example.inputs.insert(example.inputs.begin(), f32({batch}));
  example.ranges.insert(example.ranges.begin(), OpExample::Range{});
  return example;
}

template <typename Make>
std::vector<OpExample> examples(Make make) {
  return {make("three labels", {8, 2, 5}, 3, 7, {}), make("one label", {4, 3, 2}, 1, 3, {}),
          make("the last class is blank", {9, 2, 4}, 3, 7, Attributes{{"blank", int64_t{3}}}),
          make("some too short", {3, 5, 4}, 2, 1, Attributes{{"zero_infinity", true}}),
          make("many labels", {40, 2, 7}, 17, 36, {})};
}

/// The same call without its last `count` operands.
OpExample without_last(OpExample example, size_t count, std::string label) {
  example.inputs.resize(example.inputs.size() - count);
  example.label = std::move(label);
  return example;
}

OpDef ctc_loss_op() {
  OpDef op;
  op.name = "ctc_loss";
  op.summary =
      "Per sequence, minus the log of the probability of all ways to spread the target over the steps, with blanks "
      "between labels (Graves et al. 2006); NaN for lengths that do not fit and labels that are no class.";
  op.inputs = {"log_probabilities", "targets", "input_lengths?", "target_lengths?"};
  op.outputs = {"losses"};
  op.attributes = ctc_attributes();
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_sequences(context, 0);
    return {f32({context.shape(0)[1]})};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    std::vector<ValueId> operands = context.inputs;
    operands.insert(operands.begin(), context.output_gradients[0]);
    const Attributes attributes = attributes_of(context);
    const std::string name = gradient_name(context, "log_probabilities");
    std::vector<ValueId> gradients(context.inputs.size());
    gradients[0] = context.graph.add("ctc_loss_backward", operands, attributes, name);
    return gradients;
  };
  op.flops = [](const std::vector<TensorType>& inputs, const auto&, const Attributes&) {
    return recursion_flops(inputs[0], inputs[1]);
  };
  op.examples = examples(forward_example);
  op.examples.push_back(without_last(forward_example("", {9, 2, 5}, 4, 8, {}), 1, "target lengths by their padding"));
  op.examples.push_back(without_last(forward_example("", {9, 3, 5}, 4, 8, {}), 2, "all steps"));
  op.examples.back().ranges[1] = {0, 5};
  return op;
}

OpDef ctc_loss_backward_op() {
  OpDef op;
  op.name = "ctc_loss_backward";
  op.summary =
      "Gradient of ctc_loss: minus loss_gradient times the probability that the step belongs to the class, given the "
      "target.";
  op.inputs = {"loss_gradient", "log_probabilities", "targets", "input_lengths?", "target_lengths?"};
  op.outputs = {"log_probabilities_gradient"};
  op.attributes = ctc_attributes();
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_sequences(context, 1);
    context.require_dtype(0, DType::f32);
    if (context.shape(0) != Shape{context.shape(1)[1]})
      context.fail(fmt::format("loss_gradient wants one number for each of the {} sequences, got {}",
                               context.shape(1)[1], context.describe(0)));
    return {f32(context.shape(1))};
  };
  op.flops = [](const std::vector<TensorType>& inputs, const auto&, const Attributes&) {
    return 2 * recursion_flops(inputs[1], inputs[2]);
  };
  op.examples = examples(backward_example);
  op.examples.push_back(without_last(backward_example("", {9, 2, 5}, 4, 8, {}), 1, "target lengths by their padding"));
  op.examples.push_back(without_last(backward_example("", {9, 3, 5}, 4, 8, {}), 2, "all steps"));
  op.examples.back().ranges[2] = {0, 5};
  return op;
}

OpDef ctc_count_correct_op() {
  OpDef op;
  op.name = "ctc_count_correct";
  op.summary =
      "Number of sequences whose best path, the largest class of each step, is the target once repetitions are merged "
      "and blanks taken out.";
  op.inputs = {"logits", "targets", "input_lengths?", "target_lengths?"};
  op.outputs = {"count"};
  op.attributes = {ctc_attributes()[0]};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    require_sequences(context, 0);
    return {f32({})};
  };
  op.flops = [](const std::vector<TensorType>& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.examples = {forward_example("one label of two classes", {2, 9, 2}, 1, 2, {}),
                 forward_example("the last class is blank", {3, 9, 3}, 2, 3, Attributes{{"blank", int64_t{2}}}),
                 without_last(forward_example("", {3, 9, 3}, 2, 3, {}), 2, "all steps")};
  op.examples.back().ranges[1] = {0, 3};
  return op;
}

}  // namespace

void add_ctc_ops(OpRegistry& registry) {
  registry.add(of_work(work::kLosses, ctc_loss_op()));
  registry.add(of_work(work::kLosses, ctc_loss_backward_op()));
  registry.add(of_work(work::kLosses, ctc_count_correct_op()));
}

namespace {

std::vector<ValueId> operands_of(ValueId steps, const CtcTargets& targets) {
  std::vector<ValueId> operands{steps, targets.labels};
  if (targets.input_lengths.valid()) operands.push_back(targets.input_lengths);
  if (targets.target_lengths.valid()) operands.push_back(targets.target_lengths);
  check(targets.input_lengths.valid() || !targets.target_lengths.valid(), "target lengths come with input lengths");
  return operands;
}

}  // namespace

ValueId ctc_loss(Graph& graph, ValueId log_probabilities, const CtcTargets& targets, const CtcOptions& options,
                 const std::string& name) {
  return graph.add("ctc_loss", operands_of(log_probabilities, targets),
                   {{"blank", options.blank}, {"zero_infinity", options.zero_infinity}}, name);
}

ValueId ctc_count_correct(Graph& graph, ValueId logits, const CtcTargets& targets, int64_t blank,
                          const std::string& name) {
  return graph.add("ctc_count_correct", operands_of(logits, targets), {{"blank", blank}}, name);
}

}  // namespace weft::ops
