// Schedules of a pipeline as plain data: what each rank does, one piece of work after the other. The model is cut into
// ranks * chunks stages; stage s lies on rank s % ranks, as its chunk s / ranks, unless the stages lie in a V. Each
// micro-batch goes forward through all stages, and backward through them in reverse. Both the step (step/rank_graph.h)
// and the forecast below read the data.
//   gpipe: all forward, then all backward (Huang et al. 2019, "GPipe")
//   1f1b: a rank begins with as many micro-batches forward as there are ranks behind it, itself included, then goes one
//     backward, one forward (Narayanan et al. 2019, "PipeDream"; 2021, "Efficient large-scale language model training")
//   interleaved: the same with several chunks per rank (Narayanan et al. 2021, section 2.2)
//   zero_bubble: ZB-H1 (Qi et al. 2024, "Zero bubble pipeline parallelism", section 3): the gradients of weights, which
//     nobody waits for, fill the time in which a rank would wait. As many micro-batches wait as with 1f1b.
//   zero_bubble_v: ZB-V (Qi et al. 2024, "Pipeline parallelism with controllable memory"): each rank has two stages, in
//     a V, so that the last stage lies on the first rank, and gradients come back to it at once. Every rank keeps as
//     much as the first one does with 1f1b, and where all work takes equal times none waits but at the beginning and
//     the end. Orders of up to 2,000 pieces of work are made by predicted times: work is placed where it can begin
//     first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::passes {

enum class PipelineWork : uint8_t {
  forward,
  backward,          // all of it
  backward_inputs,   // the gradients of what came from the stage before: that stage waits for them
  backward_weights,  // the other gradients
};

struct PipelineSlot {
  PipelineWork work;
  int micro_batch = 0, chunk = 0;
  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
};
/// Per rank, in order.
using PipelineOrder = std::vector<std::vector<PipelineSlot>>;

/// Which stage is which chunk of which rank.
struct StagePlacement {
  int ranks = 1, chunks = 1;
  bool is_v = false;  // of two chunks: from the first rank to the last one and back

  int stages() const { return ranks * chunks; }
  int stage_of(int rank, int chunk) const { return is_v && chunk == 1 ? 2 * ranks - 1 - rank : chunk * ranks + rank; }
  int chunk_of(int stage) const { return stage / ranks; }
  int rank_of(int stage) const { return is_v && stage >= ranks ? 2 * ranks - 1 - stage : stage % ranks; }
  friend bool operator==(const StagePlacement&, const StagePlacement&) = default;
};

struct PipelineSchedule {
  PipelineOrder order;
  StagePlacement placement;
};

/// The names of all schedules.
const std::vector<std::string>& pipeline_schedules();
/// Of each rank by that schedule; `wanted`: of a schedule that takes any number.
int chunks_of(std::string_view name, int wanted);

/// Error(usage) for an unknown name, or chunks that the schedule does not have.
StagePlacement place_stages(std::string_view name, int ranks, int chunks);

/// Seconds, per stage; `link`: of what a stage sends the next one on another rank, which messages from the one rank to
/// the other take one after the other.
struct PipelineTimes {
  std::vector<double> forward, backward_inputs, backward_weights;
  double link = 0;
};
/// Every stage alike: `backward` is divided into equal halves.
PipelineTimes equal_times(int stages, double forward, double backward, double link = 0);

/// Whether the order depends on the times: that of zero_bubble_v, where it is not long.
bool is_made_by_times(std::string_view name, int ranks, int micro_batches);

/// All three at least 1. Errors of place_stages().
PipelineSchedule make_pipeline_schedule(std::string_view name, int ranks, int micro_batches, int chunks,
                                        const PipelineTimes& times);
/// With equal times.
PipelineSchedule make_pipeline_schedule(std::string_view name, int ranks, int micro_batches, int chunks);
/// And the least chunks that it has.
PipelineSchedule make_pipeline_schedule(std::string_view name, int ranks, int micro_batches);

/// What the schedule makes of these times, where nothing else is waited for.
struct PipelineForecast {
  double seconds = 0;             // from the first forward to the last backward
  std::vector<double> idle;       // per rank: seconds without work
  std::vector<int> most_waiting;  // per rank: the most micro-batches of a chunk, summed over its chunks, that
                                  // are forward and not all backward
  std::vector<std::vector<double>> begins, ends;  // per rank and slot
  /// Idle seconds of all ranks over their seconds in all.
  double bubble() const;
};

/// Error(usage) where a rank would wait for ever, or a piece of work is missing or there twice.
PipelineForecast simulate(const PipelineSchedule& schedule, const PipelineTimes& times);

}  // namespace weft::passes
