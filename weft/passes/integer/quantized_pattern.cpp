#include "weft/passes/integer/quantized_pattern.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "weft/ops/integer/requantization.h"
#include "weft/passes/integer/constants.h"

namespace weft::passes {

namespace {

constexpr int64_t kMostConstantBytes = 1 << 20;  // of scales and biases

int64_t resolved(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

bool is_rank_two_transpose(const Node& node) {
  return node.op->name == "transpose" && node.attributes.integers("permutation") == std::vector<int64_t>{1, 0};
}

}  // namespace

std::optional<std::vector<double>> QuantizedPatterns::known(ValueId value) const {
  const auto tensor = constant_value(graph_, backend_, value, kMostConstantBytes);
  return tensor ? std::optional(numbers_of(*tensor)) : std::nullopt;
}

bool QuantizedPatterns::is_read_once(ValueId value) const {
  return users_[index_of(value)].size() == 1 && !is_result_[index_of(value)];
}

std::optional<Dequantized> QuantizedPatterns::find_dequantized(ValueId value) const {
  const Node* node = graph_.producer(value);
  if (node == nullptr) return std::nullopt;
  if (is_rank_two_transpose(*node)) {
    auto inner = find_dequantized(node->inputs[0]);
    if (!inner || inner->is_transposed) return std::nullopt;
    inner->is_transposed = true;
    if (inner->axis >= 0) inner->axis = 1 - inner->axis;
    return inner;
  }
  if (node->op->name != "dequantize_linear") return std::nullopt;
  if (is_packed(graph_.type(node->inputs[0]).dtype) || node->attributes.integer("group") > 0) return std::nullopt;
  auto scales = known(node->inputs[1]);
  if (!scales || scales->empty()) return std::nullopt;
  for (const double scale : *scales)
    if (!std::isfinite(scale)) return std::nullopt;
  const bool per_channel = graph_.shape(node->inputs[1]).rank() == 1;
  const int64_t axis = per_channel ? resolved(node->attributes.integer("axis"), graph_.shape(value).rank()) : -1;
  return Dequantized{node->inputs[0], node->inputs[2], *std::move(scales), axis};
}

std::optional<QuantizedProduct> QuantizedPatterns::find_product(NodeId id) const {
  const Node& node = graph_.node(id);
  QuantizedProduct product;
  product.node = id;
  product.is_convolution = node.op->name == "conv2d";
  const bool has_bias = product.is_convolution && node.inputs.size() == 3;
  if ((!product.is_convolution && node.op->name != "matmul") || (node.inputs.size() != 2 && !has_bias))
    return std::nullopt;
  ValueId a = node.inputs[0];
  if (product.is_convolution) {
    const auto& even = node.attributes.integers("padding");
    product.padding = {even[0], even[1], even[0], even[1]};
    const Node* before = graph_.producer(a);
    if (before != nullptr && before->op->name == "pad" && before->attributes.real("value") == 0) {
      const auto &low = before->attributes.integers("low"), &high = before->attributes.integers("high");
      if (low[0] != 0 || low[1] != 0 || high[0] != 0 || high[1] != 0) return std::nullopt;
      product.padding = {even[0] + low[2], even[1] + low[3], even[0] + high[2], even[1] + high[3]};
      a = before->inputs[0];
    }
  }
  auto left = find_dequantized(a), right = find_dequantized(node.inputs[1]);
  if (!left || !right || left->axis >= 0 || left->is_transposed) return std::nullopt;
  const Shape& out = graph_.shape(node.outputs[0]);
  product.channel_axis = product.is_convolution ? 1 : out.rank() - 1;
  product.channels = out[static_cast<int>(product.channel_axis)];
  int64_t wanted = 0;  // the axis of b that makes channels
  if (!product.is_convolution) {
    if (node.attributes.boolean("transpose_a") || graph_.shape(node.inputs[0]).rank() < 2) return std::nullopt;
    const int rank = graph_.shape(node.inputs[1]).rank();
    wanted = rank - 1;
    if (node.attributes.boolean("transpose_b")) {
      if (rank != 2) return std::nullopt;
      right->is_transposed = !right->is_transposed;
      if (right->axis >= 0) right->axis = 1 - right->axis;
    }
  } else if (right->is_transposed) {
    return std::nullopt;
  }
  if (right->axis >= 0 && right->axis != wanted) return std::nullopt;
  product.a = *std::move(left);
  product.b = *std::move(right);
  if (has_bias) {
    const auto numbers = known(node.inputs[2]);
    if (!numbers || graph_.type(node.inputs[2]).dtype != DType::f32 || graph_.shape(node.inputs[2]).rank() != 1)
      return std::nullopt;
    for (const double number : *numbers) product.bias.push_back(static_cast<float>(number));
  }
  return product;
}

namespace {

/// Whether it is so many whole steps of the sum that the sum still has half of what 32 bits hold.
bool is_whole(double number, const QuantizedProduct& product, int64_t channel) {
  const double b_scale = product.b.axis < 0 ? product.b.scales[0] : product.b.scales[static_cast<size_t>(channel)];
  const double step = product.a.scales[0] * b_scale, steps = std::nearbyint(number / step);
  return std::fabs(steps * step - number) <= std::fabs(number) * 0x1p-20 && std::fabs(steps) <= 0x1p30;
}

}  // namespace

/// One number for each channel.
std::optional<std::vector<float>> QuantizedPatterns::bias_of(ValueId value, const QuantizedProduct& product) const {
  const Shape& shape = graph_.shape(value);
  const int from_end = graph_.shape(graph_.node(product.node).outputs[0]).rank() -
                       static_cast<int>(product.channel_axis);  // the channels' place, counted from the end
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1 && shape.rank() - axis != from_end) return std::nullopt;
  const auto numbers = known(value);
  if (!numbers || graph_.type(value).dtype != DType::f32) return std::nullopt;
  if (numbers->size() != 1 && static_cast<int64_t>(numbers->size()) != product.channels) return std::nullopt;
  std::vector<float> bias;
  for (int64_t channel = 0; channel < product.channels; ++channel) {
    const double number = numbers->size() == 1 ? numbers->front() : (*numbers)[static_cast<size_t>(channel)];
    bias.push_back(static_cast<float>(number));
  }
  return bias;
}

std::optional<QuantizedProduct> QuantizedPatterns::find_biased_product(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.op->name != "add") return std::nullopt;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const ValueId sum = node.inputs[side];
    if (!graph_.value(sum).producer.valid() || !is_read_once(sum) || graph_.shape(sum) != graph_.shape(node.outputs[0]))
      continue;
    auto product = find_product(graph_.value(sum).producer);
    if (!product || !product->bias.empty()) continue;
    auto bias = bias_of(node.inputs[1 - side], *product);
    if (!bias) return std::nullopt;
    product->bias = *std::move(bias);
    return product;
  }
  return std::nullopt;
}

