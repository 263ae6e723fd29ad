// The step of a rank of a pipeline: one graph for all its micro-batches and for the update of its weights. The model is
// cut into stages, each of which is on one rank, or on as many as divide the batch and share its layers. A weight that
// two stages read is on both; its gradients are summed between them, so that both update it alike.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/device/cost_model.h"
#include "weft/models/model.h"
#include "weft/spec/run_spec.h"
#include "weft/step/pipeline_layout.h"
#include "weft/step/rank_graph.h"
#include "weft/step/step.h"

namespace weft::step {

/// Builds the step of the rank in this place. Outputs: those of the micro-batch, means of "loss" and sums of others
/// over all micro-batches, on every rank; with several ranks kStop. Error(usage) where the model cannot be cut so.
TrainingStep build_pipeline_step(MicroBatch micro, const spec::RunSpec& spec,
                                 std::vector<models::ParameterSpec> parameters, const PipelinePlace& place,
                                 const CostModel& costs, const Entries& entries);

}  // namespace weft::step
