#include "weft/passes/memory/recompute_search.h"

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

/// Blocks around a residual stream, as in transformers: a norm of the stream; a product of it, which only the next step
/// reads; two results of that, one for the next product and one for its own gradient; the sum with the stream. A block
/// makes kForwardOfBlock buffers in the forward part, which come before all others.
constexpr int kForwardOfBlock = 5;
RecomputeProblem make_blocks(int blocks, uint64_t seed) {
  RandomStream random(seed);
  RecomputeProblem problem;
  const auto add = [&](int64_t bytes) {
    problem.buffers.push_back({bytes, false});
    return static_cast<int32_t>(problem.buffers.size()) - 1;
  };
  const auto run = [&](std::vector<int32_t> reads, std::vector<int32_t> writes, double seconds_again) {
    RecomputeStep step;
    step.reads_again = step.reads = std::move(reads);
    step.writes_again = step.writes = std::move(writes);
    step.is_repeatable = seconds_again > 0;
    step.seconds_again = seconds_again;
    problem.steps.push_back(std::move(step));
  };
  struct Block {
    int32_t stream, norm, active, wide;
  };
  std::vector<Block> made;
  const int64_t width = 100 + random.below(100);
  int32_t stream = -1;  // of the input: outside of the arena
  for (int count = 0; count < blocks; ++count) {
    const int64_t wide_bytes = 200 + random.below(400);
    const int32_t norm = add(width), product = add(wide_bytes), active = add(wide_bytes), wide = add(wide_bytes),
                  sum = add(width);
    const auto with_stream = [&](int32_t other) {
      return stream < 0 ? std::vector<int32_t>{other} : std::vector<int32_t>{other, stream};
    };
    run(stream < 0 ? std::vector<int32_t>{} : std::vector<int32_t>{stream}, {norm}, 1 + random.below(3));
    run({norm}, {product}, 5 + random.below(15));
    run({product}, {active, wide}, 1 + random.below(5));
    run(with_stream(active), {sum}, 5 + random.below(15));
    made.push_back({stream, norm, active, wide});
    stream = sum;
  }
  int32_t gradient = add(width);
  run({stream}, {gradient}, 0);
  for (int count = blocks; count-- > 0;) {
    const Block& block = made[static_cast<size_t>(count)];
    const int64_t wide_bytes = problem.buffers[static_cast<size_t>(block.wide)].bytes;
    const int32_t of_active = add(wide_bytes), of_wide = add(wide_bytes), of_stream = add(width);
    run({gradient, block.active}, {of_active}, 0);
    run({of_active, block.wide}, {of_wide}, 0);
    std::vector<int32_t> last = {of_wide, block.norm, gradient};
    if (block.stream >= 0) last.push_back(block.stream);
    run(last, {of_stream}, 0);
    gradient = of_stream;
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

struct Comparison {
  int cases = 0;
  double found = 0, best = 0;
};

/// The search beside all subsets of the first `layers` buffers.
void compare(const RecomputeProblem& problem, int layers, const std::vector<int64_t>& percents, Comparison& sums) {
  RecomputeSimulator simulator(problem);
  const int64_t peak = simulator.run(std::vector<Fate>(problem.buffers.size(), Fate::stays), 0).peak_bytes;
  for (const int64_t percent : percents) {
    SCOPED_TRACE(percent);
    const int64_t limit = peak * percent / 100;
    const double cheapest = cheapest_of_all(problem, layers, limit);
    if (cheapest < 0) continue;
    const RecomputeChoice choice = choose_recompute(problem, limit);
    ++sums.cases;
    ASSERT_TRUE(choice.fits());
    EXPECT_LE(choice.outcome.seconds, 1.25 * cheapest);
    sums.found += choice.outcome.seconds;
    sums.best += cheapest;
  }
}

TEST(RecomputeSearch, IsNearTheBestOfAllSubsets) {
  constexpr int kLayers = 12;
  Comparison sums;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    compare(make_chain(kLayers, seed), kLayers, {85, 70, 60}, sums);
  }
  EXPECT_GT(sums.cases, 20);
  EXPECT_LE(sums.found, 1.02 * sums.best) << "on average";
}

TEST(RecomputeSearch, IsNearTheBestOfAllSubsetsOfBlocksAroundAStream) {
  constexpr int kBlocks = 3;
  Comparison sums;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    compare(make_blocks(kBlocks, seed), kBlocks * kForwardOfBlock, {85, 70, 60, 50}, sums);
  }
  EXPECT_GT(sums.cases, 30);
  EXPECT_LE(sums.found, 1.02 * sums.best) << "on average";
}

TEST(RecomputeSearch, WhatPassesByDoesNotStayForItsRepetition) {
  const RecomputeProblem problem = make_blocks(12, 1);
  RecomputeSimulator simulator(problem);
  const int64_t peak = simulator.run(std::vector<Fate>(problem.buffers.size(), Fate::stays), 0).peak_bytes;
  // With all blocks run again from the stream alone: less than the forward part once more.
  double forward = 0;
  for (const RecomputeStep& step : problem.steps) forward += step.seconds_again;
  const RecomputeChoice choice = choose_recompute(problem, peak * 35 / 100);
  EXPECT_TRUE(choice.fits());
  EXPECT_LE(choice.outcome.seconds, forward);
}

