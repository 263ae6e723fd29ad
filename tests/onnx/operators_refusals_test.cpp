// Numbers that no operator can work with: each is refused with the node's name, and nothing crashes, hangs or fills the
// memory.
#include <gtest/gtest.h>

#include <limits>

#include "tests/onnx/convert_support.h"
#include "weft/base/error.h"

namespace weft::onnx {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

Tensor zeros(Shape shape, DType dtype = DType::f32) {
  Tensor tensor(dtype, std::move(shape));
  std::fill_n(static_cast<std::byte*>(tensor.data()), tensor.bytes(), std::byte{0});
  return tensor;
}

/// A node with operands that a run brings, and those that are known behind them.
struct Refusal {
  std::string label;
  OnnxNode node;
  std::vector<Tensor> brought;
  std::vector<Tensor> known = {};
  int64_t opset = 20;
};

OnnxNode reader(const std::string& op, size_t inputs, const AttributeList& attributes = {}) {
  std::vector<std::string> names;
  for (size_t at = 0; at < inputs; ++at) names.push_back("x" + std::to_string(at));
  return make_node(op, names, {"y"}, attributes);
}

using Integers = std::vector<int64_t>;

std::vector<Refusal> refusals() {
  const Tensor image = zeros({1, 4, 6, 6}), filter = zeros({4, 4, 3, 3}), row = zeros({1, 4, 6});
  std::vector<Refusal> all;
  const auto add = [&](std::string label, OnnxNode node, std::vector<Tensor> brought, std::vector<Tensor> known = {},
                       int64_t opset = 20) {
    all.push_back({std::move(label), std::move(node), std::move(brought), std::move(known), opset});
  };
  for (const char* automatic : {"SAME_UPPER", "NOTSET"}) {
    const std::string pad = automatic;
    add("Conv stride 0 " + pad, reader("Conv", 2, {{"strides", Integers{0, 1}}, {"auto_pad", pad}}), {image, filter});
    add("Conv stride huge " + pad, reader("Conv", 2, {{"strides", Integers{kHuge, 1}}, {"auto_pad", pad}}),
        {image, filter});
    add("Conv dilation huge " + pad, reader("Conv", 2, {{"dilations", Integers{1, kHuge}}, {"auto_pad", pad}}),
        {image, filter});
    add("MaxPool stride 0 " + pad,
        reader("MaxPool", 1, {{"kernel_shape", Integers{2, 2}}, {"strides", Integers{0, 0}}, {"auto_pad", pad}}),
        {image});
    add("AveragePool kernel 0 " + pad, reader("AveragePool", 1, {{"kernel_shape", Integers{0, 2}}, {"auto_pad", pad}}),
        {image});
    add("LpPool kernel huge " + pad, reader("LpPool", 1, {{"kernel_shape", Integers{kHuge, 2}}, {"auto_pad", pad}}),
        {image});
    add("ConvTranspose stride 0 " + pad, reader("ConvTranspose", 2, {{"strides", Integers{0, 1}}, {"auto_pad", pad}}),
        {image, filter});
  }
  add("Conv pads huge", reader("Conv", 2, {{"pads", Integers{kHuge, 0, 0, 0}}}), {image, filter});
  add("Conv bias without axes", reader("Conv", 3), {image, filter, zeros(Shape{})});
  add("Conv volume too small", reader("Conv", 2), {zeros({1, 1, 2, 6, 6}), zeros({1, 1, 3, 3, 3})});
  add("ConvTranspose output_shape huge", reader("ConvTranspose", 2, {{"output_shape", Integers{kHuge, 8}}}),
      {image, filter});
  add("ConvTranspose output_padding huge", reader("ConvTranspose", 2, {{"output_padding", Integers{kHuge, 0}}}),
      {image, filter});
  add("MaxPool pads huge", reader("MaxPool", 1, {{"kernel_shape", Integers{2, 2}}, {"pads", Integers{kHuge, 0, 0, 0}}}),
      {image});
  add("Split into 0", reader("Split", 1, {{"num_outputs", int64_t{0}}}), {image});
  add("Split into huge", reader("Split", 1, {{"num_outputs", kHuge}}), {image});
  add("Split of a negative part", reader("Split", 2, {{"axis", int64_t{1}}}), {image}, {wholes({2}, {-4, 8})});
  add("Split of huge parts", reader("Split", 2, {{"axis", int64_t{1}}}), {image}, {wholes({2}, {kHuge, kHuge})});
  add("DepthToSpace block huge", reader("DepthToSpace", 1, {{"blocksize", int64_t{1} << 32}}), {image});
  add("SpaceToDepth block huge", reader("SpaceToDepth", 1, {{"blocksize", int64_t{1} << 32}}), {image});
  add("SpaceToDepth block 0", reader("SpaceToDepth", 1, {{"blocksize", int64_t{0}}}), {image});
  add("Pad huge", reader("Pad", 2), {image}, {wholes({8}, {0, 0, 0, kHuge, 0, 0, 0, 0})});
  add("Pad by repeating, huge", reader("Pad", 2, {{"mode", std::string("wrap")}}), {image},
      {wholes({8}, {0, 0, 0, int64_t{1} << 30, 0, 0, 0, 0})});
  add("Reshape huge", reader("Reshape", 2), {image}, {wholes({3}, {kHuge, kHuge, -1})});
  add("Reshape overflows", reader("Reshape", 2), {image},
      {wholes({4}, {int64_t{1} << 30, int64_t{1} << 30, int64_t{1} << 30, -1})});
  add("Tile huge", reader("Tile", 2), {image}, {wholes({4}, {1, 1, kHuge, 1})});
  add("Tile beyond memory", reader("Tile", 2), {image}, {wholes({4}, {int64_t{1} << 30, int64_t{1} << 30, 1, 1})});
  add("CenterCropPad huge", reader("CenterCropPad", 2), {image}, {wholes({4}, {1, 1, kHuge, 1})});
  for (const float scale : {0.0F, 1e30F, -1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    const std::string text = std::to_string(scale);
    add("Upsample by " + text, reader("Upsample", 2), {image}, {reals({4}, {1, 1, scale, 1})}, 9);
    add("Upsample linearly by " + text, reader("Upsample", 2, {{"mode", std::string("linear")}}), {image},
        {reals({4}, {1, 1, scale, 1})}, 9);
  }
  add("AffineGrid huge", reader("AffineGrid", 2), {zeros({1, 2, 3})}, {wholes({4}, {1, 1, kHuge, kHuge})});
  add("LRN of a row", reader("LRN", 1, {{"size", int64_t{3}}}), {zeros({4})});
  add("LRN size huge", reader("LRN", 1, {{"size", kHuge}}), {image});
  add("LRN size 0", reader("LRN", 1, {{"size", int64_t{0}}}), {image});
  add("GroupNormalization of a row", reader("GroupNormalization", 3, {{"num_groups", int64_t{1}}}),
      {zeros({4}), zeros({4}), zeros({4})});
  add("NegativeLogLikelihoodLoss of a number", reader("NegativeLogLikelihoodLoss", 2),
      {zeros(Shape{}), zeros(Shape{}, DType::i64)});
  add("NegativeLogLikelihoodLoss with labels of another shape", reader("NegativeLogLikelihoodLoss", 2),
      {zeros({3, 5}), zeros({3, 5}, DType::i64)});
  add("SoftmaxCrossEntropyLoss of a row", reader("SoftmaxCrossEntropyLoss", 2),
      {zeros({5}), zeros(Shape{}, DType::i64)});
  add("SoftmaxCrossEntropyLoss with weights of another shape", reader("SoftmaxCrossEntropyLoss", 3),
      {zeros({3, 5}), zeros({3}, DType::i64), zeros({5, 2})});
  add("Attention of matrices", reader("Attention", 3, {{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}}),
      {zeros({4, 4}), zeros({4, 4}), zeros({4, 4})}, {}, 23);
  add("RotaryEmbedding of a row", reader("RotaryEmbedding", 3), {zeros({4}), zeros({4, 2}), zeros({4, 2})}, {}, 23);
  add("TensorScatter of another rank", reader("TensorScatter", 2), {row, zeros(Shape{})}, {}, 24);
  const Tensor grid = zeros({1, 5, 5, 2});
  add("GridSample by an unknown mode", reader("GridSample", 2, {{"mode", std::string("sharp")}}), {image, grid});
  add("GridSample by an unknown padding", reader("GridSample", 2, {{"padding_mode", std::string("wrap")}}),
      {image, grid});
  add("GridSample of a grid for volumes", reader("GridSample", 2), {image, zeros({1, 5, 5, 3})});
  add("GridSample of an empty image", reader("GridSample", 2), {zeros({1, 4, 0, 6}), grid});
  const Tensor offsets = zeros({1, 18, 4, 4});
  add("DeformConv stride 0", reader("DeformConv", 3, {{"strides", Integers{0, 1}}}), {image, filter, offsets});
  add("DeformConv pads huge", reader("DeformConv", 3, {{"pads", Integers{kHuge, 0, 0, 0}}}), {image, filter, offsets});
  add("DeformConv groups 0", reader("DeformConv", 3, {{"group", int64_t{0}}}), {image, filter, offsets});
  add("DeformConv of too few offsets", reader("DeformConv", 3), {image, filter, zeros({1, 2, 4, 4})});
  add("RoiAlign output huge", reader("RoiAlign", 3, {{"output_height", kHuge}, {"sampling_ratio", int64_t{2}}}),
      {image, zeros({1, 4}), zeros({1}, DType::i64)});
  add("RoiAlign ratio negative", reader("RoiAlign", 3, {{"sampling_ratio", int64_t{-1}}}),
      {image, zeros({1, 4}), zeros({1}, DType::i64)});
  add("RoiAlign of a row", reader("RoiAlign", 3, {{"sampling_ratio", int64_t{2}}}),
      {row, zeros({1, 4}), zeros({1}, DType::i64)});
  add("Col2Im huge", reader("Col2Im", 3), {row}, {wholes({2}, {kHuge, kHuge}), wholes({2}, {2, 2})});
  add("Col2Im block 0", reader("Col2Im", 3), {row}, {wholes({2}, {4, 4}), wholes({2}, {0, 2})});
  add("Col2Im of other blocks", reader("Col2Im", 3), {row}, {wholes({2}, {4, 4}), wholes({2}, {2, 2})});
  const Tensor places = zeros({1, 4, 6, 6}, DType::i64);
  add("MaxUnpool kernel huge", reader("MaxUnpool", 2, {{"kernel_shape", Integers{kHuge, 2}}}), {image, places});
  add("MaxUnpool to nothing",
      reader("MaxUnpool", 2, {{"kernel_shape", Integers{2, 2}}, {"pads", Integers{9, 9, 9, 9}}}), {image, places});
  add("MaxUnpool into less", reader("MaxUnpool", 3, {{"kernel_shape", Integers{2, 2}}}), {image, places},
      {wholes({4}, {1, 4, 3, 3})});
  add("CausalConvWithState of images", reader("CausalConvWithState", 2), {image, filter}, {}, 28);
  add("CausalConvWithState activation", reader("CausalConvWithState", 2, {{"activation", std::string("tanh")}}),
      {row, zeros({4, 1, 3})}, {}, 28);
  return all;
}

TEST(OperatorRefusals, NameTheNode) {
  for (const Refusal& refusal : refusals()) {
    ConvertedNode node(refusal.node, refusal.opset);
    for (const Tensor& tensor : refusal.brought) node.brings(tensor);
    for (const Tensor& tensor : refusal.known) node.knows(tensor);
    try {
      node.convert();
      ADD_FAILURE() << refusal.label << " is taken";
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::internal) << refusal.label << ": " << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << refusal.label << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace weft::onnx
