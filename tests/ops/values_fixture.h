// Runs what a builder function adds to a graph, and its gradient. The expected numbers come from PyTorch 1.13 in
// float64; each test shows the Python lines that printed them. All of them begin with the lines of
// tests/cpu/reference_values.h and
//
//   def grads(y, *xs): return torch.autograd.grad((y * ramp(*y.shape)).sum(), xs)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/cpu/reference_values.h"
#include "tests/ops/ops_fixture.h"
#include "weft/autodiff/autodiff.h"
#include "weft/cpu/cpu_backend.h"

namespace weft::ops {

using reference_tests::floats;
using reference_tests::integers;
using reference_tests::ramp;

class ValuesTest : public OpsTest {
 protected:
  /// An input of the graph with these values.
  ValueId given(const Tensor& tensor) {
    const std::string name = "x" + std::to_string(tensors_.size());
    tensors_[name] = tensor;
    return graph_.add_input(InputKind::batch, name, tensor.type());
  }

  Tensor value_of(ValueId id) const {
    Graph graph = graph_;
    graph.add_output("value", id);
    return evaluate_graph(graph, tensors_, CpuBackend(2)).at("value");
  }

  void expect_value(ValueId id, const Shape& shape, const std::vector<double>& expected,
                    double tolerance = 2e-6) const {
    const Tensor value = value_of(id);
    EXPECT_EQ(value.shape(), shape);
    reference_tests::expect_values(value, expected, tolerance);
  }

  /// The gradients of sum(y * ramp).
  void expect_gradients(ValueId y, const std::vector<ValueId>& xs, const std::vector<std::vector<double>>& expected,
                        double tolerance = 2e-6) const {
    Graph graph = graph_;
    auto tensors = tensors_;
    tensors["weights"] = ramp(graph.shape(y));
    const ValueId weights = graph.add_input(InputKind::batch, "weights", graph.type(y));
    const std::vector<ValueId> gradients = add_gradients(graph, reduce_sum(graph, multiply(graph, y, weights)), xs);
    for (size_t i = 0; i < xs.size(); ++i) graph.add_output("gradient" + std::to_string(i), gradients[i]);
    const auto values = evaluate_graph(graph, tensors, CpuBackend(2));
    for (size_t i = 0; i < xs.size(); ++i) {
      SCOPED_TRACE("gradient " + std::to_string(i));
      reference_tests::expect_values(values.at("gradient" + std::to_string(i)), expected[i], tolerance);
    }
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace weft::ops
