#include "weft/simulate/transformer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "weft/base/error.h"
#include "weft/simulate/pipeline_order.h"
#include "weft/simulate/transformer_step.h"

namespace weft::simulate {
namespace {

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TransformerShape, HasThePublishedParameters) {
  // GPT-3 175B (Brown et al. 2020), Llama 3 70B (Dubey et al. 2024), BERT-large, the trillion of Narayanan et al. 2021.
  EXPECT_NEAR(parse_shape("layers=96,hidden=12288,heads=96,sequence=2048,vocabulary=50257").parameters() / 175e9, 1,
              0.01);
  EXPECT_NEAR(parse_shape("layers=80,hidden=8192,heads=64,key-heads=8,feed-forward=28672,gated=yes,tied=no,"
                          "sequence=8192,vocabulary=128256")
                      .parameters() /
                  70.6e9,
              1, 0.01);
  EXPECT_NEAR(parse_shape("layers=24,hidden=1024,heads=16,sequence=512,vocabulary=30522").parameters() / 335e6, 1,
              0.02);
  EXPECT_NEAR(parse_shape("layers=128,hidden=25600,heads=160,sequence=2048,vocabulary=51200").parameters() / 1.008e12,
              1, 0.01);
}

TEST(Strategy, NamesTheKeyThatIsWrong) {
  EXPECT_NE(error_of([] { parse_strategy("tensr=8", 8, 8); }).find("there is no key 'tensr'; did you mean 'tensor'?"),
            std::string::npos);
  EXPECT_NE(error_of([] { parse_strategy("data=3,tensor=2", 8, 6); }).find("are 6 ranks, not 8"), std::string::npos);
  EXPECT_NE(error_of([] { parse_strategy("micro-batch=4", 8, 8); }).find("choose a multiple of 32"), std::string::npos);
  EXPECT_NE(error_of([] { parse_strategy("recompute=ful", 8, 8); }).find("did you mean 'full'?"), std::string::npos);
}

TEST(Strategy, RefusesNumbersThatDoNotFit) {
  EXPECT_NE(error_of([] {
              parse_strategy("tensor=4294967297", 8, 8);
            }).find("tensor=4294967297 has to be a whole number from 0 to 1000000000"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              parse_strategy("tensor=65536,pipeline=65536", 8, 8);
            }).find("tensor x pipeline x context are 4294967296, which does not divide 8 ranks"),
            std::string::npos);
}

TEST(TransformerShape, RefusesMoreLayersThanCanBeSimulated) {
  EXPECT_NE(error_of([] { parse_shape("layers=200000"); }).find("layers=200000 are more than the 100000"),
            std::string::npos);
}

TEST(Strategy, TheRanksThatAreLeftShareTheBatch) {
  const Strategy strategy = parse_strategy("tensor=4,pipeline=2,micro-batch=2", 64, 64);
  EXPECT_EQ(strategy.data, 8);
  EXPECT_EQ(strategy.micro_batches(), 4);
}

TEST(PipelineOrder, DoesEachMicroBatchOnce) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward, PipelineSchedule::zero_bubble_1,
        PipelineSchedule::zero_bubble_2, PipelineSchedule::zero_bubble, PipelineSchedule::zero_bubble_v})
    for (const int chunks : {1, 2}) {
      const bool is_v = schedule == PipelineSchedule::zero_bubble_v;
      if (chunks == 1 ? is_v : schedule != PipelineSchedule::one_forward_one_backward && !is_v) continue;
      const auto order = pipeline_order(schedule, 4, 8, chunks, 1, 1, 1);
      for (const auto& steps : order) {
        std::set<std::tuple<int, int, int>> seen;
        for (const passes::PipelineSlot& step : steps)
          EXPECT_TRUE(seen.insert({static_cast<int>(step.work), step.micro_batch, step.chunk}).second);
        EXPECT_EQ(seen.size(), static_cast<size_t>(8 * chunks * (splits_backward(schedule) ? 3 : 2)));
      }
    }
}

