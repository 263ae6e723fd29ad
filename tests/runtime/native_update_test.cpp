#include <cmath>

#include "tests/runtime/native_support.h"

namespace weft {
namespace {

using namespace native_test;

TEST(NativeUpdate, SgdMatchesReference) {
  for (const bool nesterov : {false, true})
    for (const TensorType& type : {f32({5}), f32({300, 301}), f32({20, 10, 3, 3}, "ABcd16b16a")}) {
      Case c;
      c.op = "sgd_update";
      c.inputs = {type, type, type, f32({})};
      c.outputs = {type, type};
      c.attributes = {{"momentum", 0.9}, {"nesterov", nesterov}, {"weight_decay", 5e-4}};
      expect_matches_reference(c);
    }
}

TEST(NativeUpdate, AdamwMatchesReference) {
  for (const bool decoupled : {false, true})
    for (const TensorType& type : {f32({5}), f32({300, 301}), f32({20, 10, 3, 3}, "ABcd16b16a")}) {
      Case c;
      c.op = "adamw_update";
      c.inputs = {type, type, type, type, f32({}), i64({})};
      c.outputs = {type, type, type};
      c.attributes = {
          {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.01}, {"decoupled", decoupled}};
      c.low = 0;
      expect_matches_reference(c);
    }
}

TEST(NativeUpdate, BlendMatchesReference) {
  for (const TensorType& type : {f32({5}), f32({300, 301}), f32({20, 10, 3, 3}, "ABcd16b16a")}) {
    Case c;
    c.op = "blend_update";
    c.inputs = {type, type, f32({}), f32({})};
    c.outputs = {type};
    expect_matches_reference(c);
  }
}

TEST(NativeUpdate, SquaredNormMatchesReference) {
  for (const TensorType& type : {f32({5}), f32({300, 301}), f32({20, 10, 3, 3}, "ABcd16b16a")}) {
    Case c;
    c.op = "squared_norm";
    c.inputs = {type};
    c.outputs = {f32({})};
    expect_matches_reference(c);
  }
}

TEST(NativeUpdate, BlendWithoutKeepingForgetsWhatIsNotFinite) {
  Case c;
  c.op = "blend_update";
  c.inputs = {f32({3}), f32({3}), f32({}), f32({})};
  c.outputs = {f32({3})};
  const BareNode node(c);
  std::string why_not;
  const auto kernel = make_native(node.signature, native::Isa::baseline, 1, why_not);
  ASSERT_NE(kernel, nullptr) << why_not;
  float state[3] = {std::nanf(""), INFINITY, 1}, value[3] = {1, 2, 3}, keep = 0, take = 0.5f;
  const void* inputs[4] = {state, value, &keep, &take};
  void* outputs[1] = {state};
  kernel->run({inputs, outputs, nullptr});
  EXPECT_EQ(std::vector<float>(state, state + 3), (std::vector<float>{0.5f, 1, 1.5f}));
}

TEST(NativeUpdate, RunningAverageMatchesReference) {
  Case c;
  c.op = "running_average";
  c.inputs = {f32({37}), f32({37})};
  c.outputs = {f32({37})};
  c.attributes = {{"momentum", 0.1}, {"sample_factor", 1.25}};
  expect_matches_reference(c);
}

TEST(NativeUpdate, DeclinesTensorsInDifferentLayouts) {
  Case c;
  c.op = "sgd_update";
  const TensorType plain = f32({16, 16, 3, 3}), blocked = f32({16, 16, 3, 3}, "ABcd16b16a");
  c.inputs = {blocked, plain, blocked, f32({})};
  c.outputs = {blocked, blocked};
  c.attributes = {{"momentum", 0.9}, {"nesterov", false}, {"weight_decay", 0.0}};
  const BareNode node(c);
  std::string why_not;
  EXPECT_EQ(make_native(node.signature, native::Isa::baseline, 1, why_not), nullptr);
  EXPECT_NE(why_not.find("in the layout of"), std::string::npos) << why_not;
}

}  // namespace
}  // namespace weft
