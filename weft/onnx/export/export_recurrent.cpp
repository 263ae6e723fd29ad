#include "weft/onnx/export/export_recurrent.h"

#include <cstring>

namespace weft::onnx {

namespace {

/// input [T,N,C] times weight [gates H,C], as ops::lstm and ops::gru build it: the product of all steps' rows.
struct Projection {
  ValueId input;   // [T N,C], rows of the steps
  ValueId weight;  // [gates H,C]
};

Projection find_projection(Emitter& emitter, NodeId id) {
  const Graph& graph = emitter.graph();
  const Node* shaped = graph.producer(graph.node(id).inputs[0]);
  const Node* product = shaped != nullptr && shaped->op->name == "reshape" ? graph.producer(shaped->inputs[0]) : shaped;
  const bool fits = product != nullptr && product->op->name == "matmul" && product->attributes.boolean("transpose_b") &&
                    !product->attributes.boolean("transpose_a");
  if (!fits) emitter.fail(id, "its input is no product with weights");
  return {product->inputs[0], product->inputs[1]};
}

Tensor known(Emitter& emitter, NodeId id, ValueId value, const char* what) {
  const auto tensor = emitter.known(value);
  if (!tensor) emitter.fail(id, std::string("its ") + what + " are not known beforehand");
  return *tensor;
}

/// Blocks of rows in another order, with an outer dimension for the one direction.
Tensor reordered(const Tensor& tensor, int64_t hidden, const std::vector<int64_t>& order) {
  std::vector<int64_t> shape = tensor.shape().dims();
  const int64_t row_bytes = tensor.bytes() / shape[0];
  shape.insert(shape.begin(), 1);
  Tensor result(tensor.dtype(), Shape(shape));
  const int64_t block = hidden * row_bytes;
  for (size_t to = 0; to < order.size(); ++to)
    std::memcpy(static_cast<std::byte*>(result.data()) + static_cast<int64_t>(to) * block,
                static_cast<const std::byte*>(tensor.data()) + order[to] * block, static_cast<size_t>(block));
  return result;
}

/// The two biases behind each other, [1,2 gates H].
Tensor joined(const Tensor& first, const Tensor& second) {
  Tensor result(first.dtype(), Shape{1, first.elements() + second.elements()});
  std::memcpy(result.data(), first.data(), static_cast<size_t>(first.bytes()));
  std::memcpy(static_cast<std::byte*>(result.data()) + first.bytes(), second.data(),
              static_cast<size_t>(second.bytes()));
  return result;
}

std::string parameter(Emitter& emitter, ValueId value, const Tensor& tensor) {
  return emitter.constant(tensor, emitter.name(value) + ".gates");
}

/// A state [N,H] as ONNX wants it, [1,N,H]; an absent operand where it is zeros.
std::string initial(Emitter& emitter, ValueId value) {
  const Node* producer = emitter.graph().producer(value);
  if (producer != nullptr && producer->op->name == "constant" && producer->attributes.real("value") == 0) return "";
  return emitter.add("Unsqueeze", {emitter.name(value), emitter.integers({0}, "axes")});
}

/// The op's sequence of states, [T,N,H], of which ONNX gives the last alone: every reader must want that one.
void export_last(Emitter& emitter, NodeId id, ValueId sequence, const std::string& last, bool reverse) {
  const Graph& graph = emitter.graph();
  const auto users = find_users(graph)[static_cast<size_t>(sequence.index)];
  const int64_t step = reverse ? 0 : graph.shape(sequence)[0] - 1;
  for (const NodeId user : users) {
    const Node& node = graph.node(user);
    const bool is_last = node.op->name == "slice" && node.attributes.integers("starts")[0] == step &&
                         node.attributes.integers("ends")[0] == step + 1;
    if (!is_last) emitter.fail(id, "states before the last are read, which ONNX does not give");
    // [1,N,H], as the slice would be; the slice itself is left out.
    emitter.rename(node.outputs[0], last);
    emitter.leave_out(user);
  }
}

struct Layer {
  int64_t hidden;
  bool reverse;
  std::string input;
};

Layer find_layer(Emitter& emitter, NodeId id, const Projection& projection) {
  const Graph& graph = emitter.graph();
  const Node& node = graph.node(id);
  const auto steps = emitter.shape(node.inputs[0]);
  const Size columns = emitter.shape(projection.input).back();
  // The rows of the steps again as [T,N,C]: one size at most depends on the batch, and is left open.
  std::vector<int64_t> shape;
  for (const Size& size : {steps[0], steps[1], columns}) shape.push_back(size.is_fixed() ? size.constant : -1);
  const std::string input = emitter.add("Reshape", {emitter.name(projection.input), emitter.integers(shape, "shape")});
  return {graph.shape(node.inputs[1])[1], node.attributes.boolean("reverse"), input};
}

std::map<std::string, AttributeContent> layer_attributes(const Layer& layer) {
  return {{"hidden_size", layer.hidden}, {"direction", std::string(layer.reverse ? "reverse" : "forward")}};
}

/// Without the axis of directions: [T,N,H].
void export_output(Emitter& emitter, NodeId id, const std::string& output) {
  emitter.add("Squeeze", {output, emitter.integers({1}, "axes")}, {},
              emitter.name(emitter.graph().node(id).outputs[0]));
}

}  // namespace

void export_lstm(Emitter& emitter, NodeId id) {
  const Node& node = emitter.graph().node(id);
  const Projection projection = find_projection(emitter, id);
  const Layer layer = find_layer(emitter, id, projection);
  const std::vector<int64_t> order = {0, 3, 1, 2};  // ONNX: i, o, f, c; weft: i, f, c, o
  const Tensor weight = reordered(known(emitter, id, projection.weight, "weights"), layer.hidden, order);
  const Tensor recurrent = reordered(known(emitter, id, node.inputs[1], "recurrent weights"), layer.hidden, order);
  const Tensor bias = reordered(known(emitter, id, node.inputs[2], "biases"), layer.hidden, order);
  const std::string output = emitter.fresh(emitter.name(node.outputs[0]) + ".directions");
  const std::string cell = emitter.fresh(emitter.name(node.outputs[1]) + ".last");
  emitter.add_node(
      "LSTM",
      {layer.input, parameter(emitter, projection.weight, weight), parameter(emitter, node.inputs[1], recurrent),
       parameter(emitter, node.inputs[2], joined(bias, Tensor(bias.type()))), "", initial(emitter, node.inputs[3]),
       initial(emitter, node.inputs[4])},
      {output, "", cell}, layer_attributes(layer));
  export_output(emitter, id, output);
  export_last(emitter, id, node.outputs[1], cell, layer.reverse);
  if (!find_users(emitter.graph())[static_cast<size_t>(node.outputs[2].index)].empty())
    emitter.fail(id, "its gates are read, which ONNX does not give");
}

void export_gru(Emitter& emitter, NodeId id) {
  const Node& node = emitter.graph().node(id);
  const Projection projection = find_projection(emitter, id);
  const Layer layer = find_layer(emitter, id, projection);
  const std::vector<int64_t> order = {1, 0, 2};  // ONNX: z, r, h; weft: r, z, n
  const Tensor weight = reordered(known(emitter, id, projection.weight, "weights"), layer.hidden, order);
  const Tensor recurrent = reordered(known(emitter, id, node.inputs[1], "recurrent weights"), layer.hidden, order);
  const Tensor input_bias = reordered(known(emitter, id, node.inputs[2], "biases"), layer.hidden, order);
  const Tensor recurrent_bias = reordered(known(emitter, id, node.inputs[3], "recurrent biases"), layer.hidden, order);
  const std::string output = emitter.fresh(emitter.name(node.outputs[0]) + ".directions");
  auto attributes = layer_attributes(layer);
  attributes["linear_before_reset"] = int64_t{1};
  emitter.add_node(
      "GRU",
      {layer.input, parameter(emitter, projection.weight, weight), parameter(emitter, node.inputs[1], recurrent),
       parameter(emitter, node.inputs[2], joined(input_bias, recurrent_bias)), "", initial(emitter, node.inputs[4])},
      {output}, attributes);
  export_output(emitter, id, output);
  if (!find_users(emitter.graph())[static_cast<size_t>(node.outputs[1].index)].empty())
    emitter.fail(id, "its gates are read, which ONNX does not give");
}

}  // namespace weft::onnx