class Pipeline : public ::testing::Test {
 protected:
  /// Seconds of a step over the least that the busiest stage could take, minus 1, without messages of the data axis.
  double bubble(const std::string& strategy) {
    const machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
    const TransformerShape shape = parse_shape("layers=32,hidden=4096,heads=32,sequence=1024,vocabulary=1024");
    const Strategy parsed = parse_strategy(strategy, 8, 32);
    const TransformerStep step = simulate_transformer(shape, parsed, cluster);
    return step.seconds / step.busy_seconds - 1;
  }
};

TEST_F(Pipeline, WaitsAsNarayananEtAlSay) {
  // (p - 1) / m, and the same divided by the chunks.
  EXPECT_NEAR(bubble("pipeline=8"), 7.0 / 32, 0.03);
  EXPECT_NEAR(bubble("pipeline=8,schedule=gpipe"), 7.0 / 32, 0.03);
  EXPECT_NEAR(bubble("pipeline=8,chunks=4"), 7.0 / 32 / 4, 0.03);
}

TEST_F(Pipeline, ZeroBubbleSchedulesWaitLess) {
  const double usual = bubble("pipeline=8"), one = bubble("pipeline=8,schedule=zb1"),
               two = bubble("pipeline=8,schedule=zb2");
  EXPECT_LT(one, 0.7 * usual);
  EXPECT_LT(two, 0.5 * one);
}

/// The messages and the parts outside of the layers are little here, so that stages wait as the schedule has it.
TEST_F(Pipeline, SchedulesThatWeftRunsWaitAsTheirForecastSays) {
  for (const std::string name : {"1f1b", "interleaved", "zero_bubble", "zero_bubble_v"}) {
    const int chunks = passes::chunks_of(name, 2);
    const passes::PipelineTimes times{.forward = std::vector<double>(static_cast<size_t>(8 * chunks), 1),
                                      .backward_inputs = std::vector<double>(static_cast<size_t>(8 * chunks), 1),
                                      .backward_weights = std::vector<double>(static_cast<size_t>(8 * chunks), 1)};
    const passes::PipelineForecast forecast =
        passes::simulate(passes::make_pipeline_schedule(name, 8, 32, chunks, times), times);
    EXPECT_NEAR(bubble("pipeline=8,schedule=" + name), forecast.seconds / (3.0 * 32 * chunks) - 1, 0.04) << name;
  }
}

TEST_F(Pipeline, InAVNobodyWaitsForTheFirstStageFromTheLast) {
  EXPECT_LT(bubble("pipeline=8,schedule=zero_bubble_v"), 0.8 * bubble("pipeline=8,schedule=zero_bubble"));
  EXPECT_NE(error_of([] { parse_strategy("pipeline=8,schedule=zero_bubble_v,chunks=3", 8, 8); }).find("two chunks"),
            std::string::npos);
}

TEST(TransformerStep, OfATrillionParametersTakesSeconds) {
  const machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  const TransformerShape shape = parse_shape("layers=128,hidden=25600,heads=160,sequence=2048,vocabulary=51200");
  const auto begin = std::chrono::steady_clock::now();
  const TransformerStep step = simulate_transformer(
      shape, parse_strategy("tensor=8,pipeline=64,micro-batch=1,recompute=full,arithmetic=f16", 3072, 3072), cluster);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 10);
  EXPECT_LT(static_cast<double>(step.tasks.tasks().size()), 1e6);
  EXPECT_GT(step.seconds, 60);
  EXPECT_LT(step.seconds, 180);
}

TEST(TransformerStep, SharedWeightsCostMessagesAndSaveMemory) {
  const machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  const TransformerShape shape = parse_shape("layers=32,hidden=4096,heads=32,sequence=2048,vocabulary=50368");
  const auto of = [&](const std::string& strategy) {
    return simulate_transformer(shape, parse_strategy(strategy, 64, 128), cluster);
  };
  const TransformerStep whole = of("flash=yes"), shared = of("flash=yes,zero=3");
  EXPECT_LT(shared.memory.states, 0.05 * whole.memory.states);
  EXPECT_GT(shared.exchange_seconds, 0);
  // 16 bytes of states per parameter: weights and slots of Adam, gradients as they are exchanged.
  EXPECT_NEAR(whole.memory.states, 18 * 6.65e9, 0.05 * 18 * 6.65e9);
}

