#include "weft/step/step.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/autodiff/autodiff.h"
#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/rewrite.h"
#include "weft/ops/ops.h"
#include "weft/spec/course.h"
#include "weft/step/accumulation.h"
#include "weft/step/compression.h"
#include "weft/step/data_parallel.h"
#include "weft/step/experts.h"
#include "weft/step/global_draws.h"
#include "weft/step/grains.h"
#include "weft/step/local_steps.h"
#include "weft/step/metrics/counted_labels.h"
#include "weft/step/metrics/entries.h"
#include "weft/step/micro_batches.h"
#include "weft/step/optimizers/hidden_weights.h"
#include "weft/step/optimizers/loss_scaling.h"
#include "weft/step/pipeline_step.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/sharded_states.h"
#include "weft/step/synchronised_norm.h"
#include "weft/step/tensor_parallel.h"
#include "weft/step/test_time_views.h"
#include "weft/step/virtual_ranks.h"

namespace weft::step {

namespace {

bool predicts_values(const models::Model& model) { return model.graph.type(model.labels).dtype == DType::f32; }

/// Sequences, texts and masks are right or wrong, which what a model of values gives never is.
void require_answers(const models::Model& model, const std::string& name, const models::ModelInput& input) {
  if (predicts_values(model) && (input.has_ignored || input.text_length > 0))
    fail(ErrorKind::usage,
         "[{}] gives values, and these data are learned by naming {}; choose another model (`weft models` lists them)",
         name, input.text_length > 0 ? "the text in a picture" : "the class of each pixel or token");
}

const TaskEntry& task_of(const Entries& entries, const models::ModelInput& input) {
  if (!input.task.empty()) return task_entry(entries, input.task);
  return task_entry(entries, input.target == DType::f32 ? "regression" : "classification");
}

/// [rows]. By the loss that the spec names or, where it leaves that open, by the model's own, or by the labels.
ValueId row_losses(models::Model& model, const spec::LossSpec& options, const Entries& entries,
                   const models::ModelInput& input, bool mixed, bool training) {
  std::string name = options.name;
  if (name == "auto" && !mixed && model.losses.valid()) return model.losses;
  if (const std::string& own = task_of(entries, input).loss; name == "auto" && !own.empty()) name = own;
  if (name == "auto") name = mixed ? "soft_cross_entropy" : predicts_values(model) ? "mse" : "cross_entropy";
  const LossEntry* entry = find_entry(entries.losses, name);
  if (entry == nullptr)
    fail(ErrorKind::usage, "there is no loss '{}'{}", name, suggestion(name, names_of(entries.losses)));
  return entry->build({model.graph, model.logits, model.labels, options, training});
}

/// Those that the step updates: layers that are frozen keep theirs.
std::vector<std::string> statistics_of(const Graph& graph, const std::vector<models::ParameterSpec>& parameters) {
  std::vector<std::string> names;
  for (const models::ParameterSpec& parameter : parameters)
    if (!parameter.trainable && std::any_of(graph.updates().begin(), graph.updates().end(),
                                            [&](const StateUpdate& update) { return update.state == parameter.name; }))
      names.push_back(parameter.name);
  return names;
}

void add_slots(std::vector<SlotSpec>& slots, const std::vector<SlotSpec>& more) {
  slots.insert(slots.end(), more.begin(), more.end());
}

CompressionCosts compression_costs(const spec::RunSpec& spec, const TrainingStepOptions& options) {
  CompressionCosts costs{options.costs, parse_dtype(spec.precision).value_or(DType::f32),
                         static_cast<int>(std::max<int64_t>(spec.threads, 1)), options.nodes};
  costs.ranks.count = options.ranks;
  costs.ranks.batches = batches_per_exchange(spec);
  return costs;
}

/// The update in a graph of its own, whose gradients are the sums that were collected.
Graph build_update(const Graph& step, const spec::RunSpec& spec, std::vector<TrainedParameter> trained,
                   const std::vector<std::string>& statistics, std::vector<SlotSpec>& slots, const Entries& entries) {
  Graph graph(step.registry(), spec.model.name + " update");
  for (TrainedParameter& parameter : trained) {
    const TensorType& type = step.type(parameter.value);
    parameter.value = graph.add_input(InputKind::parameter, parameter.name, type);
    parameter.gradient = graph.add_input(InputKind::state, slot_name(kGradientSumSlot, parameter.name), type);
  }
  if (spec.ema.decay > 0)
    for (const std::string& name : statistics)
      graph.add_input(InputKind::state, name, step.type(step.find_input(name)->value));
  add_slots(slots, add_update(graph, spec, trained, statistics, "update", entries));
  return graph;
}

/// Of all ranks together.
ValueId mean_over_counted(Graph& graph, ValueId losses, ValueId counted, int ranks) {
  if (ranks == 1) return mean_of_counted(graph, losses, counted, "loss");
  const ValueId own_share = mean_of_counted(graph, losses, counted, "loss.share");
  return ops::multiply_scalar(graph, own_share, ranks, "loss");  // the mean over the ranks divides by their number
}

/// What a graph computes of a rank's part of a batch: all of it, or one of several pieces.
enum class Piece { all, shard, grain };

/// Adds the outputs "loss" and "correct", of all ranks together, but for grains. Returns what a shard or a grain has of
/// them, and the loss that is differentiated.
ShardResults add_results(models::Model& model, const models::ModelInput& input, ValueId losses, bool mixed, Piece piece,
                         int ranks) {
  Graph& graph = model.graph;
  const bool is_sharded = piece != Piece::all;
  const auto over_ranks = [&](ValueId own, const char* reduction) {
    return ranks == 1 ? own : ops::all_reduce(graph, own, reduction, graph.value(own).name + ".of_ranks");
  };
  const auto publish = [&](const char* name, ValueId own, const char* reduction) {
    if (piece != Piece::grain) graph.add_output(name, over_ranks(own, reduction));
  };
  const ValueId counted = input.has_ignored ? over_ranks(count_labels(graph, model.labels), "sum") : ValueId{};
  ValueId loss = input.has_ignored && !is_sharded ? mean_over_counted(graph, losses, counted, ranks)
                                                  : ops::reduce_mean(graph, losses, {}, false, "loss");
  if (ValueId extra = model.extra_loss; extra.valid()) {
    // Losses of grains are scaled by the labels that count in all of them; so this one weighs by those of its own.
    if (piece == Piece::grain && counted.valid())
      extra = ops::multiply_scalar(graph, ops::multiply(graph, extra, counted, "extra.of_counted"),
                                   1 / static_cast<double>(graph.type(losses).elements()), "extra.weighted");
    loss = ops::add(graph, loss, extra, "loss.with_extra");
  }
  ShardResults shard{.loss = loss,
                     .correct = {},
                     .counted = counted,
                     .rows = static_cast<double>(graph.type(losses).elements()),
                     .labels = static_cast<double>(graph.type(model.labels).elements()),
                     .scales_correct = input.source == 0};
  publish("loss", loss, "mean");
  if (mixed) {
    const ValueId labels = ops::argmax(graph, model.labels, 1, false, "labels.largest");
    shard.correct = ops::count_correct(graph, model.logits, labels, "correct");
    publish("correct", shard.correct, "sum");
  } else if (!predicts_values(model)) {
    ValueId correct = count_correct(graph, model, input);
    shard.correct = correct;
    if (input.has_ignored && input.source == 0 && !is_sharded)
      correct = scale_to_all(graph, correct, counted, shard.labels * ranks, "correct.of_all");
    publish("correct", correct, "sum");
  }
  return shard;
}

/// The gradients of the loss with respect to what is trained: parameters that no group freezes.
std::vector<TrainedParameter> add_parameter_gradients(models::Model& model, const spec::RunSpec& spec, ValueId loss,
                                                      GradientOrigins* origins = nullptr) {
  Graph& graph = model.graph;
  std::vector<TrainedParameter> trained;
  std::vector<ValueId> targets;
  for (const models::ParameterSpec& parameter : model.parameters) {
    if (!parameter.trainable) continue;
    targets.push_back(graph.find_input(parameter.name)->value);
    trained.push_back({parameter.name, targets.back(), {}, parameter.decay});
  }
  const std::vector<bool> hidden = find_hidden_weights(graph, targets);
  for (size_t index = 0; index < trained.size(); ++index) trained[index].hidden = hidden[index];
  trained = without_frozen(spec.optimizer, std::move(trained));  // whose gradients are not even computed
  targets.clear();
  for (const TrainedParameter& parameter : trained) targets.push_back(parameter.value);
  const std::vector<ValueId> gradients = add_gradients(graph, scaled_loss(graph, spec, loss), targets, origins);
  for (size_t index = 0; index < trained.size(); ++index) trained[index].gradient = gradients[index];
  return trained;
}

std::vector<ValueId> gradients_of(const std::vector<TrainedParameter>& trained) {
  std::vector<ValueId> gradients;
  for (const TrainedParameter& parameter : trained) gradients.push_back(parameter.gradient);
  return gradients;
}

TrainingStep build_pipeline(const Library& library, const spec::RunSpec& spec, models::Model model, ValueId loss,
                            const TrainingStepOptions& options) {
  GradientOrigins origins;
  std::vector<TrainedParameter> trained = add_parameter_gradients(model, spec, loss, &origins);
  mark_parts(model.graph, trained);
  const std::vector<std::string> statistics = statistics_of(model.graph, model.parameters);
  const int tensor = options.tensor_ranks;
  return build_pipeline_step({std::move(model.graph), std::move(trained), std::move(origins), statistics}, spec,
                             std::move(model.parameters),
                             {.rank = options.rank / (options.ranks * tensor),
                              .others = options.ranks,
                              .data_rank = options.rank / tensor % options.ranks,
                              .tensor_ranks = tensor,
                              .tensor_rank = options.rank % tensor},
                             *options.nodes, library);
}

/// The model of twice as many rows; nullopt for one of a file that reads no other number of them.
std::optional<models::Model> build_doubled(const Library& library, const spec::RunSpec& spec,
                                           models::ModelInput input) {
  input.batch *= 2;
  try {
    return build_model(library, spec.model.name, input, spec.model.options, models::Mode::training);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::shape) throw;
    return std::nullopt;
  }
}

/// Of ranks that keep all states.
TrainingStep build_whole_step(const Library& library, const spec::RunSpec& spec, models::ModelInput input,
                              const TrainingStepOptions& options) {
  input.batch = rows_of_micro_batch(spec, input.batch);
  const bool mixed = spec::mixes(spec.augment) && input.target == DType::i32;
  models::ModelInput batch = input;
  if (mixed) batch.target = DType::f32;
  if (!spec.optimizer.freeze.empty())
    batch.is_frozen = [&](const std::string& name) { return is_frozen(spec.optimizer, name); };
  batch.expert_ranks = std::max(input.expert_ranks, expert_ranks(spec, options.ranks));
  models::Model model = build_model(library, spec.model.name, batch, spec.model.options, models::Mode::training);
  if (const int64_t pieces = pieces_of_update(spec, options.ranks); pieces > 1 && draws(model.graph)) {
    const std::optional<models::Model> doubled = build_doubled(library, spec, batch);
    draw_by_global_index(model, doubled ? &doubled->graph : nullptr, pieces);
  }
  require_experts(model, spec, options.ranks);
  if (!mixed) require_answers(model, spec.model.name, input);
  Graph& graph = model.graph;
  graph.set_name(spec.model.name + " training");
  const ValueId losses = row_losses(model, spec.loss, library, batch, mixed, /*training=*/true);
  const Piece piece = spec.virtual_ranks > 0 ? Piece::shard : spec.balance.grains > 0 ? Piece::grain : Piece::all;
  const bool is_sharded = piece != Piece::all;
  const int ranks =
      is_sharded || trains_apart(spec) ? 1 : options.ranks;  // that a batch is summed over while it is computed
  const ShardResults shard = add_results(model, input, losses, mixed, piece, ranks);
  if (is_pipelined(spec)) return build_pipeline(library, spec, std::move(model), shard.loss, options);
  if (options.ranks > 1) graph.add_output(kOwnLoss, shard.loss);
  if (ranks > 1 || options.tensor_ranks > 1) add_stop(graph, ranks);

  std::vector<TrainedParameter> trained = add_parameter_gradients(model, spec, shard.loss);
  mark_parts(graph, trained);
  if (options.ranks > 1 && !trains_apart(spec)) add_own_gradient(graph, gradients_of(trained));
  CompressionCosts costs = compression_costs(spec, options);
  costs.ranks.count = piece == Piece::grain ? options.ranks : ranks;
  if (spec.compression.method == "auto")
    costs.computing_seconds =
        computing_seconds(graph, costs) * static_cast<double>(std::max<int64_t>(1, costs.ranks.batches));
  std::vector<SlotSpec> slots;
  const auto exchange = [&] {
    add_slots(slots, exchange_all_but_parts(graph, trained, [&](std::vector<TrainedParameter>& others) {
                return exchange_gradients(graph, others, spec.compression, costs);
              }));
  };
  if (ranks > 1 && !spec::accumulates(spec)) exchange();
  for (size_t index = 0; index < trained.size(); ++index) {
    if (options.gradient_outputs) graph.add_output("gradient." + trained[index].name, trained[index].gradient);
  }
  const std::vector<std::string> statistics = statistics_of(graph, model.parameters);
  if (piece == Piece::grain)
    return build_step_of_grains(
        std::move(graph), spec, std::move(model.parameters), std::move(trained), statistics, shard, options.ranks,
        [&](Graph& step, std::vector<TrainedParameter>& gradients) {
          return exchange_gradients(step, gradients, spec.compression, costs);
        },
        library);
  if (piece == Piece::shard)
    return build_sharded_step(std::move(graph), spec, std::move(model.parameters), std::move(trained), statistics,
                              shard, options.ranks, library);
  const auto finished = [&] {
    if (ranks == 1) return std::move(graph);
    return compress_early(spec.batch_norm == "synchronised" ? synchronise_batch_norm(graph, ranks)
                                                            : average_statistics(graph));
  };
  const auto with_averaging = [&](TrainingStep step) {
    if (!trains_apart(spec)) return step;
    AveragingGraphs graphs =
        build_averaging(step.graph, step.update ? &*step.update : nullptr, spec, trained, options.ranks);
    step.averaging = std::move(graphs.states);
    step.weight_averaging = std::move(graphs.weights);
    add_slots(step.slots, graphs.slots);
    return step;
  };
  if (!spec::accumulates(spec)) {
    add_slots(slots, add_update(graph, spec, trained, statistics, "step", library));
    return with_averaging({finished(), std::move(model.parameters), std::move(slots)});
  }
  if (ranks > 1) {
    const bool sums_parts = spec.shard.zero >= kGradientsShared;
    if (sums_parts) exchange();
    add_slots(slots, accumulate_before_exchange(graph, trained));
    if (!sums_parts) exchange();
    add_slots(slots, add_update(graph, spec, trained, statistics, "update", library));
    graph = accumulate_early(graph);
    return {finished(), std::move(model.parameters), std::move(slots)};
  }
  slots = accumulate_gradients(graph, trained);
  Graph update = build_update(graph, spec, trained, statistics, slots, library);
  return with_averaging({finished(), std::move(model.parameters), std::move(slots), std::move(update)});
}

}  // namespace

