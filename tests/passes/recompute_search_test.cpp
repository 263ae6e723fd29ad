#include "weft/passes/recompute_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "weft/base/rng.h"

namespace weft::passes {
namespace {

/// A chain with skip links, forward and backward: layer i reads the results of layer i - 1 and, where it has one, of an
/// earlier layer; its gradient step reads the gradient from above, its operands and its result.
RecomputeProblem make_chain(int layers, uint64_t seed) {
  RandomStream random(seed);
  RecomputeProblem problem;
  std::vector<std::vector<int32_t>> operands;
  for (int layer = 0; layer < layers; ++layer) {
    problem.buffers.push_back({100 + static_cast<int64_t>(random.below(900)), false});
    RecomputeStep step;
    if (layer > 0) step.reads.push_back(layer - 1);
    if (layer > 2 && random.below(2) == 0)
      step.reads.push_back(static_cast<int32_t>(random.below(static_cast<uint32_t>(layer - 1))));
    operands.push_back(step.reads);
    step.writes = {layer};
    step.reads_again = step.reads;
    step.writes_again = step.writes;
    step.seconds_again = 1 + random.below(20);
    problem.steps.push_back(std::move(step));
  }
  for (int layer = layers; layer-- > 0;) {
    const auto gradient = static_cast<int32_t>(problem.buffers.size());
    problem.buffers.push_back({problem.buffers[static_cast<size_t>(layer)].bytes, false});
    RecomputeStep step;
    step.reads = operands[static_cast<size_t>(layer)];
    step.reads.push_back(layer);
    if (layer + 1 < layers) step.reads.push_back(gradient - 1);
    step.writes = {gradient};
    step.is_repeatable = false;
    problem.steps.push_back(std::move(step));
  }
  return problem;
}

/// The cheapest of all subsets that fits; negative: none does.
double cheapest_of_all(const RecomputeProblem& problem, int layers, int64_t limit) {
  RecomputeSimulator simulator(problem);
  double best = -1;
  for (uint32_t subset = 0; subset < (1u << layers); ++subset) {
    std::vector<Fate> fates(problem.buffers.size(), Fate::stays);
    for (int layer = 0; layer < layers; ++layer)
      if ((subset >> layer & 1) != 0) fates[static_cast<size_t>(layer)] = Fate::again;
    const RecomputeOutcome outcome = simulator.run(fates, limit);
    if (outcome.excess == 0 && (best < 0 || outcome.seconds < best)) best = outcome.seconds;
  }
  return best;
}

TEST(RecomputeSearch, NothingIsDroppedWhereEverythingFits) {
  const RecomputeProblem problem = make_chain(10, 1);
  const RecomputeChoice choice = choose_recompute(problem, 1'000'000);
  EXPECT_TRUE(choice.fits());
  EXPECT_EQ(choice.outcome.seconds, 0);
  EXPECT_EQ(choice.events.size(), problem.steps.size());
}

TEST(RecomputeSearch, IsNearTheBestOfAllSubsets) {
  constexpr int kLayers = 12;
  double found = 0, best = 0;
  int cases = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const RecomputeProblem problem = make_chain(kLayers, seed);
    RecomputeSimulator simulator(problem);
    const int64_t peak = simulator.run(std::vector<Fate>(problem.buffers.size(), Fate::stays), 0).peak_bytes;
    for (const int64_t percent : {85, 70, 60}) {
      const int64_t limit = peak * percent / 100;
      const double cheapest = cheapest_of_all(problem, kLayers, limit);
      const RecomputeChoice choice = choose_recompute(problem, limit);
      if (cheapest < 0) continue;
      ++cases;
      ASSERT_TRUE(choice.fits()) << "seed " << seed << ", " << percent << " %";
      EXPECT_LE(choice.outcome.seconds, 1.25 * cheapest) << "seed " << seed << ", " << percent << " %";
      found += choice.outcome.seconds;
      best += cheapest;
    }
  }
  EXPECT_GT(cases, 20);
  EXPECT_LE(found, 1.02 * best) << "on average";
}

TEST(RecomputeSearch, LongChainsNeedTheRootOfTheirLength) {
  constexpr int kLayers = 100;
  RecomputeProblem problem;
  for (int layer = 0; layer < kLayers; ++layer) {
    problem.buffers.push_back({64, false});
    RecomputeStep step;
    if (layer > 0) step.reads = {layer - 1};
    step.writes = {layer};
    step.reads_again = step.reads;
    step.writes_again = step.writes;
    step.seconds_again = 1;
    problem.steps.push_back(std::move(step));
  }
  for (int layer = kLayers; layer-- > 0;) {
    RecomputeStep step;
    step.reads = {layer};
    step.is_repeatable = false;
    problem.steps.push_back(std::move(step));
  }
  // Chen et al. 2016: with segments of 10 the 10 ends stay and one segment is made again at a time.
  const RecomputeChoice choice = choose_recompute(problem, 64 * 21);
  EXPECT_TRUE(choice.fits());
  EXPECT_LE(choice.outcome.seconds, 100) << "each layer at most once more";
}

TEST(RecomputeSearch, EventsRunEveryStepOnceInTurnAndNothingBeforeItsOperands) {
  const RecomputeProblem problem = make_chain(30, 3);
  RecomputeSimulator simulator(problem);
  const int64_t peak = simulator.run(std::vector<Fate>(problem.buffers.size(), Fate::stays), 0).peak_bytes;
  const RecomputeChoice choice = choose_recompute(problem, peak / 2);
  ASSERT_TRUE(choice.fits());
  std::set<int32_t> written;
  int32_t next = 0;
  for (const RecomputeEvent& event : choice.events) {
    const RecomputeStep& step = problem.steps[static_cast<size_t>(event.step)];
    for (const int32_t read : step.reads) EXPECT_TRUE(written.contains(read));
    for (const int32_t buffer : step.writes) written.insert(buffer);
    if (event.is_again) continue;
    EXPECT_EQ(event.step, next);
    ++next;
  }
  EXPECT_EQ(next, static_cast<int32_t>(problem.steps.size()));
}

TEST(RecomputeSearch, TheSameProblemHasTheSameAnswer) {
  const RecomputeProblem problem = make_chain(40, 5);
  const RecomputeChoice one = choose_recompute(problem, 9000), other = choose_recompute(problem, 9000);
  EXPECT_EQ(one.fates, other.fates);
}

}  // namespace
}  // namespace weft::passes
