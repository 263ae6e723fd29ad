// The graphs of one step: training (forward, backward, update), evaluation and prediction.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/models/model.h"
#include "weft/runtime/state.h"
#include "weft/train/optimizers/optimizer.h"
#include "weft/train/run_spec.h"

namespace weft::train {

struct TrainingStep {
  Graph graph;
  std::vector<models::ParameterSpec> parameters;  // of the model, running statistics included
  std::vector<SlotSpec> slots;                    // of the optimiser
};

struct TrainingStepOptions {
  bool gradient_outputs = false;  // also outputs "gradient.NAME", for comparison with other programs
};

/// Batch inputs as the model has them; scalars "learning_rate" and, where something counts, "step" and "seed" (i64);
/// outputs "loss" (mean over the batch) and "correct" (rows whose largest logit is the label).
TrainingStep build_training_step(const OpRegistry& registry, const RunSpec& spec, const models::ModelInput& input,
                                 const TrainingStepOptions& options = {});

/// Inference; outputs "loss_sum" (without label smoothing) and "correct".
Graph build_evaluation_step(const OpRegistry& registry, const RunSpec& spec, const models::ModelInput& input);

/// Inference; output "probabilities" [N,classes].
Graph build_prediction_step(const OpRegistry& registry, const RunSpec& spec, const models::ModelInput& input);

/// The state before the first step: parameters drawn from (seed, name), optimiser slots zero.
State initial_state(const TrainingStep& step, uint64_t seed);

/// Bytes of that state, known without making it.
int64_t state_bytes(const TrainingStep& step);

/// Trainable numbers.
int64_t parameter_count(const std::vector<models::ParameterSpec>& parameters);

}  // namespace weft::train
