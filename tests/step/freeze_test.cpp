// optimizer.freeze: parameters that take no part in a step, and batch normalisation under them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/error_of.h"
#include "weft/library/library.h"
#include "weft/step/step.h"

namespace weft::step {
namespace {

class Freeze : public ::testing::Test {
 protected:
  TrainingStep step_with(const std::string& freeze, double ema = 0) const {
    spec::RunSpec spec;
    spec.model.name = "resnet18";
    spec.model.options = {{"width", "8"}};
    spec.optimizer.freeze = freeze;
    spec.ema.decay = ema;
    spec::resolve(spec, library_);
    return build_training_step(library_, spec, {.batch = 2, .shape = {3, 32, 32}, .classes = 4});
  }
  static bool updates(const TrainingStep& step, const std::string& state) {
    const auto& all = step.graph.updates();
    return std::any_of(all.begin(), all.end(), [&](const StateUpdate& update) { return update.state == state; });
  }
  static int64_t count(const TrainingStep& step, const std::string& op) {
    const auto& nodes = step.graph.nodes();
    return std::count_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.op->name == op; });
  }
  const Library library_ = standard_library();
};

TEST_F(Freeze, LeavesNoGradientNoSlotAndNoUpdate) {
  const TrainingStep whole = step_with(""), step = step_with("conv1.*, bn1.*, layer*");
  EXPECT_EQ(count(step, "conv2d_backward_weights"), 0);
  EXPECT_EQ(count(step, "conv2d_backward_data"), 0);
  EXPECT_GT(count(whole, "conv2d_backward_weights"), 0);
  ASSERT_EQ(step.slots.size(), 2u) << "a momentum for fc.weight and fc.bias alone";
  EXPECT_EQ(step.slots[0].name, slot_name("velocity", "fc.weight"));
  EXPECT_TRUE(updates(step, "fc.weight"));
  EXPECT_FALSE(updates(step, "conv1.weight"));
  EXPECT_EQ(step.parameters.size(), whole.parameters.size()) << "the state is the same";
}

TEST_F(Freeze, CommasInBracketsBelongToAPattern) {
  const TrainingStep step = step_with("regex:layer[1,2]\\..*, regex:(conv|bn){1,1}1\\..*");
  for (const char* frozen : {"conv1.weight", "bn1.weight", "layer1.0.conv1.weight", "layer2.1.conv2.weight"})
    EXPECT_FALSE(updates(step, frozen)) << frozen;
  for (const char* trained : {"layer3.0.conv1.weight", "layer4.1.bn2.weight", "fc.weight"})
    EXPECT_TRUE(updates(step, trained)) << trained;
}

TEST_F(Freeze, OfABatchNormKeepsItsStatistics) {
  const TrainingStep step = step_with("bn1.*");
  EXPECT_FALSE(updates(step, "bn1.running_mean"));
  EXPECT_FALSE(updates(step, "bn1.running_var"));
  EXPECT_TRUE(updates(step, "layer1.0.bn1.running_mean"));
  EXPECT_EQ(count(step, "batch_norm_inference"), 1) << "it normalises as in inference";
  EXPECT_TRUE(updates(step, "conv1.weight")) << "gradients pass through it";
}

TEST_F(Freeze, OfItsScaleAloneLetsABatchNormLearnItsStatistics) {
  const TrainingStep step = step_with("bn1.weight");
  EXPECT_TRUE(updates(step, "bn1.running_mean"));
  EXPECT_EQ(count(step, "batch_norm_inference"), 0);
}

TEST_F(Freeze, HasNoAverageOfStatisticsThatStay) {
  const TrainingStep step = step_with("bn1.*", 0.9);
  const auto has = [&](const std::string& name) {
    return std::any_of(step.slots.begin(), step.slots.end(), [&](const SlotSpec& slot) { return slot.name == name; });
  };
  EXPECT_FALSE(has(slot_name("ema", "bn1.running_mean")));
  EXPECT_FALSE(has(slot_name("ema", "bn1.weight")));
  EXPECT_TRUE(has(slot_name("ema", "layer1.0.bn1.running_mean")));
}

TEST_F(Freeze, SaysWhatIsWrong) {
  EXPECT_NE(
      test::error_of([&] { step_with("conv1.*, head.*"); }).find("optimizer.freeze = 'head.*' matches no parameter"),
      std::string::npos);
  EXPECT_NE(test::error_of([&] { step_with("*"); }).find("optimizer.freeze = '*' leaves no parameter to train"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::step
