#include "weft/ops/dimensions.h"

#include <algorithm>
#include <numeric>

namespace weft::ops {

namespace {

constexpr int kWhole = DimensionRule::kWhole;

}  // namespace

std::vector<int> count_up(int count, int first) {
  std::vector<int> labels(static_cast<size_t>(count));
  std::iota(labels.begin(), labels.end(), first);
  return labels;
}

DimensionRule elementwise_dimensions(const DimensionContext& context) {
  const Shape& result = context.outputs.front().shape;
  DimensionRule rule;
  const auto labels_of = [&](const Shape& shape) {
    std::vector<int> labels(static_cast<size_t>(shape.rank()), kWhole);
    for (int dimension = 0; dimension < shape.rank(); ++dimension) {
      const int in_result = dimension + result.rank() - shape.rank();
      if (in_result >= 0 && shape[dimension] == result[in_result] && shape[dimension] > 1)
        labels[static_cast<size_t>(dimension)] = in_result;
    }
    return labels;
  };
  for (const TensorType& input : context.inputs) rule.inputs.push_back(labels_of(input.shape));
  for (const TensorType& output : context.outputs) rule.outputs.push_back(labels_of(output.shape));
  return rule;
}

DimensionRule linear_dimensions(const DimensionContext& context) {
  DimensionRule rule = elementwise_dimensions(context);
  rule.is_linear = true;
  return rule;
}

DimensionRule channel_dimensions(const DimensionContext& context) {
  const auto labels_of = [](const Shape& shape) {
    std::vector<int> labels(static_cast<size_t>(shape.rank()), kWhole);
    if (!labels.empty()) labels[shape.rank() == 1 ? 0 : 1] = 0;
    return labels;
  };
  DimensionRule rule;
  for (const TensorType& input : context.inputs) rule.inputs.push_back(labels_of(input.shape));
  for (const TensorType& output : context.outputs) rule.outputs.push_back(labels_of(output.shape));
  return rule;
}

DimensionRule same_but(const DimensionContext& context, const std::vector<int>& axes) {
  std::vector<int> labels = count_up(context.inputs.front().shape.rank());
  for (const int axis : axes) labels[static_cast<size_t>(axis)] = kWhole;
  DimensionRule rule;
  rule.inputs.assign(context.inputs.size(), labels);
  rule.outputs.assign(context.outputs.size(), labels);
  return rule;
}

void take_result_shape(Attributes& attributes, const PartContext& context) {
  attributes.set("shape", context.outputs.front().dims());
}

}  // namespace weft::ops