TEST(TransformerStep, GradientsOfATiedTableStayOnTheHostOfAllStages) {
  const TransformerShape shape = parse_shape("layers=8,hidden=1024,heads=16,sequence=512,vocabulary=8000");
  machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  const auto seconds = [&] { return simulate_transformer(shape, parse_strategy("pipeline=4", 4, 8), cluster).seconds; };
  const double fast = seconds();
  cluster.between_hosts.bytes_per_second = 1e6;
  EXPECT_EQ(seconds(), fast);
}

TEST(TransformerStep, CountsWhatStagesSendToOtherHosts) {
  const machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  const auto sent = [&](const std::string& tied, const std::string& strategy, int ranks) {
    const TransformerShape shape = parse_shape("layers=8,hidden=1024,heads=16,sequence=512,vocabulary=8000," + tied);
    return simulate_transformer(shape, parse_strategy(strategy, ranks, 4), cluster).pipeline_bytes;
  };
  // Of each of four micro-batches 16 bits per position and hidden unit, one way; of the table its gradients in f32.
  EXPECT_DOUBLE_EQ(sent("tied=no", "tensor=8,pipeline=2", 16), 4.0 * 512 * 1024 * 2);
  EXPECT_DOUBLE_EQ(sent("tied=yes", "tensor=8,pipeline=2", 16), 4.0 * 512 * 1024 * 2 + 8000.0 * 1024 * 4);
  EXPECT_EQ(sent("tied=yes", "tensor=4,pipeline=2", 8), 0);
}

TEST(TransformerStep, AStageWithBothEndsHasBothTablesUnlessTheyAreTied) {
  const machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  const auto of = [&](const std::string& tied, const std::string& strategy) {
    const TransformerShape shape = parse_shape("layers=16,hidden=2048,heads=16,sequence=512,vocabulary=128000," + tied);
    return simulate_transformer(shape, parse_strategy(strategy, 2, 8), cluster);
  };
  const double table = 128000.0 * 2048;
  for (const char* strategy : {"data=2", "pipeline=2,schedule=zero_bubble_v"}) {
    const TransformerStep one = of("tied=yes", strategy), two = of("tied=no", strategy);
    EXPECT_NEAR(two.memory.states - one.memory.states, 18 * table, 1) << strategy;
    EXPECT_GT(two.update_seconds, 1.1 * one.update_seconds) << strategy;
  }
  const TransformerStep one = of("tied=yes", "pipeline=2"), two = of("tied=no", "pipeline=2");
  EXPECT_EQ(two.memory.states, one.memory.states);
  EXPECT_EQ(two.update_seconds, one.update_seconds);
}

TEST(TransformerStep, OfTooManyMicroBatchesIsAnError) {
  const machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  const TransformerShape shape = parse_shape("layers=4,hidden=512,heads=8,sequence=128,vocabulary=1024");
  EXPECT_NE(error_of([&] {
              simulate_transformer(shape, parse_strategy("pipeline=2", 2, 100'000'000), cluster);
            }).find("choose a larger micro-batch in --strategy, or a smaller --batch"),
            std::string::npos);
}

TEST(TransformerStep, RecomputeSavesActivationsAndCostsAThird) {
  const machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  const TransformerShape shape = parse_shape("layers=48,hidden=6144,heads=48,sequence=2048,vocabulary=51200");
  const auto of = [&](const std::string& strategy) {
    return simulate_transformer(shape, parse_strategy("tensor=8,micro-batch=4," + strategy, 8, 4), cluster);
  };
  const TransformerStep none = of("recompute=none"), full = of("recompute=full");
  EXPECT_LT(full.memory.activations, 0.15 * none.memory.activations);
  EXPECT_NEAR(full.seconds / none.seconds, 1.33, 0.05);
}

TEST(TransformerStep, StagesBeyondTheLayersAreAnError) {
  const machines::ClusterFile cluster = machines::read_cluster("dgx_a100_80gb");
  const TransformerShape shape = parse_shape("layers=4,hidden=512,heads=8,sequence=128,vocabulary=1024");
  EXPECT_NE(error_of([&] {
              simulate_transformer(shape, parse_strategy("pipeline=8", 8, 8), cluster);
            }).find("8 stages of 1 chunks are more than the 4 layers"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::simulate
