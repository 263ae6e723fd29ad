// Choices for whole recipes, against plans of every strategy.
#include "weft/search/auto_strategy.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/base/format.h"
#include "weft/machines/cluster_file.h"

namespace weft::search {
namespace {

using predict::Strategy;

class AutoStrategyTest : public testing::Test {
 protected:
  predict::PlannedModel model(const std::string& name, int64_t batch, models::ModelOptions options = {},
                              const std::string& memory_limit = "") const {
    spec::RunSpec spec;
    spec.model = {name, std::move(options)};
    spec.batch = batch;
    spec.threads = 1;
    spec.optimizer.name = "adamw";
    spec.memory_limit = memory_limit;
    spec::resolve(spec);
    return {.spec = spec,
            .input =
                [input = models::find_model(library_.models, name).default_input](const spec::StepShape& shape) {
                  models::ModelInput own = input;
                  own.batch = shape.batch;
                  return own;
                },
            .samples = 1000};
  }
  static predict::Place here() {
    return {.cluster = nullptr,
            .times_here =
                [](const predict::HostCores& host) {
                  return predict::modelled_times(rated_costs(), static_cast<int>(host.threads), 0.3);
                },
            .cores = 64};
  }
  static Strategy start(const predict::PlannedModel& of, int64_t ranks, int64_t ranks_per_host) {
    return predict::strategy_of(of.spec, ranks, ranks_per_host);
  }
  /// The least time of a step that any strategy's plan has, and how many were planned.
  std::pair<double, int> best_of_all_plans(const predict::PlannedModel& of, const predict::Place& place,
                                           const Strategy& start) const {
    double best = kNever;
    int plans = 0;
    for (const Strategy& strategy : candidates_of(library_, of.spec, start).strategies) {
      try {
        best = std::min(best, predict_on(library_, of, strategy, place).step().expected);
        ++plans;
      } catch (const Error&) {  // does not fit, or cannot be cut
      }
    }
    return {best, plans};
  }
  const Library library_ = standard_library();
};

TEST_F(AutoStrategyTest, TheChoiceIsTheBestOfAllPlans) {
  const models::ModelOptions small{{"layers", "2"}, {"heads", "2"}, {"width", "32"}};
  machines::ClusterFile slow = machines::read_cluster("epyc_1g");
  slow.hosts = 4;
  slow.devices_per_host = 1;
  for (const auto& [name, options] :
       {std::pair<std::string, models::ModelOptions>{"transformer_lm", small}, {"mlp", {}}}) {
    for (const machines::ClusterFile* cluster :
         {static_cast<const machines::ClusterFile*>(nullptr), &std::as_const(slow)}) {
      const predict::PlannedModel of = model(name, 16, options);
      predict::Place place = here();
      place.cluster = cluster;
      const Strategy from = start(of, 4, cluster == nullptr ? 4 : 1);
      const Choice choice = choose_strategy(library_, of, place, from);
      const auto [best, plans] = best_of_all_plans(of, place, from);
      EXPECT_GT(plans, 20);
      ASSERT_TRUE(choice.found.is_planned);
      EXPECT_DOUBLE_EQ(choice.found.ranked[*choice.found.chosen].planned->seconds, best)
          << name << (cluster != nullptr ? " on slow links" : " on one host") << "\n"
          << describe(choice);
    }
  }
}

TEST_F(AutoStrategyTest, DividedExpertsAreEstimatedAsTheyArePlanned) {
  predict::PlannedModel of =
      model("transformer_lm", 16, {{"layers", "2"}, {"heads", "2"}, {"width", "64"}, {"experts", "32"}});
  of.spec.shard.experts = "data";
  of.spec.shard.zero = 1;  // one level, of whatever mesh
  const Choice choice = choose_strategy(library_, of, here(), start(of, 4, 4));
  int compared = 0;
  for (const Ranked& one : choice.found.ranked) {
    if (!one.planned || one.strategy.data() < 4) continue;
    EXPECT_NEAR(one.estimate.memory_bytes / one.planned->memory_bytes, 1, 0.25) << predict::describe(one.strategy);
    ++compared;
  }
  EXPECT_GT(compared, 0) << describe(choice);
}

TEST_F(AutoStrategyTest, TheSameQuestionHasTheSameAnswer) {
  const predict::PlannedModel of = model("transformer_lm", 16);
  const predict::Place place = here();
  EXPECT_EQ(describe(choose_strategy(library_, of, place, start(of, 2, 2))),
            describe(choose_strategy(library_, of, place, start(of, 2, 2))));
}

TEST_F(AutoStrategyTest, StatesThatOneRankCannotHoldAreDivided) {
  const predict::PlannedModel free = model("transformer_lm", 16);
  const predict::Prediction alone = predict_on(library_, free, start(free, 1, 1), here());
  const auto third = static_cast<double>(alone.memory.total()) / 3;
  const predict::PlannedModel of = model("transformer_lm", 16, {}, fmt::format("{:.0f}B", third));
  const Choice choice = choose_strategy(library_, of, here(), start(of, 4, 4));
  const Ranked& chosen = choice.found.ranked[*choice.found.chosen];
  EXPECT_LE(chosen.memory_bytes(), third);
  EXPECT_TRUE(chosen.planned && chosen.planned->fits);
}

TEST_F(AutoStrategyTest, WhereNothingFitsTheErrorNamesTheLeastThatDoes) {
  const models::ModelOptions small{{"layers", "2"}, {"heads", "2"}, {"width", "32"}};
  const predict::PlannedModel of = model("transformer_lm", 4, small, "0.2MB");
  const std::string message =
      test::error_of([&] { choose_strategy(library_, of, here(), start(of, 2, 2)); }, ErrorKind::usage);
  const size_t at = message.find("--memory-limit ");
  ASSERT_NE(at, std::string::npos) << message;
  const std::string least = message.substr(at + 15, message.find(' ', at + 15) - at - 15);
  const predict::PlannedModel enough = model("transformer_lm", 4, small, least);
  const Choice choice = choose_strategy(library_, enough, here(), start(enough, 2, 2));
  EXPECT_LE(choice.found.ranked[*choice.found.chosen].memory_bytes(), static_cast<double>(parse_bytes(least).value()));
}

TEST_F(AutoStrategyTest, TheGapToTheLowerBoundIsBelowTwoPercent) {
  for (const std::string name : {"transformer_lm", "resnet18", "alexnet", "vit_tiny", "lenet5", "densenet121"}) {
    const Limits no_plans{.plans = 0, .most_plans = 0};
    const predict::PlannedModel free = model(name, 16);
    const Choice whole = choose_strategy(library_, free, here(), start(free, 1, 1), no_plans);
    // What all of the batch at once would need: something is computed twice, or in smaller batches.
    double most = 0;
    for (const Ranked& one : whole.found.ranked) most = std::max(most, one.estimate.memory_bytes);
    const predict::PlannedModel of = model(name, 16, {}, fmt::format("{:.0f}B", 0.8 * most));
    const Choice choice = choose_strategy(library_, of, here(), start(of, 2, 2), no_plans);
    EXPECT_LE(choice.found.gap(), 0.02) << name << "\n" << describe(choice);
  }
}

TEST_F(AutoStrategyTest, KeysThatTheRecipeSetsStay) {
  predict::PlannedModel of = model("transformer_lm", 16);
  of.spec.shard.zero = 1;
  const Choice choice = choose_strategy(library_, of, here(), start(of, 2, 2));
  EXPECT_EQ(choice.strategy().zero, 1);
  spec::RunSpec spec = of.spec;
  spec.strategy = "auto";
  apply_choice(choice.strategy(), spec);
  EXPECT_EQ(spec.strategy, "manual");
  EXPECT_EQ(spec.shard.zero, 1);
  EXPECT_EQ(spec.batch * spec.accumulate, 16);
}

TEST_F(AutoStrategyTest, AHundredLayersOnAThousandRanksAreFewGraphsAndEstimates) {
  const predict::PlannedModel of =
      model("transformer_lm", 1024, {{"layers", "100"}, {"heads", "16"}, {"width", "1024"}});
  machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  cluster.hosts = 128;
  predict::Place place = here();
  place.cluster = &cluster;
  const Choice choice = choose_strategy(library_, of, place, start(of, 1024, 8));
  EXPECT_GE(choice.found.counts.candidates, 300);
  EXPECT_LE(choice.graphs, 2 + 2 * 11)
      << "two of a micro-batch, and two for each number of ranks that may share layers";
  EXPECT_LE(choice.found.counts.estimated, 3000);  // pipelines by five schedules, with shard.zero 0, 1 and 2 among them
  EXPECT_LE(choice.found.counts.points, 2'000'000);
  EXPECT_LE(choice.found.gap(), 0.02);
  EXPECT_NE(choice.blocks.find("100 equal blocks"), std::string::npos) << choice.blocks;
}

}  // namespace
}  // namespace weft::search
