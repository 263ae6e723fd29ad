#include "weft/program/prepared_run.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/memory.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/passes/precision/lower_precision.h"
#include "weft/program/arena_limit.h"
#include "weft/program/image_sizes.h"
#include "weft/program/process_memory.h"
#include "weft/spec/compile_options.h"
#include "weft/step/local_steps.h"
#include "weft/step/metrics/entries.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/sharded_states.h"
#include "weft/step/test_time_views.h"
#include "weft/step/virtual_ranks.h"

namespace weft::program {

namespace {

/// Ranks that share the layers, or divide them, read the same rows.
BatchShare share_of_batches(const spec::RunSpec& spec, const comm::Communicator* ranks) {
  if (spec.mesh.tensor == 1 && spec.mesh.pipeline == 1) return {step::place_of(spec, ranks), comm::number_of(ranks)};
  const Mesh mesh = step::mesh_of(spec, comm::number_of(ranks));
  return {static_cast<int>(mesh.coordinate(comm::rank_of(ranks), kDataAxis)),
          static_cast<int>(mesh.size_of(kDataAxis))};
}

}  // namespace

PreparedRun::PreparedRun(const Library& run_library, const spec::RunSpec& run_spec, Tuning tuning,
                         const std::function<void(const std::string&)>& note, comm::Communicator* communicator,
                         RankRuntime rank_runtime, CostProfile profile)
    : library(run_library),
      ranks(communicator),
      spec(run_spec),
      training_share(share_of_batches(spec, ranks)),
      evaluation_share{step::place_of(spec, ranks), comm::number_of(ranks)},
      run_data(open_run_data(library, spec, training_share.shares)),
      course(spec, run_data.training->size()),
      shapes(usable_shapes(library, spec, run_data.description)),
      runtime(std::move(rank_runtime)),
      cost_profile(std::move(profile)),
      device(library.device.make({.threads = static_cast<int>(spec.threads),
                                  .kernels = runtime.kernels(library.kernels),
                                  .tuning = std::move(tuning)})),
      precision_times(choose_automatic_precision(library, spec,
                                                 model_input(run_data.description, own_part(shapes.front())), *device)),
      step(build_training(shapes.front())),
      gathers_in_evaluation(step::gathers_in_evaluation(step, spec, runtime.least_memory())),
      arena(runtime.make_arena(*device)),
      training(
          [this](const spec::StepShape& shape) {
            return shape == shapes.front() ? step.graph : build_training(shape).graph;
          },
          *device, runtime.training_options(spec, *device, cost_profile.costs), arena),
      evaluation(
          [this](const spec::StepShape& shape) {
            Graph graph = step::build_evaluation_step(library, spec, model_input(run_data.description, shape));
            return gathers_in_evaluation ? step::gathering_evaluation(graph, step, comm::rank_of(ranks)) : graph;
          },
          *device, evaluation_options(), arena) {
  step::require_mesh(spec, comm::number_of(ranks));
  if (!spec.offload.empty()) arena->open_file(spec.offload);  // what cannot be is said before all the planning
  step::require_fit(step.graph, spec.model.name, run_data.description.info, own_part(shapes.front()).batch);
  passes::require_matches(step.graph, spec::compile_options(spec, *device).precision);
  if (spec.schedule.name == "plateau") require_measured("schedule.monitor", spec.schedule.monitor);
  if (spec.stop.patience > 0 || !spec.stop.target.empty()) require_measured("stop.monitor", spec.stop.monitor);
  training.add_phases_of(step);
  compile_training();
  add_noise_probe();
  for (const data::Dataset* evaluated : run_data.evaluated()) {
    const int64_t samples = evaluated->size(), batch = spec.evaluation.batch;
    for (const int64_t count : {samples >= batch ? batch : 0, samples % batch}) {
      // A rank without rows runs one nevertheless where the others need its parts of the weights.
      const int64_t fewest = count > 0 && gathers_in_evaluation ? 1 : 0;
      for (const int64_t rows : evaluated_rows(count))
        if (std::max(rows, fewest) > 0) compile_seconds += evaluation.compiled(std::max(rows, fewest)).compile_seconds;
    }
  }
  limit_caches();
  const int64_t unlimited = training.steps().arena_bytes();
  for (const spec::StepShape& shape : shapes) keep_to_memory_limit(training.steps(), spec, bytes_beside_arena(), shape);
  if (training.steps().arena_bytes() != unlimited) compile_seconds += training.compiled(largest()).compile_seconds;
  int64_t others = evaluation.arena_bytes();
  for (const Phase phase : {Phase::update, Phase::averaging})
    if (training.has(phase)) others = std::max(others, training.steps(phase).arena_bytes());
  if (noise) {
    for (const spec::StepShape& shape : shapes) keep_to_memory_limit(noise->steps(), spec, bytes_beside_arena(), shape);
    others = std::max(others, noise->arena_bytes());
  }
  require_memory_limit(spec, bytes_beside_arena(), others);
  arena->reserve(std::max(training.arena_bytes(), others));
  open_offload_file(*arena, training.steps(), spec, note);
  planned_total_bytes = bytes_to_come();
  require_memory();
  device->settle();
}

/// Error(usage) where nothing in this run measures the metric that `key` names.
void PreparedRun::require_measured(const char* key, const std::string& monitor) const {
  if (monitor.starts_with("test") && !run_data.test)
    fail(ErrorKind::usage, "{} = '{}', but '{}' has no test data; set {}=train_loss", key, monitor, spec.data, key);
  const std::string metric = monitor.substr(monitor.find('_') + 1);
  if (metric == "loss") return;
  const std::vector<MetricEntry> metrics = step::metrics_of(library, spec.metrics, run_data.description.info.task);
  const bool is_measured =
      std::any_of(metrics.begin(), metrics.end(), [&](const auto& one) { return one.name == metric; });
  if (!is_measured || (metric == "accuracy" && !step::has_output(step.graph, "correct")))
    fail(ErrorKind::usage, "{} = '{}', but '{}' gives no {} here; set {}={}_loss", key, monitor, spec.model.name,
         metric, key, monitor.substr(0, monitor.find('_')));
}

CompileOptions PreparedRun::evaluation_options() const {
  CompileOptions options = spec::compile_options(spec, *device);
  options.costs = cost_profile.costs;
  if (step::gathers_along_data(step)) options.ranks = runtime.costs();
  return options;
}

/// All that the run will need, before its first step: how much memory it takes is then known, and no step of a later
/// stage waits for its plan.
void PreparedRun::compile_training() {
  for (const spec::StepShape& shape : shapes) compile_seconds += training.compile(shape);
}

/// Of what a process computes at a time, where that is a part of a step, else of a half of it.
void PreparedRun::add_noise_probe() {
  if (spec.metrics.noise_every == 0) return;
  const int summed_over = step::trains_apart(spec) ? 1 : training_share.shares;
  const auto part = [this, summed_over](const spec::StepShape& shape) {
    spec::StepShape own = own_part(shape);
    if (summed_over == 1 && !step.update) own.batch /= 2;
    if (own.batch < 1)
      fail(ErrorKind::usage, "metrics.noise_every = {}: a batch of one sample has no parts; choose a larger batch",
           spec.metrics.noise_every);
    return own;
  };
  noise.emplace(
      [this, part](const spec::StepShape& shape) {
        const Graph probe = step::build_gradient_probe(library, spec, model_input(run_data.description, part(shape)));
        return step::gradient_probe_for(probe, training.compiled(shape).graph);
      },
      *device, evaluation_options(), arena);
  for (const spec::StepShape& shape : shapes) compile_seconds += noise->compile(shape);
}

spec::StepShape PreparedRun::own_part(const spec::StepShape& shape) const {
  return {step::samples_at_a_time(spec, shape.batch, training_share.shares), shape.image_height};
}

std::vector<int64_t> PreparedRun::evaluated_rows(int64_t count) const {
  if (spec.virtual_ranks > 0)
    return step::rows_of_shards(count, spec.virtual_ranks, evaluation_share.share, evaluation_share.shares);
  const auto [begin, end] = data::rows_of_share(count, evaluation_share.share, evaluation_share.shares);
  return {end - begin};
}

step::TrainingStep PreparedRun::build_training(const spec::StepShape& shape) const {
  return step::build_training_step(library, spec, model_input(run_data.description, own_part(shape)),
                                   {.ranks = training_share.shares,
                                    .tensor_ranks = static_cast<int>(spec.mesh.tensor),
                                    .rank = comm::rank_of(ranks),
                                    .costs = runtime.costs(),
                                    .nodes = cost_profile.costs});
}

int64_t PreparedRun::memory_of_rank() const { return memory_limit_bytes() / comm::ranks_of_host(ranks); }

spec::StepShape PreparedRun::largest() {
  return *std::max_element(shapes.begin(), shapes.end(), [&](const spec::StepShape& a, const spec::StepShape& b) {
    return training.compiled(a).plan.arena_bytes < training.compiled(b).plan.arena_bytes;
  });
}

void PreparedRun::make_executors() {
  if (comm::Communicator* const alike = runtime.alike_ranks()) {  // whose evaluations may differ by a sample
    auto most = static_cast<double>(arena->bytes());
    comm::all_reduce_max(*alike, {&most, 1}, "memory of the steps");
    arena->reserve(static_cast<int64_t>(most));
  }
  for (const spec::StepShape& shape : shapes) {
    training.make_executors(shape);
    if (noise) noise->make_executors(shape);
  }
}

/// What the arena leaves is for decoded pictures. Each of several ranks has looked at all the memory that is free.
void PreparedRun::limit_caches() {
  if (const int on_host = comm::ranks_of_host(ranks); on_host > 1) {
    const int64_t affordable = available_memory_bytes() / on_host;
    run_data.training->limit_cache(std::min(run_data.training->cache_bytes_to_come(), affordable / 2));
    for (data::Dataset* evaluated : run_data.evaluated())
      evaluated->limit_cache(std::min(evaluated->cache_bytes_to_come(), affordable / 8));
  }
  int64_t rest = std::min(memory_of_rank(), memory_limit_of(spec)) - bytes_to_come();
  if (rest >= 0) return;
  std::vector<data::Dataset*> sets = run_data.evaluated();
  sets.push_back(run_data.training.get());
  for (data::Dataset* dataset : sets) {
    const int64_t cache = dataset->cache_bytes_to_come();
    dataset->limit_cache(std::max<int64_t>(0, cache + rest));
    rest = std::min<int64_t>(0, cache + rest);
  }
}

int64_t PreparedRun::bytes_to_come() const {
  return bytes_beside_arena() +
         std::max({training.arena_bytes(), evaluation.arena_bytes(), noise ? noise->arena_bytes() : 0});
}

std::vector<const Graph*> PreparedRun::graphs() const {
  std::vector<const Graph*> graphs = training.graphs();
  for (const Graph* graph : evaluation.graphs()) graphs.push_back(graph);
  if (noise)
    for (const Graph* graph : noise->graphs()) graphs.push_back(graph);
  return graphs;
}

int64_t PreparedRun::graph_and_kernel_bytes() const { return program::graph_and_kernel_bytes(graphs()); }

int64_t PreparedRun::message_buffer_bytes() const { return runtime.message_buffer_bytes(graphs()); }

int64_t PreparedRun::bytes_beside_arena() const {
  int64_t bytes = step::state_bytes(step) + message_buffer_bytes();
  if (!gathers_in_evaluation) bytes += step::whole_weight_bytes(step);
  bytes +=
      loader_bytes(training_loader_options(spec, run_data.description, training_share, library), run_data.description);
  bytes += run_data.training->cache_bytes_to_come();
  for (const data::Dataset* evaluated : run_data.evaluated()) {
    bytes += evaluated->cache_bytes_to_come();
    bytes +=
        loader_bytes(evaluation_loader_options(spec, run_data.description, evaluation_share), run_data.description);
    bytes += step::ViewedBatch::bytes(
        spec.evaluation.tta, run_data.description.info,
        (std::min(spec.evaluation.batch, evaluated->size()) + evaluation_share.shares - 1) / evaluation_share.shares);
  }
  return bytes;
}

void PreparedRun::require_memory() const {
  const int64_t planned = planned_total_bytes, limit = memory_of_rank();
  if (planned <= limit) return;
  int64_t batch = 0;
  for (const spec::StepShape& shape : shapes) batch = std::max(batch, shape.batch);
  const int on_host = comm::ranks_of_host(ranks);
  const bool puts_together = !gathers_in_evaluation && step::whole_weight_bytes(step) > 0;
  fail(ErrorKind::usage, "training '{}' with batch {} needs {}, this machine has {}{}; choose a smaller batch{}",
       spec.model.name, batch, human_bytes(static_cast<double>(planned)), human_bytes(static_cast<double>(limit)),
       on_host > 1 ? fmt::format(" for each of {} ranks", on_host) : "",
       puts_together ? fmt::format(", or evaluation.weights=by_layer, which saves {}",
                                   human_bytes(static_cast<double>(step::whole_weight_bytes(step))))
                     : "");
}

}  // namespace weft::program
