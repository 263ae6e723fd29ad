#include <array>
#include <cmath>

#include "tests/cpu/native_support.h"

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

Case product_sgd(int64_t terms, int64_t rows, int64_t columns, bool nesterov = false, DType dtype = DType::f32) {
  Case c;
  c.op = "product_sgd_update";
  const TensorType state = f32({rows, columns});
  c.inputs = {state, {dtype, {terms, rows}, {}}, {dtype, {terms, columns}, {}}, state, f32({})};
  c.outputs = {state, state};
  c.attributes = {{"momentum", 0.9}, {"nesterov", nesterov}, {"weight_decay", 5e-4}};
  return c;
}

// Whole tiles and parts of them, one panel and several, and as few terms as can be.
TEST(NativeUpdate, ProductSgdMatchesReference) {
  for (const bool nesterov : {false, true}) {
    expect_matches_reference(product_sgd(16, 12, 128, nesterov));
    expect_matches_reference(product_sgd(7, 100, 301, nesterov));
  }
  expect_matches_reference(product_sgd(1, 5, 3));
  expect_matches_reference(product_sgd(2000, 20, 200));
  expect_matches_reference(product_sgd(33, 50, 4100));
}

TEST(NativeUpdate, ProductSgdOfRowsInBf16MatchesReference) {
  for (const auto& [terms, rows, columns] :
       std::vector<std::array<int64_t, 3>>{{1, 5, 3}, {16, 12, 128}, {7, 100, 301}, {33, 50, 4100}, {64, 37, 200}}) {
    Case c = product_sgd(terms, rows, columns, false, DType::bf16);
    c.tolerance = 4e-6;
    expect_matches_rounded_reference(c);
  }
}

// Into the states' own memory, whichever threads share the work.
TEST(NativeUpdate, ProductSgdIsTheSameOnAnyThreadsAndInPlace) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Case c = product_sgd(33, 100, 4100, true, dtype);
    const BareNode node(c);
    const std::vector<Tensor> operands = plain_inputs(c);
    for (const auto isa : available_isas()) {
      std::vector<Tensor> expected;
      for (const int threads : {1, 2, 3, 5}) {
        std::string why_not;
        const auto kernel = make_native(node.signature, isa, threads, why_not);
        ASSERT_NE(kernel, nullptr) << why_not;
        std::vector<Tensor> used;
        std::vector<const void*> sources;
        for (const Tensor& tensor : operands) used.push_back(tensor.clone());
        for (const Tensor& tensor : used) sources.push_back(tensor.data());
        void* targets[] = {used[0].data(), used[3].data()};
        Tensor workspace(DType::f32, {(kernel->workspace_bytes() + 3) / 4});
        kernel->run({sources, targets, workspace.data()});
        if (expected.empty()) expected = {used[0].clone(), used[3].clone()};
        for (const size_t state : {0, 1})
          EXPECT_EQ(std::memcmp(expected[state].data(), targets[state], static_cast<size_t>(used[0].bytes())), 0)
              << name_of(isa) << ", " << threads << " threads, state " << state;
      }
    }
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
  const auto kernel = make_native(node.signature, Isa::baseline, 1, why_not);
  ASSERT_NE(kernel, nullptr) << why_not;
  float state[3] = {std::nanf(""), INFINITY, 1}, value[3] = {1, 2, 3}, keep = 0, take = 0.5f;
  const void* inputs[4] = {state, value, &keep, &take};
  void* outputs[1] = {state};
  kernel->run({inputs, outputs, nullptr});
  EXPECT_EQ(std::vector<float>(state, state + 3), (std::vector<float>{0.5f, 1, 1.5f}));
}

/// Runs an update whose last operand says that nothing is to be applied, on gradients full of NaN, beside its states
/// and over them.
void expect_states_stay(const char* op, size_t gradient, const std::vector<std::pair<int, int>>& states,
                        const std::vector<TensorType>& inputs, const Attributes& attributes) {
  Case c;
  c.op = op;
  c.inputs = inputs;
  for (size_t state = 0; state < states.size(); ++state) c.outputs.push_back(inputs[0]);
  c.attributes = attributes;
  const BareNode node(c);
  std::vector<Tensor> operands = plain_inputs(c);
  for (int64_t i = 0; i < operands[gradient].elements(); ++i) operands[gradient].data_as<float>()[i] = NAN;
  *operands.back().data_as<float>() = 0;
  for (const auto isa : available_isas())
    for (const bool in_place : {false, true}) {
      std::string why_not;
      const auto kernel = make_native(node.signature, isa, 2, why_not);
      ASSERT_NE(kernel, nullptr) << why_not;
      std::vector<Tensor> used, results;
      for (const Tensor& tensor : operands) used.push_back(tensor.clone());
      for (const TensorType& type : c.outputs) results.emplace_back(type);
      std::vector<const void*> sources;
      std::vector<void*> targets;
      for (const Tensor& tensor : used) sources.push_back(tensor.data());
      for (const auto& [output, input] : states)
        targets.push_back(in_place ? used[static_cast<size_t>(input)].data()
                                   : results[static_cast<size_t>(output)].data());
      kernel->run({sources, targets, nullptr});
      for (const auto& [output, input] : states)
        EXPECT_EQ(std::memcmp(targets[static_cast<size_t>(output)], operands[static_cast<size_t>(input)].data(),
                              static_cast<size_t>(operands[0].bytes())),
                  0)
            << op << ", state " << output << (in_place ? ", in place" : "");
    }
}

