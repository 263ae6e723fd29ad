// What ops say of operands that are split along dimensions, against the op on whole operands: along each label, and in
// blocks, the ranks together have what one has.
#include <set>

#include "tests/ops_registry/example_cases.h"
#include "weft/graph/sharding.h"
#include "weft/passes/ranks/dimension_rules.h"

namespace weft::registry_tests {
namespace {

std::vector<const OpDef*> ops_with_dimensions() {
  std::vector<const OpDef*> some = all_ops();
  std::erase_if(some, [](const OpDef* op) { return !op->dimensions || op->name == "all_reduce"; });
  return some;
}

class SplitDimensions : public ::testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Ops, SplitDimensions, ::testing::ValuesIn(ops_with_dimensions()), op_name);

Sharding sharding_of(const Shape& whole, int dimension, int64_t ranks, int64_t blocks) {
  return passes::sharding_of(whole, {dimension, blocks}, {"tensor", ranks});
}

/// One example along one label.
struct PartCase {
  const OpDef& op;
  const OpExample& example;
  const DimensionRule& rule;
  int label = 0;
  int64_t ranks = 2, blocks = 1;
};

std::vector<Tensor> evaluate_parts(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  return evaluate_node(build_graph(op, types, attributes).signature(), inputs, reference_backend());
}

std::optional<int> dimension_of(const std::vector<int>& labels, int label) {
  return passes::dimension_of(labels, label);
}

/// What the ranks have of each result, by rank.
std::vector<std::vector<Tensor>> run_parts(const PartCase& c, const std::vector<Tensor>& inputs,
                                           const std::vector<Tensor>& whole) {
  std::vector<TensorType> input_types, output_types;
  for (const Tensor& input : inputs) input_types.push_back(input.type());
  for (const Tensor& output : whole) output_types.push_back(output.type());
  const NodeSignature node = build_graph(c.op, input_types, c.example.attributes).signature();
  const DimensionContext context{input_types, output_types, node.attributes};
  std::vector<std::vector<Tensor>> results;
  for (int64_t rank = 0; rank < c.ranks; ++rank) {
    std::vector<Tensor> own;
    std::vector<Shape> part_inputs, part_outputs;
    for (size_t at = 0; at < inputs.size(); ++at) {
      const auto dimension = dimension_of(c.rule.inputs[at], c.label);
      own.push_back(dimension
                        ? part_of(inputs[at], sharding_of(inputs[at].shape(), *dimension, c.ranks, c.blocks), rank)
                        : inputs[at]);
      part_inputs.push_back(own.back().shape());
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      part_outputs.push_back(whole[at].shape());
      if (const auto dimension = dimension_of(c.rule.outputs[at], c.label)) part_outputs.back()[*dimension] /= c.ranks;
    }
    Attributes attributes = node.attributes;
    if (c.op.of_part) c.op.of_part(attributes, {context, part_inputs, part_outputs, c.ranks, c.blocks});
    if (std::count(c.rule.placed.begin(), c.rule.placed.end(), c.label) > 0) {
      Tensor place(DType::i64, Shape{});
      *place.data_as<int64_t>() = rank;
      const auto at = std::find(c.op.inputs.begin(), c.op.inputs.end(), "place?") - c.op.inputs.begin();
      own.insert(own.begin() + at, std::move(place));
    }
    results.push_back(evaluate_parts(c.op, own, attributes));
  }
  return results;
}

/// From what the ranks have.
Tensor joined(const PartCase& c, size_t output, const std::vector<std::vector<Tensor>>& parts, const Tensor& whole) {
  Tensor result(whole.type());
  if (const auto dimension = dimension_of(c.rule.outputs[output], c.label)) {
    for (int64_t rank = 0; rank < c.ranks; ++rank)
      put_part(result, parts[static_cast<size_t>(rank)][output],
               sharding_of(whole.shape(), *dimension, c.ranks, c.blocks), rank);
    return result;
  }
  const Joined how = output < c.rule.joined.size() ? c.rule.joined[output] : Joined::sum;
  for (int64_t i = 0; i < whole.elements(); ++i) {
    double sum = 0, all = 1;
    for (const std::vector<Tensor>& own : parts) {
      const double value = element(own[output], i);
      sum += value;
      all *= value;
    }
    const double ranks = static_cast<double>(c.ranks);
    reference::store_element(result.dtype(), result.data(), i,
                             how == Joined::sum    ? sum
                             : how == Joined::mean ? sum / ranks
                                                   : all);
  }
  return result;
}

void expect_nearly_equal(const Tensor& one, const Tensor& other) {
  ASSERT_EQ(one.type(), other.type());
  double largest = 1;
  for (int64_t i = 0; i < other.elements(); ++i) largest = std::max(largest, std::abs(element(other, i)));
  for (int64_t i = 0; i < one.elements(); ++i) ASSERT_NEAR(element(one, i), element(other, i), 2e-6 * largest) << i;
}

/// The fewest ranks that can share the label's dimensions in so many blocks; 1 where none can.
int64_t ranks_for(const PartCase& c, const std::vector<Tensor>& inputs, const std::vector<Tensor>& whole) {
  const auto divides = [&](int64_t ranks) {
    for (size_t at = 0; at < inputs.size(); ++at)
      if (const auto dimension = dimension_of(c.rule.inputs[at], c.label);
          dimension && inputs[at].shape()[*dimension] % (ranks * c.blocks) != 0)
        return false;
    for (size_t at = 0; at < whole.size(); ++at)
      if (const auto dimension = dimension_of(c.rule.outputs[at], c.label);
          dimension && whole[at].shape()[*dimension] % (ranks * c.blocks) != 0)
        return false;
    return true;
  };
  for (int64_t ranks = 2; ranks <= 33; ++ranks)
    if (divides(ranks)) return ranks;
  return 1;
}

std::set<int> labels_of(const DimensionRule& rule) {
  std::set<int> labels;
  for (const auto* tensors : {&rule.inputs, &rule.outputs})
    for (const std::vector<int>& tensor : *tensors) labels.insert(tensor.begin(), tensor.end());
  labels.erase(DimensionRule::kWhole);
  for (const int label : rule.composed) labels.erase(label);
  return labels;
}

bool has_elements(const std::vector<Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return tensor.elements() > 0; });
}

