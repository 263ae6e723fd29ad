// Offers by plans of real models.
#include "weft/planner/offers.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/base/error.h"
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
  // Where updates take long, shared states are faster than whole ones that fit.
  std::vector<machines::ClusterFile> clusters{machines::read_cluster("p3_16xlarge"), machines::read_cluster("m40_10g")};
  for (machines::ClusterFile& cluster : clusters) cluster.hosts = 1;
  for (const std::string name : {"mlp", "transformer_lm"}) {
    const predict::PlannedModel of = model(name, 64);
    const std::vector<Candidate> candidates = candidates_of(clusters, of.spec, {});
    const Evaluator evaluator = evaluator_of(library_, of, {});
    const Offer* fastest = nullptr;
    std::vector<Offer> offers;
    for (const Candidate& candidate : candidates) offers.push_back(evaluator.offer(candidate));
    for (const Offer& offer : offers)
      if (fastest == nullptr || offer.seconds.expected < fastest->seconds.expected) fastest = &offer;
    const Found found = search(candidates, {.deadline_seconds = 1.001 * fastest->seconds.high}, evaluator);
    ASSERT_TRUE(found.best) << name;
    EXPECT_EQ(found.offers.front().candidate.strategy, fastest->candidate.strategy) << name;
    EXPECT_GT(fastest->candidate.strategy.zero, 0) << name << ": the case shows nothing where plain is the fastest";
  }
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
  const search::Choice choice = search::choose_strategy(library_, of, place, candidates[1].strategy);
  EXPECT_EQ(two.candidate.strategy, choice.strategy()) << predict::describe(two.candidate.strategy);
  for (const Candidate& usual : candidates_of(clusters, of.spec, {}))
    if (usual.strategy.ranks == 2)
      EXPECT_LE(two.seconds.expected, 1.0001 * evaluator.offer(usual).seconds.expected)
          << predict::describe(usual.strategy);
}

}  // namespace
}  // namespace weft::planner
