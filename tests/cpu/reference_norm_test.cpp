// Batch and layer normalisation against PyTorch.
#include <algorithm>

#include "tests/cpu/reference_values.h"

namespace weft::reference_tests {
namespace {

// x = leaf(ramp(2, 3, 2, 2)); s = leaf(torch.tensor([1, -0.5, 2]).double())
// b = leaf(torch.tensor([0.1, 0.2, -0.3]).double()); y = F.batch_norm(x, None, None, s, b, True, 0.1, 1e-2)
// F.relu(y).backward(ramp(*y.shape, period=9, scale=0.5))
// print(y, x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False), x.grad, s.grad, b.grad)
const Shape kImage{2, 3, 2, 2};
const std::vector<double> kNormalised{-1.1948849,  0.1,          1.3948849,  -0.67693097, 0.21784304,  -0.49587847,
                                      0.64607595,  -0.067645565, -2.8897699, -0.30000001, 2.2897699,   -1.8538619,
                                      0.87693097,  -1.1948849,   0.1,        1.3948849,   0.93156456,  0.21784304,
                                      -0.49587847, 0.64607595,   1.2538619,  -2.8897699,  -0.30000001, 2.2897699};
const std::vector<double> kInputGradient{-0.4334521,  0.38846548,   -1.3793868, -0.31186666, 0.64971163,  -0.21575615,
                                         0.54091736,  -0.03906181,  0.3481686,  -0.12948849, 0.42876237,  0.15710576,
                                         1.0887976,   -0.4334521,   1.4243734,  -0.34347887, -0.76872944, 0.078734416,
                                         -0.21575615, -0.030059852, -3.5238066, 0.3481686,   -0.12948849, 2.5005783},
    kScaleGradient{-1.8128389, -2.8905721, 1.4243734}, kShiftGradient{1, 1, 0.5};

std::vector<Tensor> batch_norm_operands() {
  return {ramp(kImage), floats({3}, {1, -0.5f, 2}), floats({3}, {0.1f, 0.2f, -0.3f})};
}

TEST(ReferenceBatchNorm, OutputAndStatistics) {
  const auto outputs = call("batch_norm", batch_norm_operands(), {{"epsilon", 1e-2}});
  expect_values(outputs[0], kNormalised);
  expect_values(outputs[1], {-0.25, 0.28125, 0});
  expect_values(outputs[2], {0.921875, 0.75683594, 0.921875});
}

TEST(ReferenceBatchNorm, ResidualThenRelu) {
  auto operands = batch_norm_operands();
  operands.push_back(ramp(kImage, 5, 1.0));
  const auto outputs = call("batch_norm", operands, {{"epsilon", 1e-2}, {"activation", std::string("relu")}});
  std::vector<double> expected = kNormalised;
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::max(0.0, expected[i] + static_cast<double>(operands[3].data_as<float>()[i]));
  expect_values(outputs[0], expected);
}

TEST(ReferenceBatchNorm, InferenceUsesTheGivenStatistics) {
  auto operands = batch_norm_operands();
  const auto trained = call("batch_norm", operands, {{"epsilon", 1e-2}});
  operands.push_back(trained[1]);
  operands.push_back(trained[2]);
  expect_values(call("batch_norm_inference", operands, {{"epsilon", 1e-2}})[0], kNormalised);
}

/// The gradient of relu(batch_norm), with or without the forward output at hand.
std::vector<Tensor> relu_backward(bool with_output) {
  const Attributes attributes{{"epsilon", 1e-2}, {"activation", std::string("relu")}};
  const auto operands = batch_norm_operands();
  const auto forward = call("batch_norm", operands, attributes);
  std::vector<Tensor> all{ramp(kImage, 9, 0.5), operands[0], operands[1], operands[2], forward[1], forward[2]};
  if (with_output) all.push_back(forward[0]);
  return call("batch_norm_backward", all, attributes);
}

TEST(ReferenceBatchNorm, BackwardMasksByTheOutput) {
  const auto gradients = relu_backward(true);
  expect_values(gradients[0], kInputGradient);
  expect_values(gradients[1], kScaleGradient);
  expect_values(gradients[2], kShiftGradient);
}

TEST(ReferenceBatchNorm, BackwardRecomputesTheMask) {
  const auto gradients = relu_backward(false);
  expect_values(gradients[0], kInputGradient);
  expect_values(gradients[1], kScaleGradient);
  expect_values(gradients[2], kShiftGradient);
}

TEST(ReferenceBatchNorm, RunningAverage) {  // by hand: 0.75 * 2 + 0.25 * 1.5 * 4
  const auto outputs =
      call("running_average", {floats({1}, {2}), floats({1}, {4})}, {{"momentum", 0.25}, {"sample_factor", 1.5}});
  expect_values(outputs[0], {3.0});
}

// x = leaf(ramp(3, 5)); s = leaf(ramp(5, period=7)); b = leaf(ramp(5, period=9))
// y = F.layer_norm(x, (5,), s, b, 1e-2); y.backward(ramp(3, 5, period=11, scale=0.5))
// print(y, x.mean(-1), 1 / torch.sqrt(x.var(-1, unbiased=False) + 1e-2), x.grad, s.grad, b.grad)
TEST(ReferenceLayerNorm, OutputAndStatistics) {
  const auto outputs = call("layer_norm", {ramp({3, 5}), ramp({5}, 7), ramp({5}, 9)}, {{"epsilon", 1e-2}});
  expect_values(outputs[0], {0.0093898774, 0.27803861, -0.75, 0.89254051, -0.037362973, -2.091738, -0.061925147, -0.75,
                             1.2018316, -0.57798129, -2.091738, -0.061925147, -0.75, 1.2018316, -0.57798129});
  expect_values(outputs[1], {-0.3, 0.1, -0.15});
  expect_values(outputs[2], {1.1215443, 1.0397505, 1.0397505});
}

TEST(ReferenceLayerNorm, Backward) {
  const Tensor x = ramp({3, 5}), scale = ramp({5}, 7);
  const auto forward = call("layer_norm", {x, scale, ramp({5}, 9)}, {{"epsilon", 1e-2}});
  const auto gradients = call("layer_norm_backward", {ramp({3, 5}, 11, 0.5), x, scale, forward[1], forward[2]});
  expect_values(gradients[0],
                {0.74804889, -0.79054766, -0.22624864, -0.848741, 1.1174884, 0.43529014, 1.0760013, -0.10425606,
                 0.016579805, -1.4236151, -0.32780242, -0.36082152, 0.39088998, -0.032035556, 0.32976951});
  expect_values(gradients[1], {2.6368076, 0.62385029, 2.6312623, -4.5202806, 1.4936364});
  expect_values(gradients[2], {-3, -1, 1, 3, -0.5});
}

}  // namespace
}  // namespace weft::reference_tests
