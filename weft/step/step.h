// The graphs of one step: training (forward, backward, update), evaluation and prediction. They point into the library
// that they are made with.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/load/loader.h"
#include "weft/device/state.h"
#include "weft/graph/graph.h"
#include "weft/library/library.h"
#include "weft/models/model.h"
#include "weft/passes/pipeline.h"
#include "weft/runtime/executor.h"
#include "weft/spec/run_spec.h"
#include "weft/step/optimizers/optimizer.h"

namespace weft::step {

struct TrainingStep {
  Graph graph;  // forward, backward, update; where one process accumulates batches, forward, backward and the sum
  std::vector<models::ParameterSpec> parameters;  // of the model, running statistics included
  std::vector<SlotSpec> slots;                    // of the optimiser
  std::optional<Graph> update = {};               // of batches that are summed first: from the sum of the gradients on
  std::optional<Graph> averaging = {};            // of ranks that train apart: the mean of their states (local_steps.h)
};

struct TrainingStepOptions {
  bool gradient_outputs = false;  // also outputs "gradient.NAME" (of the scaled loss, where the spec scales it), for
                                  // comparison with other programs
  int ranks = 1;                  // that train together, each on a part of every batch
  passes::Ranks costs = {};       // of their links, by which compression is chosen
  std::shared_ptr<const CostModel> nodes = rated_costs();  // likewise: how long nodes take
};

/// Batch inputs as the model has them. The loss is cross-entropy where the labels are classes or tokens, the mean
/// squared error where they are real values (f32). Scalars "learning_rate" and, where something counts, "step" and
/// "seed" (i64), with those of add_update(), whose counter is "step" too. Where steps take N batches (accumulates() of
/// the spec) "step" counts batches, the update's counter is "update", "accumulated" is 0 in the first of them, which
/// begins a new sum, and 1 in the others, and "share" is 1/N; on one of several ranks all is one graph, whose runs
/// exchange and update where kSumComplete (accumulation.h) is 1, as in the last of the N. Where the spec scales the
/// loss the gradients are those of the scaled one until the update divides them, and counters leave out the steps that
/// it skips. Outputs "loss" (mean over the labels of the batch that count) and, where there are classes, "correct":
/// rows whose largest logit is the label (as many as there would be if all rows counted), or sequences that are right
/// as a whole. On one of several ranks the batch is its part, and the outputs and what the step makes of the state are
/// those of all parts together; kStop, kOwnLoss and kOwnGradient (data_parallel.h) come with it.
TrainingStep build_training_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                                 const TrainingStepOptions& options = {});

struct EvaluationStepOptions {
  bool predictions = false;  // where there are classes, also outputs "predicted" i32: the likeliest of each label's
};

/// Inference; outputs "loss_sum" (over the rows, without label smoothing) and those of the metrics that are measured
/// (step/metrics). Where labels may be ignored, also "counted", how many were not. With spec.evaluation.tta the batch
/// inputs hold the views of input.batch samples (test_time_views.h), whose mean logits all of this is about.
Graph build_evaluation_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                            const EvaluationStepOptions& options = {});

/// Inference; output "probabilities" [rows,classes], or, for real values, "values" [N,K], or what the task says
/// (TaskEntry::answer).
Graph build_prediction_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input);

/// Gives the step the next samples and targets, under the names that the model has for them.
void bind_batch(Executor& executor, const data::Batch& batch);
/// The same of a step whose graph takes a part of the rows: those of the `part`th such part.
void bind_batch(Executor& executor, const Graph& graph, const data::Batch& batch, int64_t part);

bool has_output(const Graph& graph, std::string_view name);

/// Error(usage) where the model reads or predicts something else than the data hold: images, rows, tokens.
void require_fit(const Graph& graph, const std::string& model, const data::DatasetInfo& info, int64_t batch);

/// The update of an accumulated step in the layouts that its parameters and sums have in the compiled graph of a batch,
/// so that both run on one State without conversions.
Graph update_graph_for(const TrainingStep& step, const Graph& compiled);

/// The same for the mean of the states of ranks that train apart; `update` is null where it is no graph of its own.
Graph averaging_graph_for(const TrainingStep& step, const Graph& compiled, const Graph* update);

/// The state before the first step: parameters drawn from (seed, name), optimiser slots as start_slots() sets them.
State initial_state(const TrainingStep& step, uint64_t seed);
/// Sets the optimiser's slots to zero or to copies of the parameters in the state, as each begins: for parameters that
/// came from elsewhere.
void start_slots(const TrainingStep& step, State& state);

/// Bytes of that state, known without making it.
int64_t state_bytes(const TrainingStep& step);

/// Trainable numbers.
int64_t parameter_count(const std::vector<models::ParameterSpec>& parameters);

}  // namespace weft::step
