#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;

const std::vector<Shape> kShapes = {{5}, {40, 33}, {3, 50, 256}, {2, 3, 1}};

Shape rows_of(const Shape& shape) {
  std::vector<int64_t> dims = shape.dims();
  dims.pop_back();
  return Shape(dims);
}

TEST(NativeLayerNorm, ForwardMatchesReference) {
  for (const Shape& shape : kShapes) {
    Case c;
    c.op = "layer_norm";
    const TensorType channel = f32({shape[shape.rank() - 1]}), row = f32(rows_of(shape));
    c.inputs = {f32(shape), channel, channel};
    c.outputs = {f32(shape), row, row};
    c.attributes = {{"epsilon", 1e-5}};
    expect_matches_reference(c);
    c.inputs[0].dtype = c.outputs[0].dtype = DType::bf16;
    expect_matches_rounded_reference(c);
  }
}

TEST(NativeLayerNorm, BackwardMatchesReference) {
  for (const Shape& shape : kShapes) {
    Case c;
    c.op = "layer_norm_backward";
    const TensorType channel = f32({shape[shape.rank() - 1]}), row = f32(rows_of(shape));
    c.inputs = {f32(shape), f32(shape), channel, row, row};
    c.outputs = {f32(shape), channel, channel};
    c.tolerance = 1e-5;
    expect_matches_reference(c);
    c.inputs[0].dtype = c.inputs[1].dtype = c.outputs[0].dtype = DType::bf16;
    expect_matches_rounded_reference(c);
  }
}

}  // namespace
}  // namespace weft