std::optional<QuantizedProduct> QuantizedPatterns::find_product_with_bias(ValueId value) const {
  const NodeId producer = graph_.value(value).producer;
  if (!producer.valid() || !is_read_once(value)) return std::nullopt;
  auto product = graph_.node(producer).op->name == "add" ? find_biased_product(producer) : find_product(producer);
  for (size_t channel = 0; product && channel < product->bias.size(); ++channel)
    if (!is_whole(product->bias[channel], *product, static_cast<int64_t>(channel))) return std::nullopt;
  return product;
}

/// Of the reals behind a conversion to integers of this scale.
std::optional<QuantizedAffine> QuantizedPatterns::find_affine(const Node& node, double scale) const {
  if (node.op->name != "batch_norm_inference" || node.inputs.size() != 5 || !(scale > 0) ||
      node.attributes.text("activation") != "none")
    return std::nullopt;
  auto x = find_dequantized(node.inputs[0]);
  if (!x || x->axis >= 0 || x->is_transposed) return std::nullopt;
  const auto gains = known(node.inputs[1]), offsets = known(node.inputs[2]), means = known(node.inputs[3]),
             variances = known(node.inputs[4]), zero = known(x->zero_point);
  if (!gains || !offsets || !means || !variances || !zero) return std::nullopt;
  QuantizedAffine affine{.x = *std::move(x), .factors = {}, .shifts = {}};
  for (size_t channel = 0; channel < gains->size(); ++channel) {
    const double slope = (*gains)[channel] / std::sqrt((*variances)[channel] + node.attributes.real("epsilon")),
                 factor = slope * affine.x.scales[0] / scale;
    const double shift =
        ((*offsets)[channel] - (*means)[channel] * slope) / scale - static_cast<double>(zero->front()) * factor;
    if (!std::isfinite(factor) || !std::isfinite(shift)) return std::nullopt;
    affine.factors.push_back(static_cast<float>(factor));
    affine.shifts.push_back(static_cast<float>(shift));
  }
  return affine;
}

