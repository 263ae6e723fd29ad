// What of a graph in QDQ form integers can compute: found here, rewritten by form_integer_products.
#pragma once

#include <optional>
#include <vector>

#include "weft/device/backend.h"
#include "weft/graph/graph.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

/// An operand that a node dequantizes.
struct Dequantized {
  ValueId integers, zero_point;
  std::vector<double> scales;  // f32 each: one, or one per channel
  int64_t axis = 0;            // of the channels; -1: one scale
  bool is_transposed = false;  // a matrix that is transposed behind the conversion
};

/// A convolution or matrix product of dequantized operands.
struct QuantizedProduct {
  NodeId node;
  bool is_convolution = false;
  Dequantized a, b;
  std::vector<int64_t> padding;  // above, left, below, right
  int64_t channels = 0, channel_axis = 0;
  std::vector<float> bias;  // empty: none
};

/// A batch norm of integers, all of whose numbers are known.
struct QuantizedAffine {
  Dequantized x;
  std::vector<float> factors, shifts;  // of each channel, in steps of the result
};

/// A quantize_linear that ends a part which integers can compute.
struct QuantizedEnd {
  ValueId scale, zero_point;
  double scale_number = 1;
  int64_t low = -128, high = 255;                          // integers, by the activation in front of it
  std::optional<QuantizedProduct> product;                 // either
  std::optional<std::pair<Dequantized, Dequantized>> sum;  // or
  std::optional<QuantizedAffine> affine;                   // or
  std::optional<NodeId> mover;                             // or: a node that moves or compares elements, of one scale
};

class QuantizedPatterns {
 public:
  QuantizedPatterns(const Graph& graph, const Backend& backend)
      : graph_(graph), backend_(backend), users_(find_users(graph)), is_result_(find_results(graph)) {}

  std::optional<QuantizedEnd> find_end(NodeId quantize) const;
  /// With the bias that is an operand of the node; it may be any number.
  std::optional<QuantizedProduct> find_product(NodeId node) const;
  /// Of an add: a product that nobody else reads, with the constant that is added to it as its bias. The constant is
  /// one number, or one per channel.
  std::optional<QuantizedProduct> find_biased_product(NodeId add) const;
  std::optional<Dequantized> find_dequantized(ValueId value) const;

 private:
  std::optional<std::vector<double>> known(ValueId value) const;
  bool is_read_once(ValueId value) const;
  bool narrow_by_activation(const Node& node, QuantizedEnd& end, double zero_point) const;
  /// What find_product or find_biased_product say of a value that is read once, where the bias is whole numbers of
  /// steps of the sum.
  std::optional<QuantizedProduct> find_product_with_bias(ValueId value) const;
  std::optional<QuantizedAffine> find_affine(const Node& node, double scale) const;
  std::optional<std::vector<float>> bias_of(ValueId value, const QuantizedProduct& product) const;
  bool moves_integers(const Node& node, const QuantizedEnd& end, ValueId zero_point) const;

  const Graph& graph_;
  const Backend& backend_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
};

}  // namespace weft::passes
