#include "weft/models/classifier.h"

#include <gtest/gtest.h>

#include "weft/ops/all.h"
#include "weft/runtime/evaluate.h"

namespace weft::models {
namespace {

/// The values of a 1 x 1 x height x width image of 0, 1, 2...
std::vector<float> pooled(int64_t height, int64_t width, int64_t size) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "pooling");
  const Shape shape{1, 1, height, width};
  const ValueId x = graph.add_input(InputKind::batch, "x", {DType::f32, shape, {}});
  graph.add_output("y", adaptive_avg_pool(graph, x, size, "pooled"));
  Tensor values(DType::f32, shape);
  for (int64_t i = 0; i < values.elements(); ++i) values.data_as<float>()[i] = static_cast<float>(i);
  const Tensor y = evaluate_graph(graph, {{"x", values}}, CpuBackend(1)).at("y");
  EXPECT_EQ(y.shape(), Shape({1, 1, size, size}));
  return {y.data_as<float>(), y.data_as<float>() + y.elements()};
}

// Values of torch.nn.functional.adaptive_avg_pool2d.
TEST(AdaptiveAvgPool, OfWholeWindows) { EXPECT_EQ(pooled(4, 2, 2), (std::vector<float>{1, 2, 5, 6})); }
TEST(AdaptiveAvgPool, OfWindowsThatOverlap) {
  EXPECT_EQ(pooled(3, 5, 2), (std::vector<float>{3.5f, 5.5f, 8.5f, 10.5f}));
}
TEST(AdaptiveAvgPool, RepeatsWhatIsSmaller) { EXPECT_EQ(pooled(1, 1, 2), (std::vector<float>(4, 0))); }
TEST(AdaptiveAvgPool, LeavesWhatFits) { EXPECT_EQ(pooled(2, 2, 2), (std::vector<float>{0, 1, 2, 3})); }

}  // namespace
}  // namespace weft::models
