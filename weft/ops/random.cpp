// Random ops: pure functions of (seed, step, stream, element), so that nothing random has to be stored.
#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {
namespace {

std::vector<TensorType> infer_dropout(const InferContext& context) {
  const DType dtype = context.require_compute_dtype(0);
  for (const int scalar : {1, 2}) {
    context.require_rank(scalar, 0);
    context.require_dtype(scalar, DType::i64);
  }
  const std::vector<int64_t>&blocks = context.attributes.integers("blocks"),
        &parts = context.attributes.integers("parts");
  if (blocks.size() != parts.size() || static_cast<int>(blocks.size()) != context.input_count() - 3)
    context.fail(fmt::format("blocks and parts want a number for each of the {} places", context.input_count() - 3));
  for (size_t at = 0; at < blocks.size(); ++at) {
    require_place(context, 3 + static_cast<int>(at));
    if (blocks[at] < 1 || parts[at] < 1) context.fail("blocks and parts are at least 1");
  }
  const double probability = context.attributes.real("probability");
  if (!(probability >= 0 && probability < 1)) {
    context.fail(fmt::format("probability must be at least 0 and below 1, got {}", probability));
  }
  return {typed(dtype, context.shape(0))};
}

/// Linear in x: the same mask and factor, drawn again.
std::vector<ValueId> grad_dropout(GradContext& context) {
  std::vector<ValueId> operands = context.inputs;
  operands[0] = context.output_gradients[0];
  std::vector<ValueId> gradients(operands.size());
  gradients[0] = context.graph.add("dropout", operands, attributes_of(context), gradient_name(context, "x"));
  return gradients;
}

/// Along any dimension: what is drawn for an element follows from its place in the whole tensor.
DimensionRule dropout_dimensions(const DimensionContext& context) {
  DimensionRule rule = elementwise_dimensions(context);
  if (context.inputs.size() > 4) return {};  // it is a part of a part already
  rule.placed = count_up(context.inputs[0].shape.rank());
  return rule;
}

/// The innermost split stands first.
void take_blocks(Attributes& attributes, const PartContext& context) {
  const Shape &whole = context.whole.outputs[0].shape, &part = context.outputs[0];
  int dimension = 0;
  while (whole[dimension] == part[dimension]) ++dimension;
  int64_t block = part[dimension] / context.blocks;
  for (int inner = dimension + 1; inner < part.rank(); ++inner) block *= part[inner];
  std::vector<int64_t> blocks = attributes.integers("blocks"), parts = attributes.integers("parts");
  blocks.insert(blocks.begin(), block);
  parts.insert(parts.begin(), context.ranks);
  attributes.set("blocks", blocks);
  attributes.set("parts", parts);
}

OpExample with_places(OpExample example, std::vector<int64_t> blocks, std::vector<int64_t> parts) {
  for (size_t place = 0; place < blocks.size(); ++place) {
    example.inputs.push_back(i64({}));
    example.ranges.push_back({0, static_cast<double>(parts[place])});
  }
  example.attributes.set("blocks", std::move(blocks));
  example.attributes.set("parts", std::move(parts));
  return example;
}

OpExample example(std::string label, Shape shape, double probability, int64_t stream) {
  return {std::move(label),
          {f32(std::move(shape)), i64({}), i64({})},
          {{"probability", probability}, {"stream", stream}},
          {{-1, 1}, {0, 1000}, {0, 1000}}};
}

}  // namespace

void add_random_ops(OpRegistry& registry) {
  OpDef op;
  op.name = "dropout";
  op.summary =
      "Zero with the given probability, else x / (1 - probability) (Srivastava et al. 2014). With places x is a part "
      "of "
      "a tensor, and its elements are drawn as there.";
  op.inputs = {"x", "seed", "step", "place?", "outer_place?"};
  op.outputs = {"output"};
  op.attributes = {required_attribute("probability", 0.5, "of an element to become zero, at least 0 and below 1"),
                   attribute("stream", int64_t{0}, "number that keeps the dropouts of one step apart"),
                   attribute("blocks", std::vector<int64_t>{},
                             "for each place, the elements that lie behind each other in the part as in the tensor"),
                   attribute("parts", std::vector<int64_t>{}, "for each place, the parts of the tensor")};
  op.infer = infer_dropout;
  op.gradient = grad_dropout;
  op.dimensions = dropout_dimensions;
  op.of_part = take_blocks;
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.precision = PrecisionRule::follow;
  op.in_place = {{0, 0}};
  op.examples = {example("half", {4, 8}, 0.5, 0),
                 example("a tenth, odd size", {3, 7, 5}, 0.1, 3),
                 example("nothing dropped", {10}, 0.0, 1),
                 example("nearly everything", {2, 3, 3, 3}, 0.9, 2),
                 with_places(example("part of a tensor", {5, 6}, 0.5, 1), {6}, {3}),
                 with_places(example("part of a part", {4, 70}, 0.3, 1), {14, 280}, {2, 4})};
  registry.add(of_work(work::kElementwise, std::move(op)));
}

ValueId dropout(Graph& graph, ValueId x, ValueId seed, ValueId step, double probability, int64_t stream,
                const std::string& name) {
  return graph.add("dropout", {x, seed, step}, {{"probability", probability}, {"stream", stream}}, name);
}

}  // namespace weft::ops
