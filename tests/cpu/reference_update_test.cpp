// Three steps of each optimiser against torch.optim.
#include <cmath>

#include "tests/cpu/reference_values.h"

namespace weft::reference_tests {
namespace {

// p = leaf(torch.tensor([1, -2, 0.5]).double()); o = torch.optim.X([p], ...)
// for k in range(3): p.grad = torch.tensor([0.5, -1, 2]).double() * (1 - k) + 0.25; o.step()
const std::vector<float> kStart{1, -2, 0.5f};

Tensor gradient_at(int step) {
  const float factor = static_cast<float>(1 - step);
  return floats({3}, {0.5f * factor + 0.25f, -factor + 0.25f, 2 * factor + 0.25f});
}

// torch.optim.SGD([p], lr=0.1, momentum=0.9, nesterov=nesterov, weight_decay=0.05)
// print(p, o.state[p]["momentum_buffer"])
void check_sgd(bool nesterov, const std::vector<double>& parameter, const std::vector<double>& velocity) {
  std::vector<Tensor> state{floats({3}, kStart), floats({3}, {0, 0, 0})};
  for (int step = 0; step < 3; ++step)
    state = call("sgd_update", {state[0], gradient_at(step), state[1], floats({}, {0.1f})},
                 {{"momentum", 0.9}, {"nesterov", nesterov}, {"weight_decay", 0.05}});
  expect_values(state[0], parameter);
  expect_values(state[1], velocity);
}

TEST(ReferenceUpdate, SgdWithMomentum) {
  check_sgd(false, {0.747868, -1.9146879, 0.0081793125}, {0.70532, 0.60762875, 0.33208187});
}

TEST(ReferenceUpdate, SgdWithNesterovMomentum) {
  check_sgd(true, {0.68622698, -1.9709263, -0.016976161}, {0.6975422, 0.61378329, 0.31256532});
}

// torch.optim.AdamW([p], lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.05)
// print(p, o.state[p]["exp_avg"], o.state[p]["exp_avg_sq"])
TEST(ReferenceUpdate, AdamW) {
  std::vector<Tensor> state{floats({3}, kStart), floats({3}, {0, 0, 0}), floats({3}, {0, 0, 0})};
  for (int step = 0; step < 3; ++step)
    state =
        call("adamw_update", {state[0], gradient_at(step), state[1], state[2], floats({}, {0.1f}), long_scalar(step)},
             {{"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 1e-3}, {"weight_decay", 0.05}});
  expect_values(state[0], {0.76399716, -1.8823291, 0.32467564});
  expect_values(state[1], {0.086, 0.194, -0.022});
  expect_values(state[2], {0.031476563, 0.10647656, 0.38453906});
}

// Nothing of what they are given reaches the states.
TEST(ReferenceUpdate, SkippedLeavesItsStates) {
  const Tensor bad = floats({3}, {NAN, INFINITY, 1}), state = floats({3}, kStart), rate = floats({}, {0.1f});
  const Tensor no = floats({}, {0});
  for (const Tensor& result : call("sgd_update", {state, bad, state, rate, no},
                                   {{"momentum", 0.9}, {"nesterov", false}, {"weight_decay", 0.05}}))
    expect_values(result, {1, -2, 0.5});
  for (const Tensor& result :
       call("adamw_update", {state, bad, state, state, rate, long_scalar(0), no},
            {{"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 1e-3}, {"weight_decay", 0.05}, {"decoupled", true}}))
    expect_values(result, {1, -2, 0.5});
  expect_values(call("blend_update", {state, bad, rate, rate, no}, {})[0], {1, -2, 0.5});
}

// torch.cuda.amp.GradScaler(init_scale=2.**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=3), by the rule
// in its documentation: "the scale is multiplied by backoff_factor [and the count of steps starts again], if gradients
// contain infs/NaNs; if growth_interval unskipped iterations occurred consecutively, it is multiplied by
// growth_factor".
TEST(ReferenceUpdate, LossScaleFollowsTheRuleOfGradScaler) {
  struct Step {
    bool finite;
    double scale;
    int64_t streak, updates, skipped;
  };
  const std::vector<Step> steps = {
      {true, 65536, 1, 1, 0},  {true, 65536, 2, 2, 0},   {true, 131072, 0, 3, 0},  // grows
      {true, 131072, 1, 4, 0}, {false, 65536, -1, 4, 1}, {false, 32768, -2, 4, 2},  {true, 32768, 1, 5, 2},
      {true, 32768, 2, 6, 2},  {false, 16384, -1, 6, 3},  // one before it would grow
      {true, 16384, 1, 7, 3},  {true, 16384, 2, 8, 3},   {true, 32768, 0, 9, 3},    {true, 32768, 1, 10, 3},
      {true, 32768, 2, 11, 3}, {true, 65536, 0, 12, 3},  {false, 32768, -1, 12, 4},
  };
  std::vector<Tensor> state{floats({}, {65536}), long_scalar(0), long_scalar(0), long_scalar(0)};
  for (size_t index = 0; index < steps.size(); ++index) {
    const Step& step = steps[index];
    state = call("loss_scale_update", {state[0], state[1], state[2], state[3], floats({}, {step.finite ? 1.0f : 0.0f})},
                 {{"growth_factor", 2.0}, {"backoff_factor", 0.5}, {"growth_interval", int64_t{3}}});
    EXPECT_EQ(*state[0].data_as<float>(), step.scale) << "step " << index;
    EXPECT_EQ(*state[1].data_as<int64_t>(), step.streak) << "step " << index;
    EXPECT_EQ(*state[2].data_as<int64_t>(), step.updates) << "step " << index;
    EXPECT_EQ(*state[3].data_as<int64_t>(), step.skipped) << "step " << index;
  }
}

TEST(ReferenceUpdate, LossScaleDoesNotGrowOutOfF32) {
  const auto state = call("loss_scale_update",
                          {floats({}, {0x1p127f}), long_scalar(0), long_scalar(0), long_scalar(0), floats({}, {1})},
                          {{"growth_factor", 2.0}, {"backoff_factor", 0.5}, {"growth_interval", int64_t{1}}});
  EXPECT_EQ(*state[0].data_as<float>(), 0x1p127f);
}

}  // namespace
}  // namespace weft::reference_tests
