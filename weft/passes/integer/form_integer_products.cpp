#include "weft/passes/integer/form_integer_products.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include "weft/graph/constant_node.h"
#include "weft/passes/clean/eliminate_dead_code.h"
#include "weft/passes/integer/constants.h"
#include "weft/passes/integer/quantized_pattern.h"

namespace weft::passes {

namespace {

constexpr int64_t kMostFoldedBytes = int64_t{64} << 20;  // of reals that integers become which no file holds

/// Of what a node may become. What the graph itself holds is no bomb.
int64_t most_folded_bytes(const Graph& graph, const Node& dequantize) {
  const Node* integers = graph.producer(dequantize.inputs[0]);
  const bool is_held = integers != nullptr && is_constant_tensor(*integers);
  return is_held ? std::numeric_limits<int64_t>::max() : kMostFoldedBytes;
}

class IntegerFormer {
 public:
  IntegerFormer(const Graph& graph, const Backend& backend)
      : graph_(graph), patterns_(graph, backend), rewriter_(graph) {}

  Graph run() {
    for (size_t index = 0; index < graph_.nodes().size(); ++index)
      if (const auto end = patterns_.find_end(node_at(index))) {
        if (end->product) ended_.insert(end->product->node.index);
        ends_.emplace(static_cast<int32_t>(index), *end);
      }
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const auto product = patterns_.find_biased_product(node_at(index));
      if (!product || product->is_convolution || ended_.contains(product->node.index)) continue;
      ended_.insert(product->node.index);
      biased_.emplace(static_cast<int32_t>(index), *product);
    }
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const NodeId id = node_at(index);
      if (const auto end = ends_.find(id.index); end != ends_.end())
        emit_end(id, end->second);
      else if (const auto biased = biased_.find(id.index); biased != biased_.end())
        emit_real_matmul(id, biased->second);
      else if (const auto product = ended_.contains(id.index) ? std::nullopt : patterns_.find_product(id))
        emit_real(*product);
      else
        rewriter_.copy(id);
    }
    return rewriter_.finish();
  }

 private:
  Graph& result() { return rewriter_.result(); }

  ValueId constant(Tensor tensor, const std::string& name) {
    return result().add(kConstantTensor, {}, {{kConstantData, Constant(std::move(tensor))}}, name);
  }

  /// a's scale times b's, over the result's: f32 as ONNX Runtime computes it.
  Tensor factors(const QuantizedProduct& product, std::optional<float> over) const {
    const auto count = static_cast<int64_t>(product.b.axis < 0 ? 1 : product.channels);
    Tensor tensor(DType::f32, product.b.axis < 0 ? Shape{} : Shape{count});
    for (int64_t channel = 0; channel < count; ++channel) {
      const float joined =
          static_cast<float>(product.a.scales[0]) * static_cast<float>(product.b.scales[static_cast<size_t>(channel)]);
      tensor.data_as<float>()[channel] = over ? joined / *over : joined;
    }
    return tensor;
  }

  /// Both factors, of which the second is named after `name` where it is transposed, and their zero points.
  std::vector<ValueId> product_operands(const QuantizedProduct& product, const std::string& name) {
    ValueId b = rewriter_.map(product.b.integers);
    if (product.b.is_transposed)
      b = result().add("transpose", {b}, {{"permutation", std::vector<int64_t>{1, 0}}}, name + ".b");
    return {rewriter_.map(product.a.integers), b, rewriter_.map(product.a.zero_point),
            rewriter_.map(product.b.zero_point)};
  }

  ValueId emit_sum(const QuantizedProduct& product) {
    const Node& node = graph_.node(product.node);
    const std::string name = graph_.node_name(product.node) + ".sum";
    const std::vector<ValueId> operands = product_operands(product, name);
    if (!product.is_convolution) return result().add("integer_matmul", operands, {}, name);
    return result().add("integer_conv2d", operands,
                        {{"stride", node.attributes.integers("stride")},
                         {"padding", product.padding},
                         {"dilation", node.attributes.integers("dilation")},
                         {"groups", node.attributes.integer("groups")}},
                        name);
  }

  ValueId emit_bias(const QuantizedProduct& product, const std::string& name) {
    Tensor bias(DType::i32, Shape{product.channels});
    for (int64_t channel = 0; channel < product.channels; ++channel) {
      const auto at = static_cast<size_t>(channel);
      const double step = product.a.scales[0] * product.b.scales[product.b.axis < 0 ? 0 : at];
      bias.data_as<int32_t>()[channel] = static_cast<int32_t>(std::nearbyint(double{product.bias[at]} / step));
    }
    return constant(std::move(bias), name);
  }

