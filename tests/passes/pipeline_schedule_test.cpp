// Schedules of pipelines are data: what is checked here needs neither ranks nor a model.
#include "weft/passes/ranks/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/error_of.h"
#include "weft/base/error.h"
#include "weft/base/rng.h"

namespace weft::passes {
namespace {

/// Calls body(schedule, ranks, micro-batches, chunks) for all small ones.
template <typename Body>
void for_each_small(const std::string& name, Body&& body) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int micro_batches = 1; micro_batches <= 16; ++micro_batches)
      for (int chunks = chunks_of(name, 1); chunks <= chunks_of(name, 4); ++chunks) {
        SCOPED_TRACE(fmt::format("{}: {} ranks, {} micro-batches, {} chunks", name, ranks, micro_batches, chunks));
        body(make_pipeline_schedule(name, ranks, micro_batches, chunks), ranks, micro_batches, chunks);
      }
}

class Schedules : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Schedules, testing::ValuesIn(pipeline_schedules()),
                         [](const auto& info) { return info.param == "1f1b" ? "one_f_one_b" : info.param; });

TEST_P(Schedules, NoRankWaitsForEverAndAllWorkIsDoneOnce) {
  for_each_small(GetParam(), [](const PipelineSchedule& schedule, int ranks, int micro_batches, int chunks) {
    // simulate() throws where a rank waits for ever, or work is missing or there twice.
    const PipelineForecast forecast = simulate(schedule, equal_times(ranks * chunks, 1, 2, 0.1));
    EXPECT_GE(forecast.seconds, 3.0 * micro_batches * chunks);
  });
}

TEST_P(Schedules, MicroBatchesGoForwardInOrderThroughEachStage) {
  for_each_small(GetParam(), [](const PipelineSchedule& schedule, int, int, int chunks) {
    for (const auto& slots : schedule.order)
      for (int chunk = 0; chunk < chunks; ++chunk) {
        int last = -1;
        for (const PipelineSlot& slot : slots) {
          if (slot.work != PipelineWork::forward || slot.chunk != chunk) continue;
          EXPECT_EQ(slot.micro_batch, last + 1);
          last = slot.micro_batch;
        }
      }
  });
}

TEST_P(Schedules, OneRankAloneNeverWaits) {
  const int chunks = chunks_of(GetParam(), 2);
  const PipelineForecast forecast =
      simulate(make_pipeline_schedule(GetParam(), 1, 5, chunks), equal_times(chunks, 1, 2));
  EXPECT_DOUBLE_EQ(forecast.bubble(), 0);
}

/// Idle seconds of each rank, where each stage takes 1 forward and 2 backward.
double idle_of(const std::string& name, int ranks, int micro_batches, int chunks = 1) {
  const PipelineForecast forecast = simulate(make_pipeline_schedule(name, ranks, micro_batches, chunks),
                                             equal_times(ranks * chunks, 1.0 / chunks, 2.0 / chunks));
  for (const double idle : forecast.idle) EXPECT_NEAR(idle, forecast.idle[0], 1e-9) << name;
  return forecast.idle[0];
}

// (p - 1) (tf + tb): Narayanan et al. 2021, section 2.2.1.
TEST(PipelineSchedule, GpipeAndOneForwardOneBackwardWaitForOnePassThroughTheOtherStages) {
  for (const int ranks : {2, 3, 4, 8})
    for (const int micro_batches : {ranks, 2 * ranks, 4 * ranks})
      for (const char* name : {"gpipe", "1f1b"})
        EXPECT_NEAR(idle_of(name, ranks, micro_batches), 3 * (ranks - 1), 1e-9);
}

// (p - 1) (tf + tb) / v: Narayanan et al. 2021, section 2.2.2.
TEST(PipelineSchedule, ChunksDivideTheWait) {
  for (const int ranks : {2, 4, 8})
    for (const int chunks : {2, 4})
      for (const int micro_batches : {ranks, 2 * ranks, 4 * ranks})
        EXPECT_NEAR(idle_of("interleaved", ranks, micro_batches, chunks), 3.0 * (ranks - 1) / chunks, 1e-9)
            << ranks << " " << chunks << " " << micro_batches;
}

