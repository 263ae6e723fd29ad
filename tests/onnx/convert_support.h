// One node's conversion, for tests of what operators of ONNX become and refuse.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/onnx/model_support.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/onnx/operators/operators.h"
#include "weft/ops/all.h"
#include "weft/runtime/interpret.h"

namespace weft::onnx {

/// A node whose operands are what a run brings, or known.
class ConvertedNode {
 public:
  explicit ConvertedNode(OnnxNode node, int64_t opset = 20) : node_(std::move(node)), opset_(opset) {}

  ConvertedNode& brings(const Tensor& tensor) {
    const std::string name = node_.inputs.at(operands_.size());
    operands_.push_back({graph_.add_input(InputKind::batch, name, tensor.type()), {}, false});
    tensors_[name] = tensor;
    return *this;
  }
  ConvertedNode& knows(const Tensor& tensor) {
    operands_.push_back({{}, HostValue{tensor}, false});
    return *this;
  }

  std::vector<ValueId> convert() {
    const OperatorTable table = standard_operators();
    const Operator* row = table.find("", node_.op);
    EXPECT_NE(row, nullptr) << node_.op;
    NodeContext context(node_, opset_, graph_, operands_);
    return row->convert(context);
  }
  /// Its first output.
  Tensor value() {
    graph_.add_output("value", convert().front());
    return evaluate_graph(graph_, tensors_, CpuBackend(1)).at("value");
  }

 private:
  OnnxNode node_;
  int64_t opset_;
  OpRegistry registry_ = ops::make_registry();
  Graph graph_{registry_, "test"};
  std::vector<Operand> operands_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace weft::onnx
