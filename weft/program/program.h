// A program: compiled steps that run in turn over one State and in one arena. A training step has up to three
// phases; an evaluation or a prediction has one. Driver runs it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "weft/program/step_cache.h"
#include "weft/step/step.h"

namespace weft::program {

/// In the order in which they run.
enum class Phase {
  batch,             // of each batch: all of the step, where nothing below is a phase of its own
  update,            // of the weights, once the gradients of several batches have been summed
  averaging,         // the mean of the states of ranks that train apart
  weight_averaging,  // the mean of their weights alone
};
inline constexpr std::array kPhases = {Phase::batch, Phase::update, Phase::averaging, Phase::weight_averaging};

class Program {
 public:
  /// `build` makes the graph of the first phase for a shape. Keeps a reference to the device.
  Program(StepCache::Build build, const Device& device, CompileOptions options, std::shared_ptr<Arena> arena = nullptr);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Adds the phases of a training step that are graphs of their own, with the layouts that states have in earlier
  /// phases. Keeps a reference to the step.
  void add_phases_of(const step::TrainingStep& step);

  bool has(Phase phase) const { return phases_[index(phase)].has_value(); }
  /// Compiled at the first call for a shape.
  const CompiledStep& compiled(const spec::StepShape& shape, Phase phase = Phase::batch);
  /// Made at the first call for a shape, as StepCache::executor() does.
  Executor& executor(const spec::StepShape& shape, Phase phase = Phase::batch);
  /// Compiles all phases. Returns the seconds of compiling, now or before.
  double compile(const spec::StepShape& shape);
  void make_executors(const spec::StepShape& shape);

  /// Of the phase that needs most, over the shapes compiled so far.
  int64_t arena_bytes() const;
  /// Of all phases and shapes compiled so far.
  std::vector<const Graph*> graphs() const;
  StepCache& steps(Phase phase = Phase::batch);
  const StepCache& steps(Phase phase = Phase::batch) const;
  Arena& arena() const { return *arena_; }

 private:
  static size_t index(Phase phase) { return static_cast<size_t>(phase); }
  void add(Phase phase, StepCache::Build build);

  const Device& device_;
  const CompileOptions options_;
  const std::shared_ptr<Arena> arena_;
  std::array<std::optional<StepCache>, kPhases.size()> phases_;
};

}  // namespace weft::program
