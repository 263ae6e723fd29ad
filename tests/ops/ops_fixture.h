// What the tests of op definitions share: a graph over all ops, inputs by shape, the message of an error.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/graph/graph.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft::ops {

class OpsTest : public ::testing::Test {
 protected:
  ValueId input(const std::string& name, Shape shape, DType dtype = DType::f32) {
    return graph_.add_input(InputKind::batch, name, {dtype, std::move(shape), {}});
  }

  /// The message of the shape error that the call throws; "" where it throws none.
  template <typename Call>
  static std::string shape_error(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::shape) << error.what();
      return error.what();
    }
    return "";
  }

  /// What the op of a value's node costs.
  int64_t flops(ValueId output) const {
    const Node& node = *graph_.producer(output);
    std::vector<TensorType> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(graph_.type(id));
    for (const ValueId id : node.outputs) outputs.push_back(graph_.type(id));
    return node.op->flops(inputs, outputs, node.attributes);
  }

  OpRegistry registry_ = make_registry();
  Graph graph_{registry_};
};

}  // namespace weft::ops