TEST(NativeUpdate, SkippedLeavesItsStatesBitForBit) {
  const TensorType type = f32({300, 301}), one = f32({});
  expect_states_stay("sgd_update", 1, {{0, 0}, {1, 2}}, {type, type, type, one, one},
                     {{"momentum", 0.9}, {"nesterov", false}, {"weight_decay", 5e-4}});
  expect_states_stay(
      "adamw_update", 1, {{0, 0}, {1, 2}, {2, 3}}, {type, type, type, type, one, i64({}), one},
      {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.01}, {"decoupled", true}});
  expect_states_stay("product_sgd_update", 1, {{0, 0}, {1, 3}}, {type, f32({4, 300}), f32({4, 301}), type, one, one},
                     {{"momentum", 0.9}, {"nesterov", false}, {"weight_decay", 5e-4}});
  expect_states_stay("blend_update", 1, {{0, 0}}, {type, type, one, one, one}, {});
}

TEST(NativeUpdate, UnscaleMatchesReference) {
  for (const TensorType& type : {f32({5}), f32({300, 301}), f32({20, 10, 3, 3}, "ABcd16b16a")}) {
    Case c;
    c.op = "unscale_gradient";
    c.inputs = {type, f32({})};
    c.outputs = {type, f32({})};
    c.low = 0.5;
    expect_matches_reference(c);
  }
}

// Wherever it stands, whichever thread meets it.
TEST(NativeUpdate, UnscaleFindsOneElementThatIsNotFinite) {
  Case c;
  c.op = "unscale_gradient";
  c.inputs = {f32({90300}), f32({})};
  c.outputs = c.inputs;
  const BareNode node(c);
  for (const auto isa : available_isas())
    for (const float bad : {INFINITY, -INFINITY, NAN, 3e38f})  // the last over a scale below 1
      for (const int64_t place : {0, 7, 45149, 45150, 90299}) {
        std::string why_not;
        const auto kernel = make_native(node.signature, isa, 2, why_not);
        ASSERT_NE(kernel, nullptr) << why_not;
        std::vector<float> gradient(90300, 1e-3f);
        gradient[static_cast<size_t>(place)] = bad;
        float scale = 0.5f, finite = 2;
        const void* inputs[2] = {gradient.data(), &scale};
        void* outputs[2] = {gradient.data(), &finite};
        std::vector<uint32_t> workspace(16);
        ASSERT_LE(kernel->workspace_bytes(), 64);
        kernel->run({inputs, outputs, workspace.data()});
        EXPECT_EQ(finite, 0) << bad << " at " << place;
      }
}

TEST(NativeUpdate, RunningAverageLeavesOutWhatIsNotFinite) {
  Case c;
  c.op = "running_average";
  c.inputs = {f32({3}), f32({3})};
  c.outputs = {f32({3})};
  c.attributes = {{"momentum", 0.5}, {"sample_factor", 1.0}};
  const BareNode node(c);
  for (const auto isa : available_isas()) {
    std::string why_not;
    const auto kernel = make_native(node.signature, isa, 1, why_not);
    ASSERT_NE(kernel, nullptr) << why_not;
    float running[3] = {1, 2, 3};
    const float sample[3] = {NAN, 4, -INFINITY};
    const void* inputs[2] = {running, sample};
    void* outputs[1] = {running};
    kernel->run({inputs, outputs, nullptr});
    EXPECT_EQ(std::vector<float>(running, running + 3), (std::vector<float>{1, 3, 3}));
  }
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
  EXPECT_EQ(make_native(node.signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_NE(why_not.find("in the layout of"), std::string::npos) << why_not;
}

}  // namespace
}  // namespace weft