TrainingStep build_training_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                                 const TrainingStepOptions& options) {
  TrainingStep step = build_whole_step(library, spec, input, options);
  step.mesh =
      Mesh({{kPipelineAxis, spec.mesh.pipeline}, {kDataAxis, options.ranks}, {kTensorAxis, options.tensor_ranks}});
  if (!is_pipelined(spec)) {  // which was split before it was cut
    note_parts(step);
    split_weights(step, spec, options.tensor_ranks);
  }
  share_states(step, spec, options.ranks);
  return step;
}

namespace {

Graph with_layouts_of(const Graph& compiled, Graph graph) {
  for (const GraphInput& input : graph.inputs())
    if (const GraphInput* known = compiled.find_input(input.name); known != nullptr && input.kind != InputKind::scalar)
      graph.set_layout(input.value, compiled.type(known->value).layout);
  for (const StateUpdate& update : graph.updates())
    graph.set_layout(update.value, graph.type(graph.find_input(update.state)->value).layout);
  return graph;
}

}  // namespace

Graph update_graph_for(const TrainingStep& step, const Graph& compiled) {
  return with_layouts_of(compiled, *step.update);
}

Graph averaging_graph_for(const Graph& averaging, const Graph& compiled, const Graph* update) {
  Graph graph = with_layouts_of(compiled, averaging);
  return update != nullptr ? with_layouts_of(*update, std::move(graph)) : graph;
}

