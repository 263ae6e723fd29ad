// What ops say of operands that are split over ranks by their elements, against the op on whole operands.
#include "tests/ops_registry/example_cases.h"
#include "weft/graph/sharding.h"

namespace weft::registry_tests {
namespace {

constexpr int64_t kRanks = 2;

std::vector<const OpDef*> ops_of_parts() {
  std::vector<const OpDef*> some = all_ops();
  std::erase_if(some, [](const OpDef* op) { return op->of_split.empty(); });
  return some;
}

class OfSplitOperands : public ::testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Ops, OfSplitOperands, ::testing::ValuesIn(ops_of_parts()), op_name);

/// The shape of all operands that are no single numbers; nullopt where there are several, or none.
std::optional<Shape> shape_of(const OpExample& example) {
  std::optional<Shape> shape;
  for (const TensorType& type : example.inputs) {
    if (type.elements() == 1) continue;
    if (shape && *shape != type.shape) return std::nullopt;
    shape = type.shape;
  }
  return shape;
}

Sharding sharding_of(const Shape& whole) { return {.whole = whole, .flat = MeshAxis{"data", kRanks}}; }

std::vector<Tensor> run_on(const OpDef& op, const OpExample& example, const std::vector<Tensor>& inputs) {
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  return evaluate_node(build_graph(op, types, example.attributes).signature(), inputs, reference_backend());
}

void expect_equal(const Tensor& one, const Tensor& other) {
  ASSERT_EQ(one.type(), other.type());
  for (int64_t i = 0; i < one.elements(); ++i)
    EXPECT_DOUBLE_EQ(load_element(one.dtype(), one.data(), i), load_element(other.dtype(), other.data(), i)) << i;
}

TEST_P(OfSplitOperands, TheRanksTogetherHaveWhatOneHas) {
  const OpDef& op = *GetParam();
  int checked = 0;
  for (const OpExample& example : op.examples) {
    const std::optional<Shape> shape = shape_of(example);
    if (!shape) continue;
    SCOPED_TRACE(example.label);
    const std::vector<Tensor> inputs = draw_inputs(op, example, 5), whole = run_on(op, example, inputs);
    if (op.of_split.front() == OfSplit::elements && whole.front().shape() != *shape) continue;  // more dimensions
    std::vector<std::vector<Tensor>> parts;
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      std::vector<Tensor> own;
      for (const Tensor& input : inputs)
        own.push_back(input.elements() == 1 ? input : part_of(input, sharding_of(*shape), rank));
      parts.push_back(run_on(op, example, own));
    }
    for (size_t output = 0; output < whole.size(); ++output) {
      const OfSplit meaning = op.of_split[std::min(output, op.of_split.size() - 1)];
      if (meaning == OfSplit::elements) {
        Tensor together(whole[output].dtype(), *shape);
        for (int64_t rank = 0; rank < kRanks; ++rank)
          put_part(together, parts[static_cast<size_t>(rank)][output], sharding_of(*shape), rank);
        expect_equal(together, whole[output]);
        continue;
      }
      double sum = 0, product = 1;
      for (const auto& part : parts) {
        const double number = load_element(part[output].dtype(), part[output].data(), 0);
        sum += number;
        product *= number;
      }
      const double wanted = load_element(whole[output].dtype(), whole[output].data(), 0);
      EXPECT_NEAR(meaning == OfSplit::sum ? sum : product, wanted, 1e-6 * std::abs(wanted));
    }
    ++checked;
  }
  EXPECT_GT(checked, 0) << "no example has operands of one shape";
}

}  // namespace
}  // namespace weft::registry_tests
