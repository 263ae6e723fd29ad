// What is read off two small graphs, against graphs that are built for as many rows.
#include "weft/search/model_profile.h"

#include <gtest/gtest.h>

#include <numeric>

#include "weft/graph/signature_key.h"
#include "weft/step/step.h"

namespace weft::search {
namespace {

class ModelProfileTest : public testing::Test {
 protected:
  static spec::RunSpec spec(const std::string& model, models::ModelOptions options = {}) {
    spec::RunSpec spec;
    spec.model = {model, std::move(options)};
    spec.batch = 8;
    spec.threads = 1;
    spec.optimizer.name = "adamw";
    spec::resolve(spec);
    return spec;
  }
  std::function<models::ModelInput(const spec::StepShape&)> input(const std::string& model) const {
    return [input = models::find_model(library_.models, model).default_input](const spec::StepShape& shape) {
      models::ModelInput own = input;
      own.batch = shape.batch;
      return own;
    };
  }
  ModelProfile profile(const spec::RunSpec& spec) const {
    return ModelProfile(library_, spec, input(spec.model.name), predict::modelled_times(rated_costs(), 1, 0.3),
                        rated_costs());
  }
  static double seconds_of(const StagedCosts& costs) {
    double seconds = 0;
    for (const StageCost& stage : costs.stages)
      seconds = std::accumulate(std::begin(stage.seconds), std::end(stage.seconds), seconds);
    return seconds;
  }
  const Library library_ = standard_library();
};

TEST_F(ModelProfileTest, NodesForOtherRowsAreThoseOfAGraphBuiltForThem) {
  for (const std::string model : {"transformer_lm", "resnet18", "lenet5"}) {
    const spec::RunSpec of = spec(model);
    const auto built = [&](int64_t rows) {
      return step::build_micro_batch(library_, of, input(model)(spec::StepShape(rows))).graph;
    };
    const ScaledGraph scaled(built(kSmallRows), built(kLargeRows));
    const Graph eight = built(8);
    ASSERT_EQ(scaled.graph().nodes().size(), eight.nodes().size());
    for (size_t at = 0; at < eight.nodes().size(); ++at) {
      const NodeId id{static_cast<int32_t>(at)};
      const NodeSignature one = scaled.signature(id, 8), other = signature_of(eight, id);
      EXPECT_EQ(one.inputs, other.inputs) << model << " " << other.name;
      EXPECT_EQ(one.outputs, other.outputs) << model << " " << other.name;
    }
  }
}

TEST_F(ModelProfileTest, EqualBlocksAreFoundInTheGraph) {
  EXPECT_NE(profile(spec("transformer_lm", {{"layers", "7"}})).describe_blocks().find("7 equal blocks"),
            std::string::npos)
      << profile(spec("transformer_lm", {{"layers", "7"}})).describe_blocks();
}

TEST_F(ModelProfileTest, StagesAreTheWholeModelCut) {
  ModelProfile of = profile(spec("transformer_lm"));
  const StagedCosts& whole = of.costs(4, 1, 1);
  const StagedCosts& cut = of.costs(4, 1, 3);
  EXPECT_EQ(cut.stages.size(), 3u);
  EXPECT_NEAR(seconds_of(cut), seconds_of(whole), 1e-9);
  double weights = 0;
  for (const StageCost& stage : cut.stages) {
    EXPECT_GT(stage.weight_bytes, 0);
    EXPECT_NEAR(stage.slot_bytes, 2 * stage.weight_bytes, 0.01 * stage.weight_bytes) << "of adamw";
    weights += stage.weight_bytes;
  }
  EXPECT_NEAR(weights, whole.all_weight_bytes, 1e-6);
  EXPECT_GT(cut.stages[0].sent_bytes, 0);
  EXPECT_EQ(cut.stages[2].sent_bytes, 0);
}

TEST_F(ModelProfileTest, RanksThatShareLayersHaveHalfOfThemAndExchange) {
  ModelProfile of = profile(spec("transformer_lm"));
  const StageCost& whole = of.costs(4, 1, 1).stages[0];
  const StageCost& shared = of.costs(4, 2, 1).stages[0];
  EXPECT_LT(shared.weight_bytes, 0.6 * whole.weight_bytes);
  EXPECT_TRUE(whole.exchanges.empty());
  int64_t exchanges = 0;
  for (const auto& [exchange, count] : shared.exchanges) exchanges += count;
  EXPECT_GE(exchanges, 4 * 4) << "two forward and two backward in each of four layers";
  EXPECT_LT(seconds_of(of.costs(4, 2, 1)), seconds_of(of.costs(4, 1, 1)));
}

TEST_F(ModelProfileTest, RanksThatDivideExpertsHaveAPartOfThemAndSendTheirTokens) {
  spec::RunSpec mixture = spec("transformer_lm", {{"experts", "8"}});
  mixture.shard.experts = "data";
  ModelProfile of = profile(mixture);
  const StageCost& whole = of.costs(4, 1, 1).stages[0];
  const StageCost& divided = of.costs(4, 1, 1, /*data=*/4).stages[0];
  EXPECT_EQ(whole.expert_weight_bytes, 0);
  const double experts = 4 * divided.expert_weight_bytes;
  EXPECT_GT(experts, 0.3 * whole.weight_bytes);
  EXPECT_DOUBLE_EQ(divided.weight_bytes + experts - divided.expert_weight_bytes, whole.weight_bytes);
  EXPECT_DOUBLE_EQ(divided.expert_slot_bytes, 2 * divided.expert_weight_bytes) << "AdamW has two";
  EXPECT_DOUBLE_EQ(divided.expert_gradient_bytes, divided.expert_weight_bytes);
  EXPECT_TRUE(whole.exchanges.empty());
  ASSERT_FALSE(divided.exchanges.empty());
  for (const auto& [exchange, count] : divided.exchanges) {
    EXPECT_EQ(exchange.op, "all_to_all");
    EXPECT_EQ(exchange.axis, "data");
  }
}

TEST_F(ModelProfileTest, OtherRowsWantNoOtherGraphs) {
  ModelProfile of = profile(spec("transformer_lm"));
  of.costs(1, 1, 1);
  const int64_t graphs = of.graphs();
  for (const int64_t rows : {1, 2, 3, 16, 64})
    for (const int stages : {1, 2, 4}) of.costs(rows, 1, stages);
  EXPECT_EQ(of.graphs(), graphs);
}

}  // namespace
}  // namespace weft::search
