#include "weft/graph/constant.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/signature_key.h"
#include "weft/graph/verify.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

Tensor ramp_of(DType dtype, Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.bytes(); ++i) tensor.data_as<uint8_t>()[i] = static_cast<uint8_t>(i * 37);
  return tensor;
}

TEST(Constant, IsEqualWhereTypeAndBytesAre) {
  EXPECT_EQ(Constant(ramp_of(DType::f32, {2, 3})), Constant(ramp_of(DType::f32, {2, 3})));
  EXPECT_FALSE(Constant(ramp_of(DType::f32, {2, 3})) == Constant(ramp_of(DType::f32, {3, 2})));
  EXPECT_FALSE(Constant(ramp_of(DType::f32, {6})) == Constant(ramp_of(DType::i32, {6})));
  Tensor other = ramp_of(DType::f32, {2, 3});
  other.data_as<uint8_t>()[23] ^= 1;
  EXPECT_FALSE(Constant(ramp_of(DType::f32, {2, 3})) == Constant(other));
}

// As many bytes as ResNet-50's weights: whoever copies them copies a pointer.
TEST(Constant, IsSharedByCopiesOfTheGraph) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry);
  Tensor weights(DType::f32, {25 << 20});
  const void* data = weights.data();
  const ValueId weight = ops::constant_tensor(graph, Constant(std::move(weights)), "weight");
  graph.add_output("weight", weight);
  std::vector<Graph> copies(50, graph);
  for (const Graph& copy : copies) EXPECT_EQ(constant_of(copy.nodes()[0])->tensor().data(), data);
  EXPECT_EQ(constant_of(signature_of(graph, {0}).attributes)->tensor().data(), data);
}

TEST(Constant, StandsInSignaturesAsItsHash) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry);
  const Constant data(ramp_of(DType::f32, {1000}));
  ops::constant_tensor(graph, data, "weight");
  EXPECT_EQ(signature_key(signature_of(graph, {0})),
            "constant_tensor,data=<f32[1000] hash=" + to_string(data->hash()) + ">;;f32[1000]");
}

TEST(Constant, NodesWithoutDataAreRefused) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry);
  try {
    graph.add("constant_tensor", {}, {{"data", Constant{}}}, "weight");
    FAIL() << "accepts nothing";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[constant_tensor] 'weight': has no data"), std::string::npos);
  }
}

}  // namespace
}  // namespace weft
