// Who of the ranks of a pipeline computes what of a micro-batch, who reads it, and who holds which state. The same on
// all ranks, which therefore know each other's messages.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/passes/ranks/pipeline_schedule.h"
#include "weft/passes/ranks/pipeline_stages.h"
#include "weft/step/micro_batch.h"

namespace weft::step {

/// A value of one micro-batch that another rank reads.
struct PipelineMessage {
  ValueId value;
  int from = 0, to = 0;                  // ranks of the pipeline
  std::vector<size_t> sent, first_read;  // per micro-batch: in which slots of these ranks
};

struct PipelineLayout {
  int ranks = 1, chunks = 1, micro_batches = 1;
  passes::StagedGraph staged;
  passes::PipelineSchedule schedule;  // also which rank has which stage
  passes::PipelineForecast forecast;
  std::vector<PipelineMessage> messages;
  int64_t message_bytes = 0;  // of a micro-batch, from a stage to the next one on another rank, in the mean
  std::map<std::pair<int32_t, int>, size_t> message_to;  // by value and reader
  std::vector<std::vector<ValueId>> terms;               // per trained parameter: its gradient is the sum of these
  std::vector<std::vector<int>> contributors;            // per trained parameter: the ranks that compute them
  std::map<std::string, std::vector<int>> holders;       // of parameters and of states that the forward part updates

  /// The rank of the pipeline that computes the node; kNobody: whoever reads it.
  static constexpr int kNobody = -1;
  int rank_of(NodeId node) const {
    const int stage = staged.stage[static_cast<size_t>(node.index)];
    return stage == passes::kNoStage ? kNobody : schedule.placement.rank_of(stage);
  }
  int rank_of(const Graph& graph, ValueId value) const {
    const NodeId producer = graph.value(value).producer;
    return producer.valid() ? rank_of(producer) : kNobody;
  }
  /// Those of a slot, in order.
  std::vector<NodeId> nodes_of(int rank, const passes::PipelineSlot& slot) const;
};

/// Error(usage) where the model cannot be cut into so many stages.
PipelineLayout lay_out_pipeline(const MicroBatch& micro, const std::string& schedule, int ranks, int micro_batches,
                                int chunks, const CostModel& costs, int threads);

}  // namespace weft::step
