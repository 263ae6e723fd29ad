// ONNX models in memory, for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "weft/onnx/file/model.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/file/model_writer.h"

namespace weft::onnx {

inline ValueInfo tensor_info(const std::string& name, std::vector<Dimension> shape, DType dtype = DType::f32) {
  ValueInfo info;
  info.kind = ValueInfo::Kind::tensor;
  info.name = name;
  info.dtype = dtype;
  info.shape = std::move(shape);
  return info;
}

inline Dimension fixed(int64_t size) { return {size, ""}; }
inline Dimension open(const std::string& symbol) { return {std::nullopt, symbol}; }

using AttributeList = std::vector<std::pair<std::string, decltype(Attribute::value)>>;

inline OnnxNode make_node(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                          const AttributeList& attributes = {}) {
  OnnxNode node;
  node.name = outputs.empty() ? op : outputs[0];
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  for (const auto& [name, value] : attributes) node.attributes[name].value = value;
  return node;
}

inline Model make_model(std::vector<ValueInfo> inputs, std::vector<OnnxNode> nodes, std::vector<ValueInfo> outputs,
                        int64_t opset = 20) {
  Model model;
  model.path = "test.onnx";
  model.ir_version = 9;
  model.opsets[""] = opset;
  model.graph.name = "test";
  model.graph.inputs = std::move(inputs);
  model.graph.nodes = std::move(nodes);
  model.graph.outputs = std::move(outputs);
  return model;
}

inline Tensor reals(Shape shape, const std::vector<float>& values) { return Tensor::of(std::move(shape), values); }

inline Tensor wholes(Shape shape, const std::vector<int64_t>& values) {
  Tensor tensor(DType::i64, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.data_as<int64_t>());
  return tensor;
}

}  // namespace weft::onnx