MicroBatch build_micro_batch(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input) {
  const bool mixed = spec::mixes(spec.augment) && input.target == DType::i32;
  models::ModelInput batch = input;
  if (mixed) batch.target = DType::f32;
  if (!spec.optimizer.freeze.empty())
    batch.is_frozen = [&](const std::string& name) { return is_frozen(spec.optimizer, name); };
  models::Model model = build_model(library, spec.model.name, batch, spec.model.options, models::Mode::training);
  Graph& graph = model.graph;
  graph.set_name(spec.model.name + " micro-batch");
  const ValueId losses = row_losses(model, spec.loss, library, batch, mixed, /*training=*/true);
  const ShardResults shard = add_results(model, input, losses, mixed, Piece::all, /*ranks=*/1);
  GradientOrigins origins;
  std::vector<TrainedParameter> trained = add_parameter_gradients(model, spec, shard.loss, &origins);
  const std::vector<std::string> statistics = statistics_of(graph, model.parameters);
  return {std::move(graph), std::move(trained), std::move(origins), statistics};
}

Graph build_gradient_probe(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input) {
  MicroBatch batch = build_micro_batch(library, spec, input);
  Graph& graph = batch.graph;
  graph.set_name(spec.model.name + " gradient probe");
  ValueId sum;
  for (const TrainedParameter& parameter : batch.trained) {
    const ValueId square = ops::squared_norm(graph, parameter.gradient);
    sum = sum.valid() ? ops::add(graph, sum, square) : square;
  }
  // Statistics of normalisation stay as they are: only what the sum needs is taken over.
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) rewriter.copy(NodeId{static_cast<int32_t>(index)});
  Graph probe = std::move(rewriter.result());
  probe.add_output("gradient_square", rewriter.map(sum));
  return probe;
}

