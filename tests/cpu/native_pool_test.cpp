#include <cmath>
#include <functional>
#include <limits>

#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;

struct Window {
  Shape in;
  int64_t kernel, stride, padding;
};
const std::vector<Window> kWindows = {
    {{2, 21, 8, 8}, 2, 2, 0},                             // the usual, with a partial channel block
    {{2, 19, 9, 7}, 2, 2, 0},                             // a row and a column are in no window
    {{2, 16, 9, 11}, 3, 2, 1},                            // overlapping, padded
    {{1, 6, 7, 7}, 3, 1, 1},   {{2, 40, 5, 5}, 5, 1, 0},  // global
    {{2, 5, 11, 13}, 2, 4, 0},                            // rows between the windows
};
const std::vector<std::string> kPoolLayouts = {"", "acdb", "aBcd16b", "aBcd8b", "aBcd32b"};

/// In f32 and in bf16.
void expect_pool_matches(const Case& c) {
  expect_matches_reference(c);
  expect_matches_rounded_reference(in_bf16(c));
}

Shape pooled(const Window& w) {
  const auto size = [&](int64_t in) { return (in + 2 * w.padding - w.kernel) / w.stride + 1; };
  return {w.in[0], w.in[1], size(w.in[2]), size(w.in[3])};
}

Attributes attributes(const Window& w) {
  using Pair = std::vector<int64_t>;
  return {{"kernel", Pair{w.kernel, w.kernel}},
          {"stride", Pair{w.stride, w.stride}},
          {"padding", Pair{w.padding, w.padding}}};
}

TEST(NativePool, MaximumMatchesReference) {
  for (const auto& window : kWindows)
    for (const auto& layout : kPoolLayouts) {
      Case c;
      c.op = "max_pool2d";
      c.inputs = {f32(window.in, layout)};
      c.outputs = {f32(pooled(window), layout)};
      c.attributes = attributes(window);
      expect_pool_matches(c);
    }
}

TEST(NativePool, NaNIsTheMaximumOfItsWindow) {
  for (const auto& window : kWindows)
    for (const auto& layout : kPoolLayouts) {
      Case c;
      c.op = "max_pool2d";
      c.inputs = {f32(window.in, layout)};
      c.outputs = {f32(pooled(window), layout)};
      c.attributes = attributes(window);
      c.prepare = [](std::vector<Tensor>& inputs) {
        for (int64_t i = 0; i < inputs[0].elements(); i += 29)
          inputs[0].data_as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
      };
      expect_pool_matches(c);
    }
}

/// max_pool2d_backward of an input that `prepare` has changed, in every layout.
void expect_same_gradients(const std::function<void(Tensor&)>& prepare) {
  for (const auto& window : kWindows)
    for (const auto& layout : kPoolLayouts) {
      Case c;
      c.op = "max_pool2d_backward";
      c.inputs = {f32(pooled(window), layout), f32(window.in, layout), f32(pooled(window), layout)};
      c.outputs = {f32(window.in, layout)};
      c.attributes = attributes(window);
      c.prepare = [&](std::vector<Tensor>& inputs) {
        prepare(inputs[1]);
        Case forward;
        forward.op = "max_pool2d";
        forward.inputs = {f32(window.in)};
        forward.outputs = {f32(pooled(window))};
        forward.attributes = attributes(window);
        inputs[2] = run_reference(forward, {inputs[1]})[0];
      };
      expect_pool_matches(c);
    }
}

TEST(NativePool, MaximumSendsItsGradientToTheFirstOfEqualElements) {
  expect_same_gradients([](Tensor& x) {
    for (int64_t i = 0; i < x.elements(); ++i)  // few distinct values: many ties
      x.data_as<float>()[i] = std::round(x.data_as<float>()[i] * 2);
  });
}

TEST(NativePool, MaximumSendsItsGradientToTheFirstNaN) {
  expect_same_gradients([](Tensor& x) {
    for (int64_t i = 0; i < x.elements(); i += 5) x.data_as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
  });
}

TEST(NativePool, AverageMatchesReference) {
  for (const auto& window : kWindows)
    for (const auto& layout : kPoolLayouts)
      for (const bool count_padding : {false, true}) {
        Case c;
        c.op = "avg_pool2d";
        c.inputs = {f32(window.in, layout)};
        c.outputs = {f32(pooled(window), layout)};
        c.attributes = attributes(window);
        c.attributes.set("count_padding", count_padding);
        expect_pool_matches(c);
        c.op = "avg_pool2d_backward";
        std::swap(c.inputs, c.outputs);
        c.attributes.set("input_size", std::vector<int64_t>{window.in[2], window.in[3]});
        expect_pool_matches(c);
      }
}

}  // namespace
}  // namespace weft