/// A relu or clip in front of the conversion cuts off integers: rounding keeps the order of numbers.
bool QuantizedPatterns::narrow_by_activation(const Node& node, QuantizedEnd& end, double zero_point) const {
  const ops::IntegerRange all{static_cast<int32_t>(end.low), static_cast<int32_t>(end.high)};
  const auto step_of = [&](double real) {
    return int64_t{ops::quantize(static_cast<float>(real), static_cast<float>(end.scale_number),
                                 static_cast<int32_t>(zero_point), all)};
  };
  const bool is_relu = node.op->name == "relu";
  if (!is_relu && node.op->name != "clip") return false;
  const double low = is_relu ? 0 : node.attributes.real("low");
  const double high = is_relu ? INFINITY : node.attributes.real("high");
  const int64_t narrow_low = std::max(end.low, step_of(low));
  const int64_t narrow_high = is_relu ? end.high : std::min(end.high, step_of(high));
  if (narrow_low > narrow_high || !(end.scale_number > 0)) return false;
  end.low = narrow_low;
  end.high = narrow_high;
  return true;
}

/// Elements go where they go, or the largest are chosen: of integers of one scale as of the reals.
bool QuantizedPatterns::moves_integers(const Node& node, const QuantizedEnd& end, ValueId zero_point) const {
  static const std::set<std::string> movers{"reshape",      "transpose", "slice",     "strided_slice",
                                            "broadcast_to", "concat",    "max_pool2d"};
  if (!movers.contains(node.op->name) || !(end.scale_number > 0)) return false;
  const auto zero = known(zero_point);
  for (const ValueId input : node.inputs) {
    const auto from = find_dequantized(input);
    if (!from || from->axis >= 0 || from->is_transposed || from->scales[0] != end.scale_number) return false;
    if (graph_.type(from->integers).dtype != graph_.type(zero_point).dtype) return false;
    const auto own_zero = known(from->zero_point);
    if (!zero || !own_zero || *zero != *own_zero) return false;
  }
  return true;
}

std::optional<QuantizedEnd> QuantizedPatterns::find_end(NodeId quantize) const {
  const Node& node = graph_.node(quantize);
  if (node.op->name != "quantize_linear" || graph_.shape(node.inputs[1]).rank() != 0) return std::nullopt;
  QuantizedEnd end;
  end.scale = node.inputs[1];
  end.zero_point = node.inputs[2];
  const auto scale = known(end.scale), zero = known(end.zero_point);
  if (!scale || !zero || !std::isfinite(scale->front())) return std::nullopt;
  end.scale_number = scale->front();
  if (graph_.type(end.zero_point).dtype == DType::i8)
    end.high = 127;
  else
    end.low = 0;
  ValueId value = node.inputs[0];
  while (is_read_once(value)) {
    const Node* before = graph_.producer(value);
    if (before == nullptr || !narrow_by_activation(*before, end, zero->front())) break;
    value = before->inputs[0];
  }
  if (!is_read_once(value)) return std::nullopt;
  if ((end.product = find_product_with_bias(value))) return end;
  const Node* before = graph_.producer(value);
  if (before == nullptr) return std::nullopt;
  if (before->op->name == "add") {
    auto a = find_dequantized(before->inputs[0]), b = find_dequantized(before->inputs[1]);
    const bool fits = a && b && a->axis < 0 && b->axis < 0 && !a->is_transposed && !b->is_transposed &&
                      graph_.shape(before->inputs[0]) == graph_.shape(before->inputs[1]);
    if (fits) end.sum.emplace(*std::move(a), *std::move(b));
    return fits ? std::optional(std::move(end)) : std::nullopt;
  }
  if ((end.affine = find_affine(*before, end.scale_number))) return end;
  if (value == node.inputs[0] && moves_integers(*before, end, end.zero_point)) {
    end.mover = graph_.value(value).producer;
    return end;
  }
  return std::nullopt;
}

}  // namespace weft::passes