// (p - 1) (TF + TB - TW): Qi et al. 2024, table 1, ZB-H1.
TEST(PipelineSchedule, GradientsOfWeightsFillTheWait) {
  for (const int ranks : {2, 4, 8})
    for (const int micro_batches : {2 * ranks, 4 * ranks}) {
      const PipelineForecast forecast =
          simulate(make_pipeline_schedule("zero_bubble", ranks, micro_batches), equal_times(ranks, 1, 2));
      EXPECT_NEAR(forecast.seconds - 3.0 * micro_batches, ranks - 1, 1e-9) << ranks << " " << micro_batches;
    }
}

// Qi et al. 2024, "Pipeline parallelism with controllable memory", table 1: with equal times nothing waits but for the
// first forward to pass the ranks, once there are twice as many micro-batches as ranks.
TEST(PipelineSchedule, AVWaitsForOnePassOfHalfStages) {
  for (const int ranks : {2, 3, 4, 8})
    for (const int micro_batches : {2 * ranks, 4 * ranks}) {
      const PipelineSchedule schedule = make_pipeline_schedule("zero_bubble_v", ranks, micro_batches);
      const PipelineForecast forecast = simulate(schedule, equal_times(2 * ranks, 1, 2));
      EXPECT_EQ(forecast.seconds, 6 * micro_batches + ranks - 1) << ranks << " " << micro_batches;
      for (const int kept : forecast.most_waiting) EXPECT_LE(kept, 2 * ranks) << "as the first rank of 1f1b";
    }
}

TEST(PipelineSchedule, AVFollowsTheTimesOfItsStages) {
  PipelineTimes times = equal_times(4, 1, 2, 0.05);
  times.backward_inputs.assign(4, 1.2);
  times.backward_weights.assign(4, 0.8);
  const auto bubble = [&](const PipelineSchedule& schedule) { return simulate(schedule, times).bubble(); };
  const double by_times = bubble(make_pipeline_schedule("zero_bubble_v", 2, 4, 2, times));
  EXPECT_LT(by_times, bubble(make_pipeline_schedule("zero_bubble_v", 2, 4)) - 0.03);
  EXPECT_LT(by_times, 0.11);
}

// Whatever the stages take, no rank waits for ever.
TEST(PipelineSchedule, AVOfUnequalStagesEnds) {
  RandomStream random(3);
  for (int draw = 0; draw < 200; ++draw) {
    const int ranks = 1 + static_cast<int>(random.below(8)), micro_batches = 1 + static_cast<int>(random.below(12));
    PipelineTimes times = equal_times(2 * ranks, 1, 2, random.uniform());
    for (std::vector<double>* of : {&times.forward, &times.backward_inputs, &times.backward_weights})
      for (double& seconds : *of) seconds = 0.1 + 2 * random.uniform();
    const PipelineSchedule schedule = make_pipeline_schedule("zero_bubble_v", ranks, micro_batches, 2, times);
    for (const int kept : simulate(schedule, times).most_waiting) EXPECT_LE(kept, 2 * ranks);
  }
}

TEST(PipelineSchedule, AVBeginsAndEndsOnTheFirstRank) {
  const StagePlacement placement = make_pipeline_schedule("zero_bubble_v", 3, 4).placement;
  const std::vector<int> ranks = {0, 1, 2, 2, 1, 0};
  for (int stage = 0; stage < 6; ++stage) {
    EXPECT_EQ(placement.rank_of(stage), ranks[static_cast<size_t>(stage)]);
    EXPECT_EQ(placement.stage_of(placement.rank_of(stage), stage / 3), stage);
  }
  // A message from a rank to itself takes no time.
  const PipelineSchedule one = make_pipeline_schedule("zero_bubble_v", 1, 1);
  EXPECT_DOUBLE_EQ(simulate(one, equal_times(2, 1, 2, 100)).seconds, 6);
}

