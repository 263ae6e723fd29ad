// Cuts the graph of a micro-batch into the stages of a pipeline: which stage computes each node, and whether that is
// part of its forward or of its backward work.
//
// The forward nodes are cut in their order, so that values go from a stage to later ones only, and each node of the
// backward part is where the node is of whose gradient rule it is. What depends on no state, such as masks made of the
// batch, belongs to no stage: whoever reads it computes it. What depends on states alone, such as a transposed weight,
// is where it is first read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/device/cost_model.h"
#include "weft/graph/gradient_origins.h"
#include "weft/graph/graph.h"
#include "weft/passes/ranks/pipeline_schedule.h"

namespace weft::passes {

/// Cuts a row of pieces into so many parts that follow each other: the largest part is as small as can be, or larger by
/// a twentieth where fewer bytes then cross the cuts. `crossing[i]`: bytes that cross a cut before piece i. `worth`, if
/// not empty: where such cuts can be so, the pieces of each part are worth at least 1 together. Returns where each part
/// begins; Error(usage) where there are fewer pieces than parts.
std::vector<size_t> cut_by_cost(const std::vector<double>& seconds, const std::vector<int64_t>& crossing, int parts,
                                const std::vector<double>& worth = {});

inline constexpr int kNoStage = -1;

struct StagedGraph {
  int stages = 1;
  std::vector<int> stage;          // per node; kNoStage: whoever reads it computes it
  std::vector<PipelineWork> work;  // per node: never `backward`
  std::vector<bool> is_alive;      // per node: something comes of it
  PipelineTimes times;             // predicted, of one micro-batch
  std::vector<bool> has_work;      // per stage: it multiplies with weights, or takes a good part of an equal share
};

/// `wanted`: values that are read, beside outputs and updates, such as gradients. Error(usage) where there are fewer
/// operations than stages.
StagedGraph cut_into_stages(const Graph& graph, const GradientOrigins& origins, const std::vector<ValueId>& wanted,
                            int stages, const CostModel& costs, int threads);

/// None of whose stages has work (StagedGraph::has_work).
std::vector<int> idle_ranks(const std::vector<bool>& has_work, const StagePlacement& placement);
/// "rank 2 of the pipeline would have next to nothing to compute", of many "600 ranks of ..."; empty where there are
/// none.
std::string describe_idle(const std::vector<int>& ranks);

}  // namespace weft::passes