Graph gradient_probe_for(const Graph& probe, const Graph& compiled) { return with_layouts_of(compiled, probe); }

Graph build_evaluation_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input,
                            const EvaluationStepOptions& options) {
  const std::vector<data::View> views = data::views_of(spec.evaluation.tta);
  models::ModelInput shown = input;
  shown.batch *= static_cast<int64_t>(views.size());
  models::Model model = build_model(library, spec.model.name, shown, spec.model.options, models::Mode::inference);
  require_answers(model, spec.model.name, shown);
  average_views(model, views, input.batch);
  Graph& graph = model.graph;
  graph.set_name(spec.model.name + " evaluation");
  graph.add_output(
      "loss_sum",
      ops::reduce_sum(graph, row_losses(model, spec.loss, library, shown, /*mixed=*/false, /*training=*/false), {},
                      false, "loss_sum"));
  for (const MetricEntry& metric : metrics_of(library, spec.metrics, task_of(library, input).name))
    if (metric.build) metric.build({graph, model, input, spec.metrics});
  if (options.predictions && !predicts_values(model) && !model.correct.valid())
    graph.add_output("predicted", ops::argmax(graph, model.logits, -1, false, "predicted"));
  if (input.has_ignored) graph.add_output("counted", count_labels(graph, model.labels));
  return std::move(model.graph);
}

