// Offers by plans of real models.
#include "weft/planner/offers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/machines/cluster_file.h"
#include "weft/search/auto_strategy.h"

namespace weft::planner {
namespace {

class OffersTest : public testing::Test {
 protected:
  predict::PlannedModel model(const std::string& name, int64_t batch) const {
    spec::RunSpec spec;
    spec.model.name = name;
    spec.batch = batch;
    spec.threads = 1;
    spec.epochs = 2;
    spec.optimizer.name = "adamw";
    spec::resolve(spec);
    return {.spec = spec,
            .input =
                [input = models::find_model(library_.models, name).default_input](const spec::StepShape& shape) {
                  models::ModelInput own = input;
                  own.batch = shape.batch;
                  return own;
                },
            .samples = 10000};
  }
  const Library library_ = standard_library();
};

TEST_F(OffersTest, TheChoiceIsTheBestOfTheOffersOfAllCandidates) {
  std::vector<machines::ClusterFile> clusters{machines::read_cluster("p3_16xlarge")};
  const predict::PlannedModel of = model("transformer_lm", 64);
  // All share the work among as many ranks: no bound leaves any of them out.
  std::vector<Candidate> candidates = candidates_of(clusters, of.spec, {});
  std::erase_if(candidates, [](const Candidate& one) { return one.strategy.ranks != 8; });
  ASSERT_EQ(candidates.size(), 4u);
  const Evaluator evaluator = evaluator_of(library_, of, {});
  std::vector<Offer> offers;
  for (const Candidate& candidate : candidates) offers.push_back(evaluator.offer(candidate));
  const auto fastest = std::min_element(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
    return a.seconds.expected < b.seconds.expected;
  });
  const Found found = search(candidates, {}, evaluator);
  EXPECT_EQ(found.left_out, 0);
  ASSERT_EQ(found.offers.size(), offers.size());
  EXPECT_EQ(found.offers.front().candidate.strategy, fastest->candidate.strategy);
}

TEST_F(OffersTest, AnOpenStrategyIsChosenForEachClusterAndNumberOfRanks) {
  std::vector<machines::ClusterFile> clusters{machines::read_cluster("m40_10g")};
  clusters[0].hosts = 2;
  clusters[0].devices_per_host = 1;
  predict::PlannedModel of = model("transformer_lm", 16);
  of.spec.model.options = {{"layers", "2"}, {"heads", "2"}, {"width", "256"}};
  const std::vector<Candidate> candidates = candidates_of(clusters, of.spec, {.open = true});
  ASSERT_EQ(candidates.size(), 2u);
  const Evaluator evaluator = evaluator_of(library_, of, {});
  const Offer two = evaluator.offer(candidates[1]);
  predict::Place place{.cluster = &clusters[0]};
  const search::Choice choice = search::choose_strategy(library_, of, place, candidates[1].strategy, kLimitsOfChoices);
  EXPECT_EQ(two.candidate.strategy, choice.strategy()) << predict::describe(two.candidate.strategy);
}

}  // namespace
}  // namespace weft::planner
