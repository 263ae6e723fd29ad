#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;

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
    Case c;
    c.op = "causal_mask";
    c.inputs = {f32(shape)};
    c.outputs = {f32(shape)};
    c.attributes = {{"value", -1e30}};
    c.tolerance = 0;
    expect_matches_reference(c);
    expect_matches_rounded_reference(in_bf16(c));
  }
}

TEST(NativeAttention, CachedMatchesReference) {
  // Few rows and many, up to the end of the cache and beyond it, and before its beginning.
  for (const int64_t position : {int64_t{0}, int64_t{5}, int64_t{120}, int64_t{124}, int64_t{127}, int64_t{200},
                                 int64_t{-1}, int64_t{-5}, INT64_MIN, INT64_MAX}) {
    Case c;
    c.op = "cached_attention";
    const Shape queries{2, 6, 4, 64}, cache{2, 6, 128, 64};
    c.inputs = {f32(queries), f32(queries), f32(queries), f32(cache), f32(cache), i64({})};
    c.outputs = {f32(queries), f32(cache), f32(cache)};
    c.attributes = {{"scale", 0.125}};
    c.tolerance = 1e-6;
    c.prepare = [&](std::vector<Tensor>& inputs) { inputs[5].data_as<int64_t>()[0] = position; };
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
      c.attributes = {{"probability", probability},
                      {"stream", int64_t{3}},
                      {"blocks", std::vector<int64_t>{}},
                      {"parts", std::vector<int64_t>{}}};
      c.low = 0.5;
      c.tolerance = 2e-7;
      c.prepare = [](std::vector<Tensor>& inputs) { inputs[2].data_as<int64_t>()[0] = int64_t{1} << 40; };
      expect_matches_reference(c);
      expect_matches_rounded_reference(in_bf16(c));
    }
}

}  // namespace
}  // namespace weft
