#include "weft/program/planned_step.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "weft/comm/host_share.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/passes/precision/lower_precision.h"
#include "weft/program/arena_limit.h"
#include "weft/program/decisions.h"
#include "weft/program/process_memory.h"
#include "weft/step/rank_mesh.h"

namespace weft::program {

namespace {

constexpr int64_t kCountedSteps = 1 << 20;  // more than anybody measures

/// As the spec has it, but for a rate so small that thousands of steps on noise stay finite.
spec::RunSpec on_noise(spec::RunSpec spec) {
  spec.optimizer.learning_rate = 1e-5;
  spec.schedule = {};
  spec.schedule.name = "constant";
  return spec;
}

CompileOptions options_of(const StepChoice& choice, const RankRuntime& runtime, const Backend& backend,
                          const CostProfile& profile) {
  CompileOptions options = runtime.training_options(choice.spec, backend, profile.costs);
  options.ranks.bucket_bytes = choice.bucket_bytes;
  options.passes.disabled.insert(options.passes.disabled.end(), choice.without.begin(), choice.without.end());
  return options;
}

}  // namespace

PlannedStep::PlannedStep(const Library& library, const StepChoice& choice, const RankRuntime& runtime,
                         const CostProfile& profile, Tuning tuning, const Note& note)
    : choice_(choice),
      runtime_(runtime),
      device_(library.device.make({.threads = static_cast<int>(choice.spec.threads),
                                   .kernels = runtime.kernels(library.kernels),
                                   .tuning = std::move(tuning)})),
      training_(step::build_training_step(library, choice.spec, choice.input,
                                          {.ranks = runtime.costs().count,
                                           .tensor_ranks = runtime.tensor_ranks(),
                                           .rank = runtime.rank(),
                                           .costs = runtime.costs(),
                                           .nodes = profile.costs})),
      options_(options_of(choice, runtime, *device_, profile)),
      program_(
          [this, &library](const spec::StepShape&) { return choice_.forward ? inference(library) : training_.graph; },
          *device_, options_, runtime.make_arena(*device_)) {
  if (!choice_.forward) program_.add_phases_of(training_);
  passes::require_matches(training_.graph, options_.precision);
  compiled_update();
  compiled_averaging();
  compiled_weight_averaging();
  if (choice_.limit) choice_.limit(program_.steps(), bytes_beside_arena() + gathered_bytes());
  compiled();
  keep_measured(library.device, *device_, note);
}

Graph PlannedStep::inference(const Library& library) const {
  Graph whole = step::build_prediction_step(library, choice_.spec, choice_.input);
  const PlannedStep* const trained_by = choice_.trained_by;
  if (trained_by == nullptr || !trained_by->gathers_in_evaluation()) return whole;
  return step::gathering_evaluation(whole, trained_by->training_, trained_by->rank());
}

int PlannedStep::rank() const { return runtime_.rank(); }

int64_t PlannedStep::total_bytes() { return bytes_beside_arena() + program_.arena_bytes(); }

int64_t PlannedStep::graph_and_kernel_bytes() {
  compiled();
  return program::graph_and_kernel_bytes(program_.graphs());
}

int64_t PlannedStep::message_buffer_bytes() {
  compiled();
  return runtime_.message_buffer_bytes(program_.graphs());
}

/// Of an update that is a graph of its own there are states that the graph of a batch does not name.
int64_t PlannedStep::bytes_beside_arena() {
  const Plan& plan = compiled().plan;
  const int64_t states = choice_.forward ? plan.state_bytes : std::max(plan.state_bytes, state_bytes());
  return states + plan.batch_bytes + plan.constant_bytes + message_buffer_bytes();
}

void PlannedStep::require_memory(const Note& note) {
  program::require_memory(spec().model.name, spec().batch, total_bytes(), choice_.where_too_large);
  program_.arena().reserve(program_.arena_bytes());
  open_offload_file(program_.arena(), program_.steps(), spec(), note);
}

PlannedOnRanks plan_on_ranks(const Library& library, comm::Communicator* ranks, const Note& note,
                             const std::function<StepChoice()>& choose) {
  StepChoice choice;
  comm::on_all_ranks(ranks, "choice of the step", [&] {
    choice = choose();
    step::require_mesh(choice.spec, comm::number_of(ranks));
  });
  spec::RunSpec& spec = choice.spec;
  spec.threads = comm::common_threads(ranks, spec.threads);
  Tuning tuning;
  comm::on_all_ranks(ranks, "known kernels", [&] {
    if (comm::is_first(ranks) && choice.tuning) tuning = choice.tuning(spec.threads);
  });
  PlannedOnRanks planned;
  planned.runtime =
      std::make_unique<RankRuntime>(ranks, static_cast<int>(spec.threads), agreed_costs(ranks, spec.cluster),
                                    spec.virtual_ranks > 0, step::mesh_of(spec, comm::number_of(ranks)));
  const CostProfile profile = agreed_profile(ranks, library, spec.cost_profile, static_cast<int>(spec.threads));
  prepare_alike(ranks, "plan of the step", measures(tuning), [&](const std::string& decided) {
    planned.step = std::make_unique<PlannedStep>(library, choice, *planned.runtime, profile,
                                                 decided.empty() ? tuning : tuning_by(decided), note);
    return chosen_kernels_of(planned.step->device());
  });
  return planned;
}

RunningStep::RunningStep(PlannedStep& planned)
    : choice_(planned.choice_),
      shards_(choice_.spec.virtual_ranks > 0 || choice_.spec.balance.grains > 0 ? choice_.batches : 1),
      state_(step::initial_state(planned.training_, static_cast<uint64_t>(planned.spec().seed), planned.rank())),
      driver_(planned.program_, state_),
      batch_(planned.compiled().graph, choice_.input.classes),
      spec_(on_noise(choice_.spec)),
      course_(kCountedSteps, kCountedSteps),
      scalars_(spec_, course_, /*ranks=*/1, /*place=*/0) {
  driver_.select(planned.spec().batch);
  driver_.bind_scalars(scalars_);
  batch_.bind(driver_.executor());
}

Executor& RunningStep::last() {
  Executor& last = driver_.executor(driver_.last());
  return last.has_scalar(step::kStop) ? last : driver_.executor();
}

void RunningStep::run(Profile* of_batches, Profile* of_update) {
  const int64_t parts = choice_.batches / shards_;
  Profile own;
  StepHooks hooks;
  if (of_batches != nullptr) {
    hooks.profile_of = [&](Phase phase, int64_t) {
      own = {};
      return phase == Phase::update ? of_update : &own;
    };
    hooks.after_run = [&](const Executor& executor) {
      if (&executor != &driver_.executor()) return;
      of_batches->seconds.resize(own.seconds.size());
      std::transform(own.seconds.begin(), own.seconds.end(), of_batches->seconds.begin(), of_batches->seconds.begin(),
                     std::plus<>());
      ++of_batches->runs;
    };
  }
  driver_.run_step(scalars_, {.step = 1, .parts = parts}, shards_, hooks);
  if (of_batches != nullptr && of_update != nullptr && !driver_.has(Phase::update)) *of_update = std::move(own);
}

void RunningStep::average(Phase averaging, Profile* profile) { driver_.run(averaging, profile); }

}  // namespace weft::program
