#include "weft/train/prepared_run.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/train/arena_limit.h"
#include "weft/train/compile_options.h"
#include "weft/train/image_sizes.h"
#include "weft/train/process_memory.h"
#include "weft/train/test_time_views.h"

namespace weft::train {

PreparedRun::PreparedRun(const Library& run_library, const RunSpec& run_spec, Tuning tuning,
                         const std::function<void(const std::string&)>& note)
    : library(run_library),
      spec(run_spec),
      run_data(open_run_data(library, spec)),
      course(spec, run_data.training->size()),
      shapes(usable_shapes(library, spec, run_data.description)),
      backend(static_cast<int>(spec.threads), library.kernels, std::move(tuning)),
      precision_times(
          choose_automatic_precision(library, spec, model_input(run_data.description, shapes.front()), backend)),
      step(build_training_step(library, spec, model_input(run_data.description, shapes.front()))),
      arena(std::make_shared<Arena>()),
      training([this](const StepShape& shape) { return build_training(shape); }, backend,
               compile_options(spec, backend), arena),
      evaluation(
          [this](const StepShape& shape) {
            return build_evaluation_step(library, spec, model_input(run_data.description, shape));
          },
          backend, compile_options(spec, backend), arena) {
  if (!spec.offload.empty()) arena->open_file(spec.offload);  // what cannot be is said before all the planning
  require_fit(step.graph, spec.model.name, run_data.description.info, shapes.front().batch);
  passes::require_matches(step.graph, compile_options(spec, backend).precision);
  if (spec.schedule.name == "plateau" && spec.schedule.monitor.starts_with("test") && !run_data.test)
    fail(ErrorKind::usage, "schedule.monitor = '{}', but '{}' has no test data; set schedule.monitor=train_loss",
         spec.schedule.monitor, spec.data);
  if (spec.schedule.name == "plateau" && spec.schedule.monitor.ends_with("accuracy") &&
      !has_output(step.graph, "correct"))
    fail(ErrorKind::usage, "schedule.monitor = '{}', but '{}' predicts values; set schedule.monitor=test_loss",
         spec.schedule.monitor, spec.data);
  if (step.update)
    update.emplace([this](const StepShape& shape) { return update_graph_for(step, training.compiled(shape).graph); },
                   backend, compile_options(spec, backend), arena);
  compile_training();
  if (run_data.test) {
    const int64_t samples = run_data.test->size(), batch = spec.evaluation.batch;
    if (samples >= batch) compile_seconds += evaluation.compiled(batch).compile_seconds;
    if (samples % batch != 0) compile_seconds += evaluation.compiled(samples % batch).compile_seconds;
  }
  limit_caches();
  const int64_t unlimited = training.arena_bytes();
  for (const StepShape& shape : shapes) keep_to_memory_limit(training, spec, bytes_beside_arena(), shape);
  if (training.arena_bytes() != unlimited) compile_seconds += training.compiled(largest()).compile_seconds;
  const int64_t others = std::max(evaluation.arena_bytes(), update ? update->arena_bytes() : 0);
  require_memory_limit(spec, bytes_beside_arena(), others);
  arena->reserve(std::max(training.arena_bytes(), others));
  open_offload_file(*arena, training, spec, note);
  planned_total_bytes = bytes_to_come();
  require_memory();
  backend.settle();
}

/// All that the run will need, before its first step: how much memory it takes is then known, and no step of a later
/// stage waits for its plan.
void PreparedRun::compile_training() {
  for (const StepShape& shape : shapes) {
    compile_seconds += training.compiled(shape).compile_seconds;
    if (update) compile_seconds += update->compiled(shape).compile_seconds;
  }
}

Graph PreparedRun::build_training(const StepShape& shape) const {
  if (shape == shapes.front()) return step.graph;
  return build_training_step(library, spec, model_input(run_data.description, shape)).graph;
}

StepShape PreparedRun::largest() {
  return *std::max_element(shapes.begin(), shapes.end(), [&](const StepShape& a, const StepShape& b) {
    return training.compiled(a).plan.arena_bytes < training.compiled(b).plan.arena_bytes;
  });
}

void PreparedRun::make_executors() {
  for (const StepShape& shape : shapes) {
    training.executor(shape);
    if (update) update->executor(shape);
  }
}

/// What the arena leaves is for decoded pictures.
void PreparedRun::limit_caches() {
  int64_t rest = std::min(memory_limit_bytes(), memory_limit_of(spec)) - bytes_to_come();
  if (rest >= 0) return;
  for (data::Dataset* dataset : {run_data.test.get(), run_data.training.get()}) {
    if (dataset == nullptr) continue;
    const int64_t cache = dataset->cache_bytes_to_come();
    dataset->limit_cache(std::max<int64_t>(0, cache + rest));
    rest = std::min<int64_t>(0, cache + rest);
  }
}

int64_t PreparedRun::bytes_to_come() const {
  const int64_t arenas[] = {training.arena_bytes(), evaluation.arena_bytes(), update ? update->arena_bytes() : 0};
  return bytes_beside_arena() + *std::max_element(std::begin(arenas), std::end(arenas));
}

int64_t PreparedRun::bytes_beside_arena() const {
  int64_t bytes = state_bytes(step);
  bytes += loader_bytes(training_loader_options(spec, run_data.description), run_data.description);
  bytes += run_data.training->cache_bytes_to_come() + (run_data.test ? run_data.test->cache_bytes_to_come() : 0);
  if (run_data.test) {
    bytes += loader_bytes(evaluation_loader_options(spec, run_data.description), run_data.description);
    bytes += ViewedBatch::bytes(spec.evaluation.tta, run_data.description.info,
                                std::min(spec.evaluation.batch, run_data.test->size()));
  }
  return bytes;
}

void PreparedRun::require_memory() const {
  const int64_t planned = planned_total_bytes, limit = memory_limit_bytes();
  if (planned <= limit) return;
  int64_t batch = 0;
  for (const StepShape& shape : shapes) batch = std::max(batch, shape.batch);
  fail(ErrorKind::usage, "training '{}' with batch {} needs {}, this machine has {}; choose a smaller batch",
       spec.model.name, batch, human_bytes(static_cast<double>(planned)), human_bytes(static_cast<double>(limit)));
}

}  // namespace weft::train
