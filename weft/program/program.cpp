#include "weft/program/program.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::program {

Program::Program(StepCache::Build build, const Device& device, CompileOptions options, std::shared_ptr<Arena> arena)
    : device_(device),
      options_(std::move(options)),
      arena_(arena != nullptr ? std::move(arena) : std::make_shared<Arena>(device.memory())) {
  add(Phase::batch, std::move(build));
}

void Program::add(Phase phase, StepCache::Build build) {
  phases_[index(phase)].emplace(std::move(build), device_, options_, arena_);
}

void Program::add_phases_of(const step::TrainingStep& step) {
  if (step.update)
    add(Phase::update,
        [this, &step](const spec::StepShape& shape) { return step::update_graph_for(step, compiled(shape).graph); });
  const auto add_averaging = [this](Phase phase, const std::optional<Graph>& averaging) {
    if (!averaging) return;
    add(phase, [this, &averaging](const spec::StepShape& shape) {
      const Graph* update = has(Phase::update) ? &compiled(shape, Phase::update).graph : nullptr;
      return step::averaging_graph_for(*averaging, compiled(shape).graph, update);
    });
  };
  add_averaging(Phase::averaging, step.averaging);
  add_averaging(Phase::weight_averaging, step.weight_averaging);
}

StepCache& Program::steps(Phase phase) {
  check(has(phase), "a phase that the program has");
  return *phases_[index(phase)];
}

const StepCache& Program::steps(Phase phase) const {
  check(has(phase), "a phase that the program has");
  return *phases_[index(phase)];
}

const CompiledStep& Program::compiled(const spec::StepShape& shape, Phase phase) {
  return steps(phase).compiled(shape);
}

Executor& Program::executor(const spec::StepShape& shape, Phase phase) { return steps(phase).executor(shape); }

double Program::compile(const spec::StepShape& shape) {
  double seconds = 0;
  for (const Phase phase : kPhases)
    if (has(phase)) seconds += compiled(shape, phase).compile_seconds;
  return seconds;
}

void Program::make_executors(const spec::StepShape& shape) {
  for (const Phase phase : kPhases)
    if (has(phase)) executor(shape, phase);
}

std::vector<const Graph*> Program::graphs() const {
  std::vector<const Graph*> all;
  for (const std::optional<StepCache>& phase : phases_)
    if (phase)
      for (const Graph* graph : phase->graphs()) all.push_back(graph);
  return all;
}

int64_t Program::arena_bytes() const {
  int64_t bytes = 0;
  for (const std::optional<StepCache>& phase : phases_)
    if (phase) bytes = std::max(bytes, phase->arena_bytes());
  return bytes;
}

}  // namespace weft::program
