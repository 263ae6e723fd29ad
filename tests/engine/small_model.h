// A model small enough to compute by hand: y = relu(x w), of any batch.
#pragma once

#include <vector>

#include "weft/engine/deployed_model.h"
#include "weft/graph/symbolic_text.h"
#include "weft/ops/all.h"

namespace weft::test {

/// x f32[N,2], w = [[1,-1,2],[0,3,1]], y f32[N,3]; with `batches`, a graph for each of them.
inline engine::DeployedModel small_model(const std::vector<int64_t>& batches = {}) {
  engine::DeployedModel model;
  model.name = "small";
  model.metadata = {{"licence", "CC0"}};
  model.classes = {"one", "two", "three"};
  std::vector<float> numbers(2 * 16);
  for (size_t at = 0; at < numbers.size(); ++at) numbers[at] = 0;
  // More than 16 numbers, so that the file holds them beside the text.
  numbers[0] = 1, numbers[1] = -1, numbers[2] = 2;
  numbers[16] = 0, numbers[17] = 3, numbers[18] = 1;
  const Constant weight(Tensor::of({2, 16}, numbers));
  model.constants.emplace(to_string(weight->hash()), weight);
  const auto text = [&](const std::string& size) {
    return "graph \"small\" {\n  batch %x \"x\" : f32[" + size +
           ",2]\n  %w = constant_tensor() {data=<f32[2,16] hash=" + to_string(weight->hash()) +
           ">} : f32[2,16]\n  %product = matmul(%x, %w) : f32[" + size + ",16]\n  %positive = relu(%product) : f32[" +
           size + ",16]\n  %y = slice(%positive) {starts=[0,0], ends=[" + size + ",3]} : f32[" + size +
           ",3]\n  output \"y\" %y\n}\n";
  };
  const std::string first = batches.empty() ? "N" : std::to_string(batches[0]);
  model.inputs = {{"x", "f32[" + first + ",2]"}};
  model.outputs = {{"y", "f32[" + first + ",3]"}};
  if (batches.empty()) model.graphs = {{0, text("N")}};
  for (const int64_t batch : batches) model.graphs.push_back({batch, text(std::to_string(batch))});
  return model;
}

/// Quantized by hand, in QDQ form: a convolution, a depthwise one with a relu, their sum. x and y f32[N,4,3,3].
inline engine::DeployedModel integer_model() {
  engine::DeployedModel model;
  model.name = "integers";
  model.inputs = {{"x", "f32[N,4,3,3]"}};
  model.outputs = {{"y", "f32[N,4,3,3]"}};
  model.graphs = {{0, R"(graph "integers" {
  batch %x "x" : f32[N,4,3,3]
  %scale = constant() {shape=[], value=0.125} : f32[]
  %zero = constant() {dtype="u8", shape=[], value=128.0} : u8[]
  %none = constant() {dtype="i8", shape=[], value=0.0} : i8[]
  %w = constant_tensor() {data=<i8[4,4,1,1] 1,-2,3,4,5,6,-7,8,9,10,11,-12,13,14,15,16>} : i8[4,4,1,1]
  %v = constant_tensor() {data=<i8[4,1,1,1] 8,4,2,-9>} : i8[4,1,1,1]
  %w_real = dequantize_linear(%w, %scale, %none) : f32[4,4,1,1]
  %v_real = dequantize_linear(%v, %scale, %none) : f32[4,1,1,1]
  %q = quantize_linear(%x, %scale, %zero) : u8[N,4,3,3]
  %a = dequantize_linear(%q, %scale, %zero) : f32[N,4,3,3]
  %c = conv2d(%a, %w_real) : f32[N,4,3,3]
  %c_q = quantize_linear(%c, %scale, %zero) : u8[N,4,3,3]
  %b = dequantize_linear(%c_q, %scale, %zero) : f32[N,4,3,3]
  %d = conv2d(%b, %v_real) {groups=4} : f32[N,4,3,3]
  %r = relu(%d) : f32[N,4,3,3]
  %r_q = quantize_linear(%r, %scale, %zero) : u8[N,4,3,3]
  %e = dequantize_linear(%r_q, %scale, %zero) : f32[N,4,3,3]
  %s = add(%b, %e) : f32[N,4,3,3]
  %s_q = quantize_linear(%s, %scale, %zero) : u8[N,4,3,3]
  %y = dequantize_linear(%s_q, %scale, %zero) : f32[N,4,3,3]
  output "y" %y
}
)"}};
  return model;
}

}  // namespace weft::test
