#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cpu/onednn_support.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/cpu/onednn/convolution.h"

namespace weft {
namespace {

using namespace testing_support;

struct ConvolutionCase {
  const char* label;
  int64_t batch, channels, height, width, outputs, kernel_height, kernel_width;
  std::vector<int64_t> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
  int64_t winograd = 0;

  Shape image() const { return {batch, channels, height, width}; }
  Shape weights() const { return {outputs, channels / groups, kernel_height, kernel_width}; }
  Shape output() const {
    const auto size = [&](int64_t in, int64_t kernel, size_t at) {
      return (in + 2 * padding[at] - dilation[at] * (kernel - 1) - 1) / stride[at] + 1;
    };
    return {batch, outputs, size(height, kernel_height, 0), size(width, kernel_width, 1)};
  }
  Attributes attributes() const {
    return {
        {"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}, {"winograd", winograd}};
  }
  friend void PrintTo(const ConvolutionCase& c, std::ostream* out) { *out << c.label; }
};

/// Calls visit(image offset, weight offset, output offset) for every product in the convolution's definition.
template <typename Visit>
void for_each_product(const ConvolutionCase& c, Visit visit) {
  const Shape weights = c.weights(), output = c.output();
  const int64_t group_outputs = c.outputs / c.groups;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.outputs; ++o)
      for (int64_t i = 0; i < weights[1]; ++i)
        for (int64_t kh = 0; kh < c.kernel_height; ++kh)
          for (int64_t kw = 0; kw < c.kernel_width; ++kw)
            for (int64_t y = 0; y < output[2]; ++y)
              for (int64_t x = 0; x < output[3]; ++x) {
                const int64_t h = y * c.stride[0] - c.padding[0] + kh * c.dilation[0];
                const int64_t w = x * c.stride[1] - c.padding[1] + kw * c.dilation[1];
                if (h < 0 || w < 0 || h >= c.height || w >= c.width) continue;
                const int64_t channel = o / group_outputs * weights[1] + i;
                visit(((n * c.channels + channel) * c.height + h) * c.width + w,
                      ((o * weights[1] + i) * c.kernel_height + kh) * c.kernel_width + kw,
                      ((n * c.outputs + o) * output[2] + y) * output[3] + x);
              }
}

enum class Direction { forward, backward_data, backward_weights };

struct Problem {
  OwnedSignature signature;
  std::vector<Tensor> inputs;
  Tensor expected;
};

Problem make_problem(const ConvolutionCase& c, Direction direction) {
  const Tensor image = random_tensor(c.image(), 1), weights = random_tensor(c.weights(), 2),
               output = random_tensor(c.output(), 3);
  Attributes attributes = c.attributes();
  const Shape result = direction == Direction::forward         ? c.output()
                       : direction == Direction::backward_data ? c.image()
                                                               : c.weights();
  std::vector<double> sums(static_cast<size_t>(result.elements()), 0);
  for_each_product(c, [&](int64_t at_image, int64_t at_weights, int64_t at_output) {
    const float i = image.data_as<float>()[at_image], w = weights.data_as<float>()[at_weights],
                o = output.data_as<float>()[at_output];
    if (direction == Direction::forward) sums[static_cast<size_t>(at_output)] += static_cast<double>(i) * w;
    if (direction == Direction::backward_data) sums[static_cast<size_t>(at_image)] += static_cast<double>(o) * w;
    if (direction == Direction::backward_weights) sums[static_cast<size_t>(at_weights)] += static_cast<double>(i) * o;
  });
  Tensor expected(DType::f32, result);
  std::copy(sums.begin(), sums.end(), expected.data_as<float>());
  if (direction == Direction::forward)
    return {make_signature("conv2d", {image.type(), weights.type()}, expected.type(), attributes),
            {image, weights},
            expected};
  if (direction == Direction::backward_data) {
    attributes.set("input_size", std::vector<int64_t>{c.height, c.width});
    return {make_signature("conv2d_backward_data", {output.type(), weights.type()}, expected.type(), attributes),
            {output, weights},
            expected};
  }
  attributes.set("kernel", std::vector<int64_t>{c.kernel_height, c.kernel_width});
  return {make_signature("conv2d_backward_weights", {image.type(), output.type()}, expected.type(), attributes),
          {image, output},
          expected};
}

void apply(const LayoutChoice& choice, NodeSignature& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) node.inputs[i].layout = choice.inputs[i];
  node.outputs[0].layout = choice.outputs[0];
}

class OneDnnConvolution : public testing::TestWithParam<std::tuple<ConvolutionCase, Direction>> {};

TEST_P(OneDnnConvolution, OnPlainLayoutsEqualsItsDefinition) {
  Problem problem = make_problem(std::get<0>(GetParam()), std::get<1>(GetParam()));
  std::string why_not;
  const auto kernel = make_onednn_kernel(problem.signature.node, 2, &why_not);
  ASSERT_NE(kernel, nullptr) << why_not;
  EXPECT_LT(relative_error(run_onednn_kernel(*kernel, problem.signature.node, problem.inputs), problem.expected), 2e-5)
      << kernel->name();
}

TEST_P(OneDnnConvolution, OnPreferredLayoutsEqualsItsDefinition) {
  Problem problem = make_problem(std::get<0>(GetParam()), std::get<1>(GetParam()));
  NodeSignature& node = problem.signature.node;
  const auto choice = onednn::preferred_convolution_layouts(*onednn::read_convolution(node), onednn::Engine());
  ASSERT_TRUE(choice.has_value());
  apply(*choice, node);
  std::string why_not;
  const auto kernel = make_onednn_kernel(node, 2, &why_not);
  ASSERT_NE(kernel, nullptr) << why_not;
  EXPECT_LT(relative_error(run_onednn_kernel(*kernel, node, problem.inputs), problem.expected), 2e-5) << kernel->name();
}

TEST_P(OneDnnConvolution, OutputPaddingIsZero) {
  Problem problem = make_problem(std::get<0>(GetParam()), std::get<1>(GetParam()));
  NodeSignature& node = problem.signature.node;
  apply(*onednn::preferred_convolution_layouts(*onednn::read_convolution(node), onednn::Engine()), node);
  const auto kernel = make_onednn_kernel(node);
  ASSERT_NE(kernel, nullptr);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < 2; ++i) inputs.push_back(problem.inputs[i].with_layout(node.inputs[i].layout));
  Tensor output(node.outputs[0]);
  const auto workspace = allocate_aligned(kernel->workspace_bytes());
  const void* in[] = {inputs[0].data(), inputs[1].data()};
  void* out[] = {output.data()};
  kernel->run({in, out, workspace.get()});
  // A second time on the same addresses, whose padding another tensor has overwritten meanwhile.
  std::fill_n(output.data_as<float>(), output.bytes() / 4, NAN);
  kernel->run({in, out, workspace.get()});
  const Tensor expected = output.with_layout({}).with_layout(node.outputs[0].layout);
  EXPECT_EQ(std::memcmp(output.data(), expected.data(), static_cast<size_t>(output.bytes())), 0) << kernel->name();
}

std::string case_name(const testing::TestParamInfo<std::tuple<ConvolutionCase, Direction>>& info) {
  constexpr const char* kDirections[] = {"forward", "backward_data", "backward_weights"};
  const auto& [convolution, direction] = info.param;
  return fmt::format("{}_{}", convolution.label, kDirections[static_cast<size_t>(direction)]);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, OneDnnConvolution,
    testing::Combine(
        testing::Values(ConvolutionCase{"three_by_three", 2, 16, 8, 9, 32, 3, 3, {1, 1}, {1, 1}},
                        ConvolutionCase{"one_by_one", 2, 32, 7, 7, 64, 1, 1},
                        ConvolutionCase{"stride", 2, 16, 9, 10, 16, 3, 3, {2, 1}, {1, 1}},
                        ConvolutionCase{"one_by_one_stride", 2, 32, 8, 8, 16, 1, 1, {2, 2}},
                        ConvolutionCase{"unequal_padding", 1, 8, 6, 7, 8, 3, 5, {1, 1}, {0, 2}},
                        ConvolutionCase{"dilation", 1, 16, 9, 9, 16, 3, 3, {1, 1}, {2, 2}, {2, 2}},
                        ConvolutionCase{"image_of_one_channel", 2, 1, 12, 12, 6, 5, 5, {1, 1}, {2, 2}},
                        ConvolutionCase{"image_of_three_channels", 2, 3, 17, 17, 64, 7, 7, {2, 2}, {3, 3}},
                        ConvolutionCase{"winograd", 4, 64, 15, 14, 80, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, 1 << 30},
                        ConvolutionCase{
                            "winograd_unpadded", 4, 64, 18, 17, 64, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, 1 << 30},
                        ConvolutionCase{"odd_channels", 2, 19, 6, 6, 21, 3, 3, {1, 1}, {1, 1}},
                        ConvolutionCase{"groups_of_whole_blocks", 2, 32, 6, 6, 64, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2},
                        ConvolutionCase{"small_groups", 2, 24, 6, 6, 12, 3, 3, {1, 1}, {1, 1}, {1, 1}, 4},
                        ConvolutionCase{"depthwise", 2, 32, 7, 7, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 32},
                        ConvolutionCase{"depthwise_odd_stride", 2, 20, 7, 7, 20, 3, 3, {2, 2}, {1, 1}, {1, 1}, 20}),
        testing::Values(Direction::forward, Direction::backward_data, Direction::backward_weights)),
    case_name);

TEST(OneDnnConvolutionLayouts, GradientOfWeightsHasTheLayoutOfTheWeights) {
  const ConvolutionCase c{"", 1, 32, 6, 6, 32, 3, 3, {1, 1}, {1, 1}};
  const onednn::Engine engine;
  Problem forward = make_problem(c, Direction::forward), backward = make_problem(c, Direction::backward_weights);
  const auto wanted = *onednn::preferred_convolution_layouts(*onednn::read_convolution(forward.signature.node), engine);
  NodeSignature& node = backward.signature.node;
  node.inputs[0].layout = wanted.inputs[0];
  node.inputs[1].layout = wanted.outputs[0];
  const auto choice = *onednn::preferred_convolution_layouts(*onednn::read_convolution(node), engine);
  const bool has_direct_gradient = make_onednn_kernel([&]() -> NodeSignature {
                                     NodeSignature same = node;
                                     same.outputs[0].layout = wanted.inputs[1];
                                     return same;
                                   }()) != nullptr;
  if (!has_direct_gradient) GTEST_SKIP() << "this processor's instruction set has no generated gradient kernel";
  EXPECT_EQ(to_string(choice.inputs[0]), to_string(wanted.inputs[0]));
  EXPECT_EQ(to_string(choice.inputs[1]), to_string(wanted.outputs[0]));
  EXPECT_EQ(to_string(choice.outputs[0]), to_string(wanted.inputs[1]));
}

class Winograd : public testing::Test {
 protected:
  /// The names of the kernels of the three directions, on their preferred layouts.
  static std::vector<std::string> kernels(const ConvolutionCase& c) {
    const CpuBackend backend(1);
    std::vector<std::string> names;
    for (const Direction direction : {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
      Problem problem = make_problem(c, direction);
      NodeSignature& node = problem.signature.node;
      apply(*backend.preferred_layouts(node), node);
      names.push_back(backend.choose_kernel(node).kernel);
    }
    return names;
  }
  const std::vector<int64_t> ones{1, 1};
  const ConvolutionCase suitable{"", 4, 64, 16, 16, 64, 3, 3, ones, ones, ones, 1, 1 << 30};
};

TEST_F(Winograd, ServesAllDirectionsWithoutReorders) {
  const std::vector<std::string> names = kernels(suitable);
  if (names[0].find("wino") == std::string::npos)
    GTEST_SKIP() << "oneDNN has no Winograd for this processor's instruction set";
  for (const std::string& name : names) {
    EXPECT_NE(name.find("wino"), std::string::npos) << name;
    EXPECT_EQ(name.find("reorder"), std::string::npos) << name;
  }
}

TEST_F(Winograd, IsLeftAloneWhereItIsNoFasterOrNotAskedFor) {
  ConvolutionCase unasked = suitable;
  unasked.winograd = 0;
  const ConvolutionCase few_channels{"", 4, 16, 16, 16, 16, 3, 3, ones, ones, ones, 1, 1 << 30},
      small_images{"", 64, 64, 5, 5, 64, 3, 3, ones, ones, ones, 1, 1 << 30};
  ConvolutionCase no_room = suitable;
  no_room.winograd = 1000;
  for (const ConvolutionCase& c : {unasked, no_room, few_channels, small_images})
    for (const std::string& name : kernels(c)) EXPECT_EQ(name.find("wino"), std::string::npos) << name;
}

TEST(OneDnnConvolutionLayouts, FirstConvolutionTakesThePlainImage) {
  const ConvolutionCase c{"", 1, 3, 16, 16, 32, 7, 7, {2, 2}, {3, 3}};
  Problem forward = make_problem(c, Direction::forward);
  const auto choice =
      *onednn::preferred_convolution_layouts(*onednn::read_convolution(forward.signature.node), onednn::Engine());
  EXPECT_TRUE(choice.inputs[0].is_plain()) << to_string(choice.inputs[0]);
  EXPECT_FALSE(choice.outputs[0].is_plain());
}

TEST(OneDnnConvolutionLayouts, LayoutsThatNothingServesAreDeclinedWithAReason) {
  const ConvolutionCase c{"", 1, 32, 6, 6, 32, 3, 3, {1, 1}, {1, 1}};
  Problem problem = make_problem(c, Direction::forward);
  problem.signature.node.inputs[0].layout = parse_layout("dcba", 4);
  std::string why_not;
  EXPECT_EQ(make_onednn_kernel(problem.signature.node, 2, &why_not), nullptr);
  EXPECT_NE(why_not.find("dcba"), why_not.npos) << why_not;
}

}  // namespace
}  // namespace weft
