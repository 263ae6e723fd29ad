// What the tests of op definitions share: a graph over the basic families, inputs by shape, the message of an error.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "weft/base/error.h"
#include "weft/graph/graph.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft::ops {

inline OpRegistry basic_registry() {
  OpRegistry registry;
  add_elementwise_ops(registry);
  add_fused_ops(registry);
  add_reduce_ops(registry);
  add_shape_ops(registry);
  add_loss_ops(registry);
  return registry;
}

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

  OpRegistry registry_ = basic_registry();
  Graph graph_{registry_};
};

}  // namespace weft::ops
