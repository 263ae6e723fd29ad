// Dropouts draw by the place of a row in the whole update, however its rows are divided.
#include "weft/step/global_draws.h"

#include <gtest/gtest.h>

#include "tests/support/pipeline_rig.h"
#include "tests/support/ranks_rig.h"

namespace weft::step {
namespace {

const std::vector<PipelineModel> kDrawingModels = {
    {"transformer_lm", {12}, 24, {{"layers", "2"}, {"heads", "2"}, {"width", "32"}, {"dropout", "0.3"}}, "adamw"},
    {"vit_tiny", {3, 16, 16}, 10, {{"layers", "2"}, {"width", "48"}, {"dropout", "0.3"}}},
    {"alexnet", {3, 64, 64}, 10, {{"dropout", "0.5"}}},
    {"lstm_classifier", {1, 8, 8}, 10, {{"layers", "2"}, {"width", "16"}, {"dropout", "0.3"}}},
    {"seq2seq_attention",
     {14},
     24,
     {{"width", "32"}, {"layers", "2"}, {"dropout", "0.3"}},
     "adamw",
     /*has_statistics=*/false,
     /*source=*/7},
};

class GlobalDraws : public testing::TestWithParam<PipelineModel> {};
INSTANTIATE_TEST_SUITE_P(Models, GlobalDraws, testing::ValuesIn(kDrawingModels),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(GlobalDraws, RanksDropWhatOneProcessDrops) {
  const PipelineRig rig(GetParam(), 8, 1);
  for (const int ranks : {2, 4}) {
    spec::RunSpec spec = rig.spec();
    spec.mesh.data = ranks;
    expect_same_steps(rig.alone(3), rig.on_ranks(spec, 3), 1e-5, 2e-3);
  }
}

TEST_P(GlobalDraws, AccumulatedBatchesDropWhatOneBatchDrops) {
  expect_same_steps(PipelineRig(GetParam(), 8, 1).alone(3), {PipelineRig(GetParam(), 2, 4).alone(3)}, 1e-5, 2e-3);
}

TEST_P(GlobalDraws, AccumulatedBatchesOfRanksToo) {
  const PipelineRig rig(GetParam(), 4, 2);
  spec::RunSpec spec = rig.spec();
  spec.mesh.data = 2;
  expect_same_steps(PipelineRig(GetParam(), 8, 1).alone(3), rig.on_ranks(spec, 3), 1e-5, 2e-3);
}

class DrawnRuns : public RanksTest {
 protected:
  /// The losses of its epochs.
  std::vector<double> losses_of(const spec::RunSpec& spec, const Hosts& hosts, const std::string& name) {
    const Library library = drawn_library(drawn_images(), 192, 70);
    if (hosts.empty())
      run::start_run(library, spec, path(name), {});
    else
      train(library, spec, hosts, name);
    std::vector<double> losses;
    for (const std::string& line : curve(name, "epoch")) losses.push_back(std::stod(line.substr(line.find(' ') + 1)));
    return losses;
  }

  static spec::RunSpec plain() {
    spec::RunSpec spec = drawn_spec("vit_tiny", 2, 64, 0.01);
    spec.model.options = {{"patch", "8"}, {"width", "16"}, {"layers", "1"}, {"heads", "2"}, {"dropout", "0.4"}};
    return spec;
  }

  void expect_near_plain(const spec::RunSpec& spec, const Hosts& hosts) {
    const std::vector<double> wanted = losses_of(plain(), {}, "plain"), losses = losses_of(spec, hosts, "divided");
    ASSERT_EQ(losses.size(), wanted.size());
    for (size_t epoch = 0; epoch < wanted.size(); ++epoch)
      EXPECT_NEAR(losses[epoch], wanted[epoch], 1e-5 * wanted[epoch]);
  }
};

TEST_F(DrawnRuns, VirtualRanks) {
  spec::RunSpec spec = plain();
  spec.virtual_ranks = 4;
  expect_near_plain(spec, {"a", "a"});
}

TEST_F(DrawnRuns, Grains) {
  spec::RunSpec spec = plain();
  spec.balance.grains = 4;
  expect_near_plain(spec, {"a", "a"});
}

TEST_F(DrawnRuns, Ranks) { expect_near_plain(plain(), {"a", "a"}); }

TEST_F(DrawnRuns, RanksThatTrainApartDropOtherRows) {
  spec::RunSpec spec = plain();
  spec.averaging.period = 1;
  EXPECT_NE(losses_of(spec, {"a", "a"}, "apart"), losses_of(plain(), {}, "plain"));
}

}  // namespace
}  // namespace weft::step
