// The graphs of one step: training (forward, backward, update), evaluation and prediction. They keep pointers into
// the library that made them.
#pragma once

#include <map>
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
#include "weft/step/micro_batch.h"
#include "weft/step/optimizers/optimizer.h"
#include "weft/step/pipeline_outlook.h"
#include "weft/step/states/state_sharding.h"

namespace weft::step {

struct TrainingStep {
  Graph graph;  // forward, backward, update; where one process accumulates batches, forward, backward and the sum
  std::vector<models::ParameterSpec> parameters;  // of the model, running statistics included
  std::vector<SlotSpec> slots;                    // of the optimiser
  std::optional<Graph> update = {};               // of batches that are summed first: from the sum of the gradients on
  std::optional<Graph> averaging = {};            // of ranks that train apart: the mean of their states (local_steps.h)
  std::optional<Graph> weight_averaging = {};  // likewise: of their weights alone, where not each mean is of all states
  // Of states that the ranks share (sharded_states.h, tensor_parallel.h), or that not all of them hold
  // (pipeline_step.h).
  Shardings shardings = {};
  Mesh mesh = Mesh({});                          // of the ranks
  int rank = 0;                                  // of this step, where the ranks of a pipeline have different ones
  std::optional<PipelineOutlook> pipeline = {};  // of a step of a pipeline
};

struct TrainingStepOptions {
  bool gradient_outputs = false;  // also outputs "gradient.NAME" (of the scaled loss, where the spec scales it), for
                                  // comparison with other programs
  int ranks = 1;                  // that train together, each on a part of every batch: those along the axis data
  int tensor_ranks = 1;           // that share the layers, in place of each of them
  int rank = 0;                   // of all ranks of a pipeline this one (rank_mesh.h)
  passes::Ranks costs = {};       // of their links, by which compression is chosen
  std::shared_ptr<const CostModel> nodes = rated_costs();  // likewise: how long nodes take
};

/// Batch inputs are those of the model. The loss is cross-entropy where labels are classes or tokens, and the mean
/// squared error where they are real values (f32). Scalar inputs: "learning_rate"; "step" and "seed" (i64) where
/// something counts; and those of add_update(), whose counter is "step" too.
/// Where steps take N batches (accumulates() of the spec), "step" counts batches and the update's counter is "update".
/// "accumulated" is 0 in the first batch, which begins a new sum, and 1 in the others; "share" is 1/N. With several
/// ranks all is one graph, which exchanges and updates where kSumComplete (accumulation.h) is 1, in the last of the N.
/// Where the spec scales the loss, gradients are those of the scaled loss until the update divides them, and counters
/// leave out the steps that it skips.
/// Outputs: "loss" (mean over the labels of the batch that count) and, where there are classes, "correct": the rows
/// whose largest logit is the label (scaled to all rows), or the sequences that are right as a whole. With several
/// ranks, the batch is this rank's part; the outputs and the new state are those of all parts, and kStop, kOwnLoss and
/// kOwnGradient (data_parallel.h) are added. With shard.zero the ranks share states (sharded_states.h). With
/// mesh.pipeline it is the step of one rank of a pipeline, for all its micro-batches (pipeline_step.h); in place of
/// "step" it counts them with "step/0", "step/1", .... With balance.grains the batch is one grain of several
/// (grains.h).
TrainingStep build_training_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                                 const TrainingStepOptions& options = {});

/// The forward and the backward part of one rank's batch, without any update, and where its nodes come from.
MicroBatch build_micro_batch(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input);
/// The same with the output "gradient_square" alone, the square of the norm of all gradients together. For the gradient
/// noise.
Graph build_gradient_probe(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input);
/// The same with the layouts that parameters have in the compiled graph of a batch.
Graph gradient_probe_for(const Graph& probe, const Graph& compiled);

struct EvaluationStepOptions {
  bool predictions = false;  // where there are classes, also outputs "predicted" i32: the likeliest of each label's
};

/// Inference. Outputs "loss_sum" (over the rows, without label smoothing) and those of the measured metrics
/// (step/metrics). Where labels may be ignored, also "counted", the number of labels that count. With
/// spec.evaluation.tta the batch inputs hold the views of input.batch samples (test_time_views.h), and all outputs
/// refer to their mean logits.
Graph build_evaluation_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                            const EvaluationStepOptions& options = {});

/// Inference. Output "probabilities" [rows,classes], or, for real values, "values" [N,K], or what the task declares
/// (TaskEntry::answer).
Graph build_prediction_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input);

/// Binds the next samples and targets to the inputs of the step.
void bind_batch(Executor& executor, const data::Batch& batch);
/// The same for a graph that takes a part of the rows: binds the `part`th such part.
void bind_batch(Executor& executor, const Graph& graph, const data::Batch& batch, int64_t part);

bool has_output(const Graph& graph, std::string_view name);

/// Error(usage) where the model reads or predicts something else than the data hold: images, rows, tokens.
void require_fit(const Graph& graph, const std::string& model, const data::DatasetInfo& info, int64_t batch);

/// The update of an accumulated step, with the layouts that parameters and sums have in the compiled graph of a batch,
/// so that both run on one State without conversions.
Graph update_graph_for(const TrainingStep& step, const Graph& compiled);

/// The same for a mean of ranks that train apart; `update` is null where it is no graph of its own.
Graph averaging_graph_for(const Graph& averaging, const Graph& compiled, const Graph* update);

/// The state of a rank before the first step: parameters drawn from (seed, name), optimiser slots as start_slots() sets
/// them. Of what ranks share it has its part of what one process would have.
State initial_state(const TrainingStep& step, uint64_t seed, int rank = 0);
/// Sets the optimiser's slots to their start values, zero or copies of the parameters in the state; for parameters
/// loaded from elsewhere.
void start_slots(const TrainingStep& step, State& state, int rank = 0);

/// Bytes of that state on a rank, known without making it.
int64_t state_bytes(const TrainingStep& step);

/// Trainable numbers.
int64_t parameter_count(const std::vector<models::ParameterSpec>& parameters);

}  // namespace weft::step
