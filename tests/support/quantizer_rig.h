// Small models that are written down here, for tests that quantize them, and what runs them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/rng.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/engine/onnx_session.h"
#include "weft/ops/all.h"
#include "weft/quantize/quantizer.h"

namespace weft::quantize {

using onnx::OnnxNode;

inline Tensor random_tensor(const Shape& shape, uint64_t seed, float deviation = 1) {
  RandomStream stream(seed);
  Tensor tensor(DType::f32, shape);
  for (int64_t at = 0; at < tensor.elements(); ++at) tensor.data_as<float>()[at] = deviation * stream.normal();
  return tensor;
}

inline onnx::ValueInfo info(const std::string& name, const std::vector<int64_t>& dims) {
  onnx::ValueInfo result;
  result.kind = onnx::ValueInfo::Kind::tensor;
  result.name = name;
  result.dtype = DType::f32;
  result.shape.emplace();
  for (const int64_t dim : dims) result.shape->push_back({dim, ""});
  return result;
}

/// x [4,3,8,8] -> conv, batch norm, relu -> conv, + what the first made, relu -> max pool -> gemm -> 5 logits
inline onnx::Model small_model() {
  onnx::Model model;
  model.path = "small.onnx";
  model.ir_version = 8;
  model.opsets[""] = 17;
  auto& graph = model.graph;
  graph.name = "small";
  graph.inputs = {info("x", {4, 3, 8, 8})};
  graph.outputs = {info("logits", {4, 5})};
  const auto add_tensor = [&](const std::string& name, Tensor tensor) { graph.initializers[name] = std::move(tensor); };
  add_tensor("w1", random_tensor({8, 3, 3, 3}, 1, 0.3f));
  add_tensor("w2", random_tensor({8, 8, 3, 3}, 2, 0.2f));
  add_tensor("b2", random_tensor({8, 1, 1}, 3, 0.1f));
  add_tensor("w3", random_tensor({5, 128}, 4, 0.1f));
  add_tensor("b3", random_tensor({5}, 5, 0.1f));
  add_tensor("scale", random_tensor({8}, 6, 0.5f));
  add_tensor("shift", random_tensor({8}, 7, 0.5f));
  add_tensor("mean", random_tensor({8}, 8, 0.5f));
  Tensor variance(DType::f32, Shape{8});
  std::fill_n(variance.data_as<float>(), 8, 0.7f);
  add_tensor("variance", variance);
  const auto padded = [](OnnxNode conv) {
    conv.attributes["pads"].value = std::vector<int64_t>{1, 1, 1, 1};
    return conv;
  };
  OnnxNode pool = onnx::node_with_output("MaxPool", {"r2"}, "p");
  pool.attributes["kernel_shape"].value = std::vector<int64_t>{2, 2};
  pool.attributes["strides"].value = std::vector<int64_t>{2, 2};
  OnnxNode gemm = onnx::node_with_output("Gemm", {"f", "w3", "b3"}, "logits");
  gemm.attributes["transB"].value = int64_t{1};
  graph.nodes = {padded(onnx::node_with_output("Conv", {"x", "w1"}, "c1")),
                 onnx::node_with_output("BatchNormalization", {"c1", "scale", "shift", "mean", "variance"}, "n1"),
                 onnx::node_with_output("Relu", {"n1"}, "r1"),
                 padded(onnx::node_with_output("Conv", {"r1", "w2"}, "c2")),
                 onnx::node_with_output("Add", {"c2", "b2"}, "a2"),
                 onnx::node_with_output("Add", {"a2", "r1"}, "s2"),
                 onnx::node_with_output("Relu", {"s2"}, "r2"),
                 pool,
                 onnx::node_with_output("Flatten", {"p"}, "f"),
                 gemm};
  return model;
}

class QuantizerTest : public ::testing::Test {
 protected:
  Tensor run(const onnx::Model& model, const Tensor& input) {
    engine::OnnxSession session(model, ops_, *device_);
    return *session.run({{"x", input}}).at("logits").tensor();
  }
  static Tensor batch(int64_t index) { return random_tensor({4, 3, 8, 8}, 100 + static_cast<uint64_t>(index)); }
  /// How far apart, against the largest of the first.
  static double distance(const Tensor& a, const Tensor& b) {
    double most = 0, largest = 0;
    for (int64_t at = 0; at < a.elements(); ++at) {
      largest = std::max(largest, std::fabs(static_cast<double>(a.data_as<float>()[at])));
      most = std::max(most, std::fabs(static_cast<double>(a.data_as<float>()[at] - b.data_as<float>()[at])));
    }
    return most / largest;
  }
  static std::vector<std::string> ops_of(const onnx::Model& model) {
    std::vector<std::string> names;
    for (const OnnxNode& each : model.graph.nodes) names.push_back(each.op);
    return names;
  }

  /// How many nodes of each op compute the quantized model.
  std::map<std::string, int> compiled_ops(const onnx::Model& model) {
    const Quantizer quantizer(model, {}, data_, runner_);
    const onnx::LowerableModel lowerable(quantizer.quantized(), onnx::standard_operators(), ops_,
                                         [&](const NodeSignature& signature, const std::vector<Tensor>& operands) {
                                           return device_->evaluate(signature, operands);
                                         });
    onnx::LowerRequest request;
    request.live["x"] = onnx::LiveValue(batch(0).type());
    const CompiledStep step = compile(lowerable.lower(request).graph, *device_, {});
    std::map<std::string, int> counts;
    for (const Node& each : step.graph.nodes()) ++counts[each.op->name];
    return counts;
  }

  OpRegistry ops_ = ops::make_registry();
  std::unique_ptr<Device> device_ = std::make_unique<CpuBackend>(1);
  CalibrationData data_{4, batch};
  Runner runner_{ops_, *device_, {}};
};

/// x [4,8] -> two products with the same weights, + biases of their own, relu between them -> logits [4,8]
inline onnx::Model model_of_shared_weights() {
  onnx::Model model;
  model.path = "shared.onnx";
  model.ir_version = 8;
  model.opsets[""] = 17;
  auto& graph = model.graph;
  graph.inputs = {info("x", {4, 8})};
  graph.outputs = {info("logits", {4, 8})};
  graph.initializers["w"] = random_tensor({8, 8}, 1, 0.4f);
  graph.initializers["b1"] = random_tensor({8}, 2, 1);
  graph.initializers["b2"] = random_tensor({8}, 3, 1);
  graph.nodes = {onnx::node_with_output("Gemm", {"x", "w", "b1"}, "h"), onnx::node_with_output("Relu", {"h"}, "r"),
                 onnx::node_with_output("Gemm", {"r", "w", "b2"}, "logits")};
  return model;
}

}  // namespace weft::quantize