  void emit_end(NodeId id, const QuantizedEnd& end) {
    const std::string name = graph_.node_name(id);
    const ValueId old_value = graph_.node(id).outputs[0];
    const ValueId zero_point = rewriter_.map(end.zero_point);
    if (end.product) {
      std::vector<ValueId> operands{
          emit_sum(*end.product),
          constant(factors(*end.product, static_cast<float>(end.scale_number)), name + ".factor"), zero_point};
      if (!end.product->bias.empty()) operands.push_back(emit_bias(*end.product, name + ".bias"));
      rewriter_.replace(
          old_value, result().add("requantize", operands,
                                  {{"axis", end.product->channel_axis}, {"low", end.low}, {"high", end.high}}, name));
    } else if (end.sum) {
      std::vector<ValueId> operands{rewriter_.map(end.sum->first.integers), rewriter_.map(end.sum->second.integers)};
      for (const Dequantized* side : {&end.sum->first, &end.sum->second}) {
        operands.push_back(scalar(static_cast<float>(side->scales[0]), name + ".scale"));
        operands.push_back(rewriter_.map(side->zero_point));
      }
      operands.push_back(rewriter_.map(end.scale));
      operands.push_back(zero_point);
      rewriter_.replace(old_value,
                        result().add("quantized_add", operands, {{"low", end.low}, {"high", end.high}}, name));
    } else if (end.affine) {
      const std::vector<ValueId> operands{rewriter_.map(end.affine->x.integers),
                                          constant(vector_of(end.affine->factors), name + ".factor"),
                                          constant(vector_of(end.affine->shifts), name + ".shift"), zero_point};
      rewriter_.replace(old_value,
                        result().add("quantized_affine", operands, {{"low", end.low}, {"high", end.high}}, name));
    } else {
      const Node& mover = graph_.node(*end.mover);
      std::vector<ValueId> operands;
      for (const ValueId input : mover.inputs)
        operands.push_back(rewriter_.map(patterns_.find_dequantized(input)->integers));
      rewriter_.replace(old_value, result().add(mover.op->name, operands, mover.attributes, name));
    }
  }

  static Tensor vector_of(const std::vector<float>& numbers) {
    return Tensor::of(Shape{static_cast<int64_t>(numbers.size())}, numbers);
  }

  ValueId scalar(float number, const std::string& name) {
    Tensor tensor(DType::f32, Shape{});
    *tensor.data_as<float>() = number;
    return constant(std::move(tensor), name);
  }

  /// A product whose result somebody wants in reals.
  void emit_real(const QuantizedProduct& product) {
    if (product.is_convolution)
      emit_real_convolution(product);
    else
      emit_real_matmul(product.node, product);
  }

  /// `id` is the product itself, or what adds its bias.
  void emit_real_matmul(NodeId id, const QuantizedProduct& product) {
    const std::string name = graph_.node_name(id);
    std::vector<ValueId> operands = product_operands(product, name);
    operands.push_back(constant(factors(product, std::nullopt), name + ".scales"));
    if (!product.bias.empty()) operands.push_back(constant(vector_of(product.bias), name + ".bias"));
    rewriter_.replace(graph_.node(id).outputs[0], result().add("dequantized_matmul", operands, {}, name));
  }

  void emit_real_convolution(const QuantizedProduct& product) {
    const Node& node = graph_.node(product.node);
    const std::string name = graph_.node_name(product.node);
    const ValueId sum = result().add("cast", {emit_sum(product)}, {{"dtype", std::string("f32")}}, name + ".reals");
    Tensor scales = factors(product, std::nullopt);
    if (scales.shape().rank() == 1) {
      std::vector<int64_t> shape(static_cast<size_t>(graph_.shape(node.outputs[0]).rank()), 1);
      shape[static_cast<size_t>(product.channel_axis)] = product.channels;
      scales = scales.reinterpreted({DType::f32, Shape(shape), {}});
    }
    const ValueId factor = constant(std::move(scales), name + ".scales");
    if (product.bias.empty())
      return rewriter_.replace(node.outputs[0], result().add("multiply", {sum, factor}, {}, name));
    const ValueId scaled = result().add("multiply", {sum, factor}, {}, name + ".scaled");
    std::vector<int64_t> shape(static_cast<size_t>(graph_.shape(node.outputs[0]).rank()), 1);
    shape[static_cast<size_t>(product.channel_axis)] = product.channels;
    const ValueId bias =
        constant(vector_of(product.bias).reinterpreted({DType::f32, Shape(shape), {}}), name + ".bias");
    rewriter_.replace(node.outputs[0], result().add("add", {scaled, bias}, {}, name));
  }

  const Graph& graph_;
  const QuantizedPatterns patterns_;
  Rewriter rewriter_;
  std::unordered_map<int32_t, QuantizedEnd> ends_;        // by the node that quantizes
  std::unordered_map<int32_t, QuantizedProduct> biased_;  // by the node that adds the bias
  std::set<int32_t> ended_;                               // the products of both
};

}  // namespace

Graph fold_dequantized(const Graph& graph, const Backend& backend, const std::function<bool(const Node&)>& is_folded) {
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = node_at(index);
    const Node& node = graph.node(id);
    const auto folded = node.op->name == "dequantize_linear" && is_folded(node)
                            ? constant_value(graph, backend, node.outputs[0], most_folded_bytes(graph, node))
                            : std::nullopt;
    if (folded)
      rewriter.replace(node.outputs[0], rewriter.result().add(kConstantTensor, {}, {{kConstantData, Constant(*folded)}},
                                                              graph.node_name(id)));
    else
      rewriter.copy(id);
  }
  return eliminate_dead_code(rewriter.finish());
}

Graph form_products_alone(const Graph& graph, const Backend& backend) {
  return eliminate_dead_code(IntegerFormer(graph, backend).run());
}

Graph form_integer_products(const Graph& graph, const Backend& backend) {
  const bool is_quantized = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                        [](const Node& node) { return node.op->name == "dequantize_linear"; });
  if (!is_quantized) return graph;
  return fold_dequantized(form_products_alone(graph, backend), backend, [](const Node&) { return true; });
}

}  // namespace weft::passes
