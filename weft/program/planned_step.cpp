#include "weft/program/planned_step.h"

#include <algorithm>

#include "weft/comm/host_share.h"
#include "weft/comm/together.h"
#include "weft/passes/precision/lower_precision.h"
#include "weft/program/arena_limit.h"
#include "weft/program/decisions.h"
#include "weft/program/process_memory.h"

namespace weft::program {

namespace {

CompileOptions options_of(const StepChoice& choice, const RankRuntime& runtime, const Backend& backend) {
  CompileOptions options = runtime.training_options(choice.spec, backend);
  options.ranks.bucket_bytes = choice.bucket_bytes;
  options.passes.disabled.insert(options.passes.disabled.end(), choice.without.begin(), choice.without.end());
  return options;
}

}  // namespace

PlannedStep::PlannedStep(const Library& library, const StepChoice& choice, const RankRuntime& runtime, Tuning tuning,
                         const Note& note)
    : choice_(choice),
      runtime_(runtime),
      backend_(static_cast<int>(choice.spec.threads), runtime.kernels(library.kernels), std::move(tuning)),
      training_(step::build_training_step(library, choice.spec, choice.input,
                                          {.ranks = runtime.costs().count, .costs = runtime.costs()})),
      options_(options_of(choice, runtime, backend_)),
      arena_(runtime.make_arena()),
      steps_(
          [this, &library](const spec::StepShape&) {
            return choice_.forward ? step::build_prediction_step(library, choice_.spec, choice_.input)
                                   : training_.graph;
          },
          backend_, options_, arena_),
      update_(
          [this](const spec::StepShape& shape) {
            return step::update_graph_for(training_, steps_.compiled(shape).graph);
          },
          backend_, options_, arena_),
      averaging_(
          [this](const spec::StepShape& shape) {
            return step::averaging_graph_for(training_, steps_.compiled(shape).graph,
                                             has_update() ? &update_.compiled(shape).graph : nullptr);
          },
          backend_, options_, arena_) {
  passes::require_matches(training_.graph, options_.precision);
  compiled_update();
  compiled_averaging();
  const Plan& unlimited = compiled().plan;
  if (choice_.limit) choice_.limit(steps_, unlimited.total_bytes() - unlimited.arena_bytes);
  compiled();
  keep_measured(backend_, note);
}

int64_t PlannedStep::arena_bytes() const {
  return std::max({steps_.arena_bytes(), update_.arena_bytes(), averaging_.arena_bytes()});
}

int64_t PlannedStep::total_bytes() {
  const Plan& plan = compiled().plan;
  return plan.total_bytes() - plan.arena_bytes + arena_bytes();
}

void PlannedStep::require_memory(const Note& note) {
  program::require_memory(spec().model.name, spec().batch, total_bytes(), choice_.where_too_large);
  arena_->reserve(arena_bytes());
  open_offload_file(*arena_, steps_, spec(), note);
}

PlannedOnRanks plan_on_ranks(const Library& library, comm::Communicator* ranks, const Note& note,
                             const std::function<StepChoice()>& choose) {
  StepChoice choice;
  comm::together(ranks, "choice of the step", [&] { choice = choose(); });
  spec::RunSpec& spec = choice.spec;
  spec.threads = comm::common_threads(ranks, spec.threads);
  Tuning tuning;
  comm::together(ranks, "known kernels", [&] {
    if (comm::is_first(ranks) && choice.tuning) tuning = choice.tuning(spec.threads);
  });
  PlannedOnRanks planned;
  planned.runtime = std::make_unique<RankRuntime>(ranks, static_cast<int>(spec.threads),
                                                  agreed_costs(ranks, spec.cluster), spec.virtual_ranks > 0);
  prepare_alike(ranks, "plan of the step", measures(tuning), [&](const std::string& decided) {
    planned.step = std::make_unique<PlannedStep>(library, choice, *planned.runtime,
                                                 decided.empty() ? tuning : tuning_by(decided), note);
    return chosen_kernels_of(planned.step->backend());
  });
  return planned;
}

RunningStep::RunningStep(PlannedStep& planned)
    : state_(step::initial_state(planned.training_, static_cast<uint64_t>(planned.spec().seed))),
      executor_(planned.steps_.executor(planned.spec().batch)),
      update_(planned.has_update() ? &planned.update_.executor(planned.spec().batch) : nullptr),
      averaging_(planned.averages() ? &planned.averaging_.executor(planned.spec().batch) : nullptr),
      batch_(planned.compiled().graph, planned.choice_.input.classes),
      step_(executor_, update_, state_, planned.choice_.batches) {
  batch_.bind(executor_);
}

void RunningStep::average(Profile* profile) {
  averaging_->bind_state(state_);
  averaging_->run(profile);
  executor_.bind_state(state_);
}

}  // namespace weft::program
