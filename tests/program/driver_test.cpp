#include "weft/program/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/step/step.h"

namespace weft::program {
namespace {

/// w += step x image for a batch of 2; of 3 there is no graph.
constexpr const char* kBatch = R"(graph "batch" {
  batch %image "image" : f32[2]
  state %w "w" : f32[2]
  scalar %step "step" : f32[]
  %scaled = multiply(%image, %step) : f32[2]
  %sum = add(%w, %scaled) : f32[2]
  output "sum" %sum
  update "w" %sum
})";
/// w = -w
constexpr const char* kUpdate = R"(graph "update" {
  state %w "w" : f32[2]
  %negative = negate(%w) : f32[2]
  update "w" %negative
})";

class DriverTest : public testing::Test {
 protected:
  DriverTest()
      : step_{.graph = parse_graph(kBatch, registry_),
              .parameters = {},
              .slots = {},
              .update = parse_graph(kUpdate, registry_)},
        program_(
            [this](const spec::StepShape& shape) {
              if (shape.batch != 2) fail(ErrorKind::usage, "no graph for {}", shape.batch);
              return step_.graph;
            },
            backend_, {}) {
    program_.add_phases_of(step_);
    state_.set("w", Tensor(DType::f32, {2}));
    image_.data_as<float>()[0] = 1;
    image_.data_as<float>()[1] = 10;
  }
  std::vector<float> weights() const {
    const Tensor w = state_.plain("w");
    return {w.data_as<float>()[0], w.data_as<float>()[1]};
  }
  void run_batch(Driver& driver, double step) {
    driver.executor().bind_batch("image", image_.data());
    driver.set_scalar("step", step);
    driver.run();
  }

  const OpRegistry registry_ = ops::make_registry();
  const CpuBackend backend_{1};
  const step::TrainingStep step_;
  Program program_;
  State state_;
  Tensor image_{DType::f32, {2}};
};

TEST_F(DriverTest, PhasesRunInTurnOverOneState) {
  Driver driver(program_, state_);
  driver.select(2);
  run_batch(driver, 1);
  run_batch(driver, 2);
  EXPECT_THAT(weights(), testing::ElementsAre(3, 30));
  driver.run(Phase::update);
  EXPECT_THAT(weights(), testing::ElementsAre(-3, -30));
  run_batch(driver, 1);
  EXPECT_THAT(weights(), testing::ElementsAre(-2, -20));
  EXPECT_EQ(driver.last(), Phase::update);
  EXPECT_FALSE(driver.has(Phase::averaging));
}

TEST_F(DriverTest, ScalarsThatAPhaseLacksAreLeftOut) {
  Driver driver(program_, state_);
  driver.select(2);
  driver.set_scalar("momentum", 1);
  driver.set_scalar("step", 1, Phase::update);
  run_batch(driver, 1);
  EXPECT_THAT(weights(), testing::ElementsAre(1, 10));
}

TEST_F(DriverTest, AShapeThatCannotBeMadeIsNotSelected) {
  Driver driver(program_, state_);
  EXPECT_THROW(driver.select(3), Error);
  EXPECT_NE(driver.shape(), spec::StepShape(3));
  driver.select(2);
  EXPECT_THROW(driver.select(3), Error);
  EXPECT_EQ(driver.shape(), spec::StepShape(2));
  run_batch(driver, 1);
  EXPECT_THAT(weights(), testing::ElementsAre(1, 10));
}

}  // namespace
}  // namespace weft::program
