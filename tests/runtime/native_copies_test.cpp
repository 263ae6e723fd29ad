#include "tests/runtime/native_support.h"

namespace weft {
namespace {

using namespace native_test;
using Dims = std::vector<int64_t>;

Case copy_case(const std::string& op, const Shape& in, const Shape& out, Attributes attributes) {
  Case c;
  c.op = op;
  c.inputs = {f32(in)};
  c.outputs = {f32(out)};
  c.attributes = std::move(attributes);
  c.tolerance = 0;
  return c;
}

TEST(NativeCopies, TransposeMatchesReference) {
  expect_matches_reference(copy_case("transpose", {70, 53}, {53, 70}, {{"permutation", Dims{1, 0}}}));
  expect_matches_reference(copy_case("transpose", {3, 40, 4, 33}, {3, 4, 40, 33}, {{"permutation", Dims{0, 2, 1, 3}}}));
  expect_matches_reference(copy_case("transpose", {3, 40, 4, 33}, {33, 3, 40, 4}, {{"permutation", Dims{3, 0, 1, 2}}}));
  expect_matches_reference(copy_case("transpose", {2, 17, 5, 6}, {2, 5, 6, 17}, {{"permutation", Dims{0, 2, 3, 1}}}));
  expect_matches_reference(copy_case("transpose", {9}, {9}, {{"permutation", Dims{0}}}));
}

TEST(NativeCopies, TransposeMovesEveryElementSize) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    Case c = copy_case("transpose", {20, 30}, {30, 20}, {{"permutation", Dims{1, 0}}});
    c.inputs[0].dtype = c.outputs[0].dtype = dtype;
    expect_matches_reference(c);
  }
}

TEST(NativeCopies, BroadcastMatchesReference) {
  expect_matches_reference(copy_case("broadcast_to", {33}, {70, 33}, {{"shape", Dims{70, 33}}}));
  expect_matches_reference(copy_case("broadcast_to", {5, 1, 7}, {2, 5, 30, 7}, {{"shape", Dims{2, 5, 30, 7}}}));
  expect_matches_reference(copy_case("broadcast_to", {5, 1}, {5, 300}, {{"shape", Dims{5, 300}}}));
  expect_matches_reference(copy_case("broadcast_to", {}, {200, 100}, {{"shape", Dims{200, 100}}}));
}

TEST(NativeCopies, SliceMatchesReference) {
  expect_matches_reference(copy_case("slice", {70}, {20}, {{"starts", Dims{7}}, {"ends", Dims{27}}}));
  expect_matches_reference(
      copy_case("slice", {6, 40, 50}, {3, 40, 20}, {{"starts", Dims{2, 0, 30}}, {"ends", Dims{5, 40, 50}}}));
}

TEST(NativeCopies, PadMatchesReference) {
  expect_matches_reference(copy_case("pad", {70}, {75}, {{"low", Dims{3}}, {"high", Dims{2}}, {"value", 0.0}}));
  expect_matches_reference(copy_case("pad", {2, 5, 7, 6}, {2, 5, 9, 7},
                                     {{"low", Dims{0, 0, 1, 1}}, {"high", Dims{0, 0, 1, 0}}, {"value", 1.5}}));
}

TEST(NativeCopies, ConcatMatchesReference) {
  for (const int64_t axis : {0, 1, 2, -1}) {
    Case c;
    c.op = "concat";
    Shape whole{4, 5, 6};
    const int at = static_cast<int>(axis < 0 ? axis + 3 : axis);
    whole[at] = 0;
    for (const int64_t length : {3, 1, 17}) {
      Shape part{4, 5, 6};
      part[at] = length;
      whole[at] += length;
      c.inputs.push_back(f32(part));
    }
    c.outputs = {f32(whole)};
    c.attributes = {{"axis", axis}};
    c.tolerance = 0;
    expect_matches_reference(c);
  }
}

TEST(NativeCopies, ReorderMovesBetweenAnyLayoutsAndZeroesPadding) {
  const Shape image{2, 21, 9, 7}, weight{21, 18, 3, 3};
  for (const auto& [shape, layouts] : std::vector<std::pair<Shape, std::vector<std::string>>>{
           {image, {"", "acdb", "aBcd16b", "aBcd8b"}}, {weight, {"", "ABcd16b16a", "cdba", "ABcd8a8b"}}})
    for (const auto& from : layouts)
      for (const auto& to : layouts) {
        Case c;
        c.op = "reorder";
        c.inputs = {f32(shape, from)};
        c.outputs = {f32(shape, to)};
        c.tolerance = 0;
        expect_matches_reference(c);
      }
}

TEST(NativeCopies, CastAndConstantMatchReference) {
  Case c;
  c.op = "cast";
  c.attributes = {{"dtype", std::string("f32")}};
  c.inputs = {i32({333})};
  c.outputs = {f32({333})};
  c.integer_bound = 1000;
  expect_matches_reference(c);
  c.inputs = {i64({333})};
  expect_matches_reference(c);
  Case constant;
  constant.op = "constant";
  constant.outputs = {f32({50, 70})};
  constant.attributes = {{"shape", Dims{50, 70}}, {"value", -2.5}, {"dtype", std::string("f32")}};
  expect_matches_reference(constant);
}

TEST(NativeEmbedding, MatchesReference) {
  Case c;
  c.op = "embedding";
  c.inputs = {f32({10, 37}), i32({6, 50})};
  c.outputs = {f32({6, 50, 37})};
  c.tolerance = 0;
  c.prepare = [](std::vector<Tensor>& inputs) { inputs[1].data_as<int32_t>()[3] = 10; };  // no such row
  expect_matches_reference(c);
}

TEST(NativeEmbedding, BackwardMatchesReference) {
  Case c;
  c.op = "embedding_backward";
  c.inputs = {f32({6, 150, 37}), i32({6, 150})};
  c.outputs = {f32({12, 37})};
  c.attributes = {{"rows", int64_t{12}}};
  expect_matches_reference(c);
}

TEST(NativeAttention, CausalMaskMatchesReference) {
  for (const Shape& shape : {Shape{7, 7}, Shape{2, 3, 5, 9}, Shape{4, 3}}) {
    Case c = copy_case("causal_mask", shape, shape, {{"value", -1e30}});
    expect_matches_reference(c);
  }
}

TEST(NativeDropout, DropsTheSameElementsAsTheReference) {
  for (const double probability : {0.1, 0.5, 0.999})
    for (const Shape& shape : {Shape{7}, Shape{40, 333}}) {
      Case c;
      c.op = "dropout";
      c.inputs = {f32(shape), i64({}), i64({})};
      c.outputs = {f32(shape)};
      c.attributes = {{"probability", probability}, {"stream", int64_t{3}}};
      c.low = 0.5;
      c.tolerance = 2e-7;
      c.prepare = [](std::vector<Tensor>& inputs) { inputs[2].data_as<int64_t>()[0] = int64_t{1} << 40; };
      expect_matches_reference(c);
    }
}

}  // namespace
}  // namespace weft
