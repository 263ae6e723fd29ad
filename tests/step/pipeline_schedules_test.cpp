// Twenty steps of four stages by each schedule, on ranks that here are threads: their losses are those of one process
// that accumulates the same micro-batches.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/support/pipeline_rig.h"
#include "weft/passes/ranks/pipeline_schedule.h"

namespace weft::step {
namespace {

const std::vector<PipelineModel> kScheduledModels = {
    {"transformer_lm", {12}, 24, {{"layers", "8"}, {"heads", "2"}, {"width", "32"}, {"dropout", "0.1"}}, "adamw"},
    {"resnet18", {3, 16, 16}, 10, {}, "sgd", /*has_statistics=*/true},
};

class PipelineSchedules : public testing::TestWithParam<std::tuple<PipelineModel, std::string>> {};
INSTANTIATE_TEST_SUITE_P(Models, PipelineSchedules,
                         testing::Combine(testing::ValuesIn(kScheduledModels),
                                          testing::ValuesIn(passes::pipeline_schedules())),
                         [](const auto& tested) {
                           const std::string& schedule = std::get<1>(tested.param);
                           return std::get<0>(tested.param).name + "_" +
                                  (schedule == "1f1b" ? "alternating" : schedule);
                         });

TEST_P(PipelineSchedules, TwentyStepsOfFourStagesAreThoseOfOneProcess) {
  const auto& [model, schedule] = GetParam();
  PipelineRig rig(model, 2, 8);
  const bool has_statistics = model.has_statistics;
  rig.change = [has_statistics](spec::RunSpec& spec) {
    // Batch norm over few numbers turns any rounding into large steps.
    if (has_statistics) spec.optimizer.learning_rate = 1e-5;
  };
  expect_same_steps(rig.alone(20), rig.on_ranks(rig.pipelined(4, schedule), 20), 1e-5, has_statistics ? 3e-2 : 5e-3);
}

}  // namespace
}  // namespace weft::step
