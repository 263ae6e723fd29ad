// Calls one reference kernel on given values. The expected numbers in these tests come from PyTorch 1.13 in float64;
// each test shows the Python lines that printed them. All of them begin with
//
//   import math, torch; import torch.nn.functional as F
//   def ramp(*shape, period=13, scale=0.25):
//     n = math.prod(shape)
//     return torch.tensor([(i * 5 % period - period // 2) * scale for i in range(n)]).double().reshape(shape)
//   def leaf(t): return t.clone().requires_grad_()
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/cpu/cpu_backend.h"
#include "weft/graph/graph.h"
#include "weft/ops/all.h"
#include "weft/runtime/interpret.h"

namespace weft::reference_tests {

inline const OpRegistry& registry() {
  static const OpRegistry all = ops::make_registry();
  return all;
}

inline Tensor ramp(const Shape& shape, int64_t period = 13, double scale = 0.25) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<float>(static_cast<double>(i * 5 % period - period / 2) * scale));
  return Tensor::of(shape, values);
}
inline Tensor floats(const Shape& shape, const std::vector<float>& values) { return Tensor::of(shape, values); }
inline Tensor integers(const Shape& shape, const std::vector<int32_t>& values) { return Tensor::of_i32(shape, values); }
inline Tensor long_scalar(int64_t value) {
  Tensor tensor(DType::i64, {});
  *tensor.data_as<int64_t>() = value;
  return tensor;
}

/// The outputs of the op's reference kernel.
inline std::vector<Tensor> call(const std::string& op, const std::vector<Tensor>& inputs,
                                const Attributes& attributes = {}) {
  Graph graph(registry());
  std::vector<ValueId> values;
  for (size_t i = 0; i < inputs.size(); ++i)
    values.push_back(graph.add_input(InputKind::batch, "x" + std::to_string(i), inputs[i].type()));
  graph.add_node(op, values, attributes);
  const CpuBackend backend(1, reference_kernels());
  return evaluate_node(signature_of(graph, NodeId{0}), inputs, backend);
}

inline void expect_values(const Tensor& tensor, const std::vector<double>& expected, double tolerance = 2e-6) {
  ASSERT_EQ(tensor.dtype(), DType::f32);
  ASSERT_EQ(tensor.elements(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(static_cast<double>(tensor.data_as<float>()[i]), expected[i], tolerance) << "element " << i;
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  return {tensor.data_as<T>(), tensor.data_as<T>() + tensor.elements()};
}

}  // namespace weft::reference_tests
