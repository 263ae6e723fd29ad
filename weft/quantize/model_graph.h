// The layers of an ONNX model that quantization is about, and the edits that prepare it: everything by the names of
// values, as in the file.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/onnx/file/model.h"
#include "weft/quantize/weights.h"

namespace weft::quantize {

/// Who makes and who reads each value.
struct ValueUses {
  explicit ValueUses(const onnx::OnnxGraph& graph);
  std::map<std::string, size_t> producer;              // by value: the node
  std::map<std::string, std::vector<size_t>> readers;  // by value: nodes, once per operand, and for their subgraphs
  std::set<std::string> outputs;                       // of the graph
  /// The one node that reads it; nullopt where there are more, none, or it is an output of the graph.
  std::optional<size_t> only_reader(const std::string& value) const;
};

/// An initializer, a Constant's tensor, or one of these under another shape; nullopt where a run decides it.
std::optional<Tensor> known_tensor(const onnx::OnnxGraph& graph, const std::string& value);

/// A convolution or matrix product with weights of f32 that the file holds.
struct Layer {
  size_t node = 0;
  std::string name;  // that of the weight, which no other layer has behind separate_weights()
  std::string input, output, weight;
  bool is_convolution = false;
  bool is_transposed = false;       // a matrix product's weights stand [outputs][inputs]
  int64_t outputs = 0, inputs = 0;  // rows and columns of its weights as a matrix; inputs of one group
  int64_t groups = 1;
  /// The axis of the weight that the outputs are.
  int64_t weight_axis(int rank) const { return is_convolution || is_transposed ? 0 : rank - 1; }
};
std::vector<Layer> find_layers(const onnx::OnnxGraph& graph);

/// Weights as a matrix, a row for each output, and back in the layout of the file.
Matrix matrix_of(const Layer& layer, const Tensor& weight);
Tensor tensor_of(const Layer& layer, const Matrix& weights, const Shape& shape);

/// A layer whose weights something else reads, too, gets a copy: its scales and its bias are its own.
void separate_weights(onnx::OnnxGraph& graph);
/// The same first. Then a bias that is added behind a layer becomes its own, and a batch norm behind one becomes part
/// of its weights. Names of values stay.
void fold_layers(onnx::OnnxGraph& graph);
/// One number for each output; empty where the layer has none.
std::vector<float> bias_of(const onnx::OnnxGraph& graph, const Layer& layer);
/// Gives the layer a bias, whether it has one or not.
void set_bias(onnx::OnnxGraph& graph, const Layer& layer, const std::vector<float>& bias);
/// Gives the layer another tensor of weights, of its own.
void set_weight(onnx::OnnxGraph& graph, const Layer& layer, const Tensor& weight);

/// A name that no value of the graph has.
std::string fresh_name(const onnx::OnnxGraph& graph, const std::string& hint);
/// Drops nodes and tensors that nothing reads.
void drop_unread(onnx::OnnxGraph& graph);

}  // namespace weft::quantize