Graph build_prediction_step(const Library& library, const spec::RunSpec& spec, const models::ModelInput& input) {
  models::Model model = build_model(library, spec.model.name, input, spec.model.options, models::Mode::inference);
  Graph& graph = model.graph;
  graph.set_name(spec.model.name + " prediction");
  const TaskEntry& task = task_of(library, input);
  if (task.answer)
    graph.add_output(task.answer_name, task.answer(graph, model.logits, task.answer_name));
  else if (predicts_values(model))
    graph.add_output("values", model.logits);
  else
    graph.add_output("probabilities", ops::softmax(graph, model.logits, -1, "probabilities"));
  return std::move(model.graph);
}

void bind_batch(Executor& executor, const data::Batch& batch) {
  executor.bind_batch(batch.samples.dtype() == DType::i32 ? "tokens" : "image", batch.samples.data());
  if (executor.has_batch("labels")) executor.bind_batch("labels", batch.targets.data());
}

void bind_batch(Executor& executor, const Graph& graph, const data::Batch& batch, int64_t part) {
  if (part == 0) return bind_batch(executor, batch);
  const auto bind = [&](const std::string& name, const Tensor& rows) {
    const GraphInput* input = graph.find_input(name);
    if (input == nullptr) return;
    executor.bind_batch(name, rows.data_as<std::byte>() + part * graph.type(input->value).bytes());
  };
  bind(batch.samples.dtype() == DType::i32 ? "tokens" : "image", batch.samples);
  bind("labels", batch.targets);
}

bool has_output(const Graph& graph, std::string_view name) {
  return std::any_of(graph.outputs().begin(), graph.outputs().end(),
                     [&](const GraphOutput& output) { return output.name == name; });
}

void require_fit(const Graph& graph, const std::string& model, const data::DatasetInfo& info, int64_t batch) {
  const GraphInput* labels = graph.find_input("labels");
  const bool reads_tokens = graph.find_input("tokens") != nullptr, holds_tokens = info.sample_dtype == DType::i32;
  if (reads_tokens != holds_tokens)
    fail(ErrorKind::usage, "[{}] reads {}, '{}' holds {}; choose another model (`weft models` lists them)", model,
         reads_tokens ? "tokens" : "images or rows", info.name, info.item());
  if (labels == nullptr) return;  // it predicts what it reads
  const TensorType& type = graph.type(labels->value);
  const bool mixed = info.target_kind() == data::TargetKind::sample_class && type.dtype == DType::f32;
  if (mixed && type.shape == Shape{batch, info.classes}) return;
  if (type.dtype != info.target_dtype || type.elements() != batch * info.target_shape.elements())
    fail(ErrorKind::usage,
         "[{}] predicts {} {} for a batch of {}, '{}' has targets {} of {} each; choose another model", model,
         to_string(type.shape), weft::name_of(type.dtype), batch, info.name, to_string(info.target_shape),
         weft::name_of(info.target_dtype));
}

}  // namespace weft::step
