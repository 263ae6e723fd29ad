#include "weft/ops/update/loss_scaling.h"

#include "ops_fixture.h"

namespace weft::ops {
namespace {

class LossScalingOps : public OpsTest {
 protected:
  const ValueId gradient_ = input("gradient", {10, 84}), scale_ = input("scale", {}), finite_ = input("finite", {});
  const ValueId streak_ = input("streak", {}, DType::i64), updates_ = input("updates", {}, DType::i64),
                skipped_ = input("skipped", {}, DType::i64);
  std::string error_of(const LossScaleOptions& options) {
    return shape_error([&] {
      loss_scale_update(graph_, {scale_, streak_, updates_, skipped_}, finite_, options, "s");
    });
  }
};

TEST_F(LossScalingOps, UnscaledGradientHasTheShapeOfTheGradient) {
  const UnscaledGradient unscaled = unscale_gradient(graph_, gradient_, scale_);
  EXPECT_EQ(graph_.shape(unscaled.gradient), Shape({10, 84}));
  EXPECT_EQ(graph_.shape(unscaled.finite), Shape({}));
}
TEST_F(LossScalingOps, ScalePerRow) {
  const ValueId scales = input("scales", {10});
  EXPECT_EQ(shape_error([&] { unscale_gradient(graph_, gradient_, scales, "u"); }),
            "[unscale_gradient] 'u': scale wants 0 dimensions, got 'scales' (10)");
}
TEST_F(LossScalingOps, GrowthThatShrinks) {
  EXPECT_EQ(error_of({.growth_factor = 0.5}), "[loss_scale_update] 's': growth_factor must be at least 1, got 0.5");
}
TEST_F(LossScalingOps, BackoffThatGrows) {
  EXPECT_EQ(error_of({.backoff_factor = 2}),
            "[loss_scale_update] 's': backoff_factor must be above 0 and at most 1, got 2");
}
TEST_F(LossScalingOps, GrowthAtEveryNoStep) {
  EXPECT_EQ(error_of({.growth_interval = 0}), "[loss_scale_update] 's': growth_interval must be at least 1, got 0");
}

}  // namespace
}  // namespace weft::ops