TEST(RecomputeSearch, AChoiceIsMendedForALimitNearby) {
  const RecomputeProblem problem = make_blocks(8, 2);
  RecomputeSimulator simulator(problem);
  const int64_t peak = simulator.run(std::vector<Fate>(problem.buffers.size(), Fate::stays), 0).peak_bytes;
  const RecomputeChoice near = choose_recompute(problem, peak * 52 / 100);
  const RecomputeChoice mended = mend_recompute(problem, peak * 50 / 100, near.fates);
  EXPECT_TRUE(mended.fits());
  EXPECT_LE(mended.outcome.peak_bytes, peak * 50 / 100);
  EXPECT_LE(mended.outcome.seconds, 1.05 * choose_recompute(problem, peak * 50 / 100).outcome.seconds);
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

/// A chain whose layers may lie in a file, too: their bytes at this rate.
RecomputeProblem make_chain_with_file(int layers, uint64_t seed, double seconds_per_byte) {
  RecomputeProblem problem = make_chain(layers, seed);
  for (int layer = 0; layer < layers; ++layer) {
    RecomputeBuffer& buffer = problem.buffers[static_cast<size_t>(layer)];
    buffer.offload_seconds = seconds_per_byte * static_cast<double>(buffer.bytes);
  }
  return problem;
}

TEST(RecomputeSearch, WithAFileIsNearTheBestOfAllChoices) {
  constexpr int kLayers = 7;
  constexpr Fate kFates[] = {Fate::stays, Fate::again, Fate::offloaded};
  double found = 0, best_of_all = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const RecomputeProblem problem = make_chain_with_file(kLayers, seed, 0.015);
    RecomputeSimulator simulator(problem);
    const int64_t limit = simulator.run(std::vector<Fate>(problem.buffers.size(), Fate::stays), 0).peak_bytes * 6 / 10;
    double best = -1;
    for (int choice = 0; choice < 2187; ++choice) {
      std::vector<Fate> fates(problem.buffers.size(), Fate::stays);
      for (int layer = 0, rest = choice; layer < kLayers; ++layer, rest /= 3)
        fates[static_cast<size_t>(layer)] = kFates[rest % 3];
      const RecomputeOutcome outcome = simulator.run(fates, limit);
      if (outcome.excess == 0 && (best < 0 || outcome.seconds < best)) best = outcome.seconds;
    }
    const RecomputeChoice choice = choose_recompute(problem, limit);
    EXPECT_EQ(choice.fits(), best >= 0) << seed;
    if (best < 0 || !choice.fits()) continue;
    found += choice.outcome.seconds;
    best_of_all += best;
  }
  EXPECT_GT(best_of_all, 0);
  EXPECT_LE(found, 1.02 * best_of_all);
}

TEST(RecomputeSearch, WhatIsReadBackFreesMemoryInBetweenAndIsReadOnce) {
  RecomputeProblem problem = make_chain_with_file(20, 4, 1e-6);
  for (RecomputeStep& step : problem.steps) step.is_repeatable = false;
  RecomputeSimulator simulator(problem);
  const int64_t peak = simulator.run(std::vector<Fate>(problem.buffers.size(), Fate::stays), 0).peak_bytes;
  const RecomputeChoice choice = choose_recompute(problem, peak * 6 / 10);
  ASSERT_TRUE(choice.fits());
  std::set<int32_t> loaded;
  double seconds = 0;
  for (const RecomputeEvent& event : choice.events) {
    EXPECT_FALSE(event.is_again);
    if (event.loaded < 0) continue;
    EXPECT_TRUE(loaded.insert(event.loaded).second) << event.loaded;
    EXPECT_EQ(choice.fates[static_cast<size_t>(event.loaded)], Fate::offloaded);
    seconds += problem.buffers[static_cast<size_t>(event.loaded)].offload_seconds;
  }
  EXPECT_FALSE(loaded.empty());
  EXPECT_NEAR(choice.outcome.seconds, seconds, 1e-12);
}

TEST(RecomputeSearch, ADiskThatTakesForeverIsLeftAlone) {
  const RecomputeProblem with_file = make_chain_with_file(20, 6, 1e6), without = make_chain(20, 6);
  RecomputeSimulator simulator(without);
  const int64_t peak = simulator.run(std::vector<Fate>(without.buffers.size(), Fate::stays), 0).peak_bytes;
  const RecomputeChoice choice = choose_recompute(with_file, peak * 6 / 10);
  ASSERT_TRUE(choice.fits());
  EXPECT_EQ(std::count(choice.fates.begin(), choice.fates.end(), Fate::offloaded), 0);
}

}  // namespace
}  // namespace weft::passes