// Of gpipe all wait; of the others as many as ranks are behind.
TEST(PipelineSchedule, AsManyMicroBatchesWaitAsThePapersSay) {
  constexpr int kRanks = 4, kMicroBatches = 12;
  const auto waiting = [](const char* name) {
    return simulate(make_pipeline_schedule(name, kRanks, kMicroBatches), equal_times(kRanks, 1, 2)).most_waiting;
  };
  EXPECT_EQ(waiting("gpipe"), std::vector<int>(kRanks, kMicroBatches));
  EXPECT_EQ(waiting("1f1b"), (std::vector<int>{4, 3, 2, 1}));
  for (const int count : waiting("zero_bubble")) EXPECT_LE(count, kRanks);
}

TEST(PipelineSchedule, InterleavedKeepsAsManyAsThePaperSays) {
  constexpr int kRanks = 4, kChunks = 2;
  const PipelineForecast forecast =
      simulate(make_pipeline_schedule("interleaved", kRanks, 16, kChunks), equal_times(kRanks * kChunks, 1, 2));
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_LE(forecast.most_waiting[static_cast<size_t>(rank)], (kRanks - rank - 1) * 2 + (kChunks - 1) * kRanks + 1);
}

TEST(PipelineSchedule, MicroBatchesThatTheRanksDoNotDivideStillGainByChunks) {
  const PipelineForecast chunks = simulate(make_pipeline_schedule("interleaved", 4, 10, 2), equal_times(8, 0.5, 1));
  const PipelineForecast whole = simulate(make_pipeline_schedule("1f1b", 4, 10), equal_times(4, 1, 2));
  EXPECT_LT(chunks.seconds, whole.seconds);
}

TEST(PipelineSchedule, ALinkTakesItsTimeOnEachWay) {
  const PipelineSchedule schedule = make_pipeline_schedule("1f1b", 2, 1);
  EXPECT_DOUBLE_EQ(simulate(schedule, equal_times(2, 1, 2, 0.25)).seconds, 2 * 1 + 2 * 2 + 2 * 0.25);
}

// Activations arrive at 11, 21, 31 and 41, gradients leave at 44, 46, 48 and 50, and arrive at 54, 64, 74 and 84.
TEST(PipelineSchedule, MessagesOverASlowLinkWaitForEachOther) {
  const PipelineSchedule schedule = make_pipeline_schedule("gpipe", 2, 4);
  EXPECT_DOUBLE_EQ(simulate(schedule, equal_times(2, 1, 2, 10)).seconds, 84 + 2);
}

TEST(PipelineSchedule, AnOrderThatWaitsForItselfIsFound) {
  PipelineSchedule schedule = make_pipeline_schedule("1f1b", 2, 2);
  std::swap(schedule.order[1][0], schedule.order[1][1]);  // backward before forward
  EXPECT_EQ(test::error_of([&] { simulate(schedule, equal_times(2, 1, 2)); }),
            "rank 0 of the pipeline waits for ever to do backward of micro-batch 0");
}

TEST(PipelineSchedule, WorkThatIsMissingOrThereTwiceIsFound) {
  PipelineSchedule schedule = make_pipeline_schedule("gpipe", 2, 2);
  schedule.order[0].pop_back();
  EXPECT_EQ(test::error_of([&] { simulate(schedule, equal_times(2, 1, 2)); }),
            "the schedule of the pipeline leaves out some of its work");
  schedule = make_pipeline_schedule("gpipe", 2, 2);
  schedule.order[1].push_back(schedule.order[1].front());
  EXPECT_EQ(test::error_of([&] { simulate(schedule, equal_times(2, 1, 2)); }),
            "rank 1 of the pipeline does forward of micro-batch 0 twice");
}

TEST(PipelineSchedule, NamesAndChunksThatThereAreNotAreRefused) {
  EXPECT_EQ(test::error_of([] { make_pipeline_schedule("1f2b", 2, 2); }),
            "there is no schedule '1f2b' of a pipeline; did you mean '1f1b'?");
  EXPECT_EQ(test::error_of([] { make_pipeline_schedule("gpipe", 2, 2, 2); }),
            "the schedule 'gpipe' has one chunk per rank, not 2; choose 'interleaved'");
  EXPECT_EQ(test::error_of([] { make_pipeline_schedule("zero_bubble_v", 2, 2, 1); }),
            "the schedule 'zero_bubble_v' has two chunks per rank, not 1; choose 'interleaved'");
}

}  // namespace
}  // namespace weft::passes
