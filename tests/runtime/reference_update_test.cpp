// Three steps of each optimiser against torch.optim.
#include "tests/runtime/reference_values.h"

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

}  // namespace
}  // namespace weft::reference_tests
