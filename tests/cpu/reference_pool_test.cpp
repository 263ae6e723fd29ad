// Pooling against PyTorch, with ties between maxima.
#include <cmath>

#include "tests/cpu/reference_values.h"

namespace weft::reference_tests {
namespace {

// x = leaf(torch.tensor([[1, 1, 0, 2], [1, 0, 2, 2], [-1, -1, -1, -1], [3, -1, 3, 3]]).double().reshape(1, 1, 4, 4))
// y = F.max_pool2d(x, 3, 2, 1) or F.avg_pool2d(x, 3, 2, 1, count_include_pad=True or False)
// y.backward(torch.tensor([1, 2, 4, 8]).double().reshape(1, 1, 2, 2)); print(y, x.grad)
Tensor image() { return floats({1, 1, 4, 4}, {1, 1, 0, 2, 1, 0, 2, 2, -1, -1, -1, -1, 3, -1, 3, 3}); }
Tensor output_gradient() { return floats({1, 1, 2, 2}, {1, 2, 4, 8}); }

using PoolList = std::vector<int64_t>;
Attributes window() { return {{"kernel", PoolList{3, 3}}, {"stride", PoolList{2, 2}}, {"padding", PoolList{1, 1}}}; }

TEST(ReferencePool, MaximumAndItsGradientToTheFirstOfEqualOnes) {
  const auto outputs = call("max_pool2d", {image()}, window());
  expect_values(outputs[0], {1, 2, 3, 3});
  expect_values(call("max_pool2d_backward", {output_gradient(), image(), outputs[0]}, window())[0],
                {1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 8, 0});
}

TEST(ReferencePool, TheGradientOfAWindowGoesToItsNaN) {
  // x = leaf(torch.tensor([[[[1., math.nan], [3., 2.]]]])); y = F.max_pool2d(x, 2); (4 * y).backward(); print(x.grad)
  const Tensor x = floats({1, 1, 2, 2}, {1, NAN, 3, 2});
  const Attributes whole{{"kernel", PoolList{2, 2}}, {"stride", PoolList{2, 2}}};
  const Tensor y = call("max_pool2d", {x}, whole)[0];
  EXPECT_TRUE(std::isnan(*y.data_as<float>()));
  expect_values(call("max_pool2d_backward", {floats({1, 1, 1, 1}, {4}), x, y}, whole)[0], {0, 4, 0, 0});
}

void check_average(bool count_padding, const std::vector<double>& output, const std::vector<double>& gradient) {
  Attributes attributes = window();
  attributes.set("count_padding", count_padding);
  expect_values(call("avg_pool2d", {image()}, attributes)[0], output);
  attributes.set("input_size", PoolList{4, 4});
  expect_values(call("avg_pool2d_backward", {output_gradient()}, attributes)[0], gradient);
}

TEST(ReferencePool, AverageThatCountsPadding) {
  check_average(true, {0.33333333, 0.77777778, 0.11111111, 0.66666667},
                {0.11111111, 0.33333333, 0.22222222, 0.22222222, 0.55555556, 1.6666667, 1.1111111, 1.1111111,
                 0.44444444, 1.3333333, 0.88888889, 0.88888889, 0.44444444, 1.3333333, 0.88888889, 0.88888889});
}

TEST(ReferencePool, AverageThatLeavesPaddingOut) {
  check_average(false, {0.75, 1.1666667, 0.16666667, 0.66666667},
                {0.25, 0.58333333, 0.33333333, 0.33333333, 0.91666667, 2.1388889, 1.2222222, 1.2222222, 0.66666667,
                 1.5555556, 0.88888889, 0.88888889, 0.66666667, 1.5555556, 0.88888889, 0.88888889});
}

}  // namespace
}  // namespace weft::reference_tests