TEST_P(SplitDimensions, TheRanksTogetherHaveWhatOneHas) {
  const OpDef& op = *GetParam();
  int checked = 0;
  for (const OpExample& example : op.examples) {
    SCOPED_TRACE(example.label);
    const std::vector<Tensor> inputs = draw_inputs(op, example, 5);
    const ExampleGraph built = build_graph(op, example);
    const auto rule = passes::rule_of(built.graph, built.graph.node(built.node));
    if (!rule) continue;
    const std::vector<Tensor> whole = evaluate_parts(op, inputs, example.attributes);
    if (!has_elements(inputs) || !has_elements(whole)) continue;
    for (const int label : labels_of(*rule))
      for (const int64_t blocks : {1, 2}) {
        SCOPED_TRACE("label " + std::to_string(label) + " in blocks " + std::to_string(blocks));
        PartCase c{op, example, *rule, label, 2, blocks};
        const bool is_placed = std::count(rule->placed.begin(), rule->placed.end(), label) > 0;
        if (is_placed && blocks > 1 && op.name != "dropout") continue;
        c.ranks = ranks_for(c, inputs, whole);
        if (c.ranks == 1) continue;
        const std::vector<std::vector<Tensor>> parts = run_parts(c, inputs, whole);
        for (size_t output = 0; output < whole.size(); ++output)
          expect_nearly_equal(joined(c, output, parts, whole[output]), whole[output]);
        ++checked;
      }
    if (rule->keeps_order) ++checked;  // below
  }
  EXPECT_GT(checked, 0);
}

/// A reshape of parts is the part of the reshape.
TEST(SplitOrder, IsKeptByAReshapeWhereThePartHasAShape) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{4, 6, 24}, {24, 24}},   {{24, 24}, {4, 6, 3, 4, 2}},
                                                       {{8, 4, 6, 6}, {8, 144}}, {{12}, {1, 12, 1, 1}},
                                                       {{2, 3, 4}, {4, 3, 2}},   {{6, 4}, {3, 8}}};
  int carried = 0;
  for (const auto& [from, to] : shapes)
    for (int dimension = 0; dimension < from.rank(); ++dimension)
      for (const int64_t blocks : {1, 3}) {
        if (from[dimension] % (2 * blocks) != 0) continue;
        const auto split = passes::reshaped({dimension, blocks}, from, to, 2);
        if (!split) continue;
        SCOPED_TRACE(to_string(from) + " along " + std::to_string(dimension) + " to " + to_string(to));
        const Tensor whole = draw_tensor({DType::f32, from, {}}, {}, 3);
        const Tensor reshaped = whole.reinterpreted({DType::f32, to, {}});
        for (int64_t rank = 0; rank < 2; ++rank) {
          const Tensor part = part_of(whole, sharding_of(from, dimension, 2, blocks), rank);
          const Tensor wanted = part_of(reshaped, sharding_of(to, split->dimension, 2, split->blocks), rank);
          ASSERT_EQ(part.bytes(), wanted.bytes());
          EXPECT_EQ(std::memcmp(part.data(), wanted.data(), static_cast<size_t>(part.bytes())), 0);
        }
        ++carried;
      }
  EXPECT_GE(carried, 8);
  EXPECT_EQ(passes::reshaped({1, 3}, {24, 24}, {4, 6, 3, 4, 2}, 2), (passes::DimensionSplit{3, 1})) << "by heads";
  EXPECT_FALSE(passes::reshaped({1, 1}, {24, 24}, {4, 6, 3, 4, 2}, 2)) << "half of the queries and keys";
}

}  // namespace
}  // namespace weft::registry_tests
