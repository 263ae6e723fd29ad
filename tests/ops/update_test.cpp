#include "ops_fixture.h"

namespace weft::ops {
namespace {

class Update : public OpsTest {
 protected:
  const ValueId weight_ = input("fc.weight", {10, 84}), gradient_ = input("gradient", {10, 84});
  const ValueId rate_ = input("learning_rate", {}), step_ = input("step", {}, DType::i64);
};

TEST_F(Update, SgdGivesParameterAndVelocity) {
  for (const ValueId id : sgd_update(graph_, weight_, gradient_, gradient_, rate_, {}))
    EXPECT_EQ(graph_.shape(id), Shape({10, 84}));
}
TEST_F(Update, AdamWGivesParameterAndMoments) {
  for (const ValueId id : adamw_update(graph_, weight_, gradient_, gradient_, gradient_, rate_, step_, {}))
    EXPECT_EQ(graph_.shape(id), Shape({10, 84}));
}
TEST_F(Update, FlopsOfSgd) {
  EXPECT_EQ(flops(sgd_update(graph_, weight_, gradient_, gradient_, rate_, {})[0]), 6 * 840);
  EXPECT_EQ(flops(sgd_update(graph_, weight_, gradient_, gradient_, rate_, {.nesterov = true})[0]), 8 * 840);
}
/// Whoever runs a step relies on it: an update writes over the state it replaces, of the same shape.
TEST_F(Update, EveryOutputReplacesAnInputOfItsShape) {
  for (const auto& [name, op] : registry_.all()) {
    if (!op.is_update) continue;
    EXPECT_EQ(op.gradient, nullptr) << name;
    if (op.outputs.back().ends_with("...")) {  // of any number of states, each in its place in the row
      for (size_t pair = 0; pair < op.in_place.size(); ++pair) {
        EXPECT_EQ(op.in_place[pair].first, static_cast<int>(pair)) << name;
        EXPECT_EQ(op.in_place[pair].second, op.in_place[0].second + static_cast<int>(pair)) << name;
      }
      continue;
    }
    const size_t others = name == "cached_attention" ? 1 : 0;  // outputs that are no states
    EXPECT_EQ(op.in_place.size() + others, op.outputs.size()) << name;
    for (const auto& [output, input] : op.in_place)
      EXPECT_EQ(op.outputs.at(static_cast<size_t>(output)), op.inputs.at(static_cast<size_t>(input))) << name;
  }
}
TEST_F(Update, GradientOfAnotherShape) {
  const ValueId other = input("other", {84, 10});
  EXPECT_EQ(shape_error([&] { sgd_update(graph_, weight_, other, gradient_, rate_, {}, "sgd"); }),
            "[sgd_update] 'sgd': gradient wants the shape of its parameter 'fc.weight' (10,84), got 'other' (84,10)");
}
// It stands alone below the fraction in the padding of a layout.
TEST_F(Update, AdamWWithoutEpsilon) {
  for (const double epsilon : {0.0, 1e-60, -1e-8})
    EXPECT_EQ(shape_error([&] {
                adamw_update(graph_, weight_, gradient_, gradient_, gradient_, rate_, step_, {.epsilon = epsilon},
                             "adam");
              }),
              fmt::format("[adamw_update] 'adam': epsilon must be above 0, got {}", epsilon));
}
TEST_F(Update, LearningRatePerRow) {
  const ValueId rates = input("rates", {10});
  EXPECT_EQ(shape_error([&] { sgd_update(graph_, weight_, gradient_, gradient_, rates, {}, "sgd"); }),
            "[sgd_update] 'sgd': learning_rate wants 0 dimensions, got 'rates' (10)");
}
TEST_F(Update, ConditionPerRow) {
  const ValueId conditions = input("conditions", {10});
  EXPECT_EQ(shape_error([&] { sgd_update(graph_, weight_, gradient_, gradient_, rate_, {}, "sgd", conditions); }),
            "[sgd_update] 'sgd': apply? wants 0 dimensions, got 'conditions' (10)");
}
TEST_F(Update, MomentumOfOne) {
  EXPECT_EQ(shape_error([&] { sgd_update(graph_, weight_, gradient_, gradient_, rate_, {.momentum = 1}, "sgd"); }),
            "[sgd_update] 'sgd': momentum must be at least 0 and below 1, got 1");
}
TEST_F(Update, NegativeDecay) {
  EXPECT_EQ(shape_error([&] { sgd_update(graph_, weight_, gradient_, gradient_, rate_, {.weight_decay = -1}, "sgd"); }),
            "[sgd_update] 'sgd': weight_decay must be at least 0, got -1");
}
TEST_F(Update, RealStepOfAdamW) {
  EXPECT_EQ(
      shape_error([&] { adamw_update(graph_, weight_, gradient_, gradient_, gradient_, rate_, rate_, {}, "adamw"); }),
      "[adamw_update] 'adamw': step wants i64, got 'learning_rate' () of f32; add a cast");
}

}  // namespace
}  // namespace weft::ops
