// Chooses the values that a recipe leaves open as `auto`: optimizer.learning_rate by a range test, batch and
// schedule.warmup_steps by the gradient noise. All is measured by a few steps of runs of their own, from the same
// initial state, before the run is prepared: nothing of them is left in it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "weft/comm/communicator.h"
#include "weft/device/state.h"
#include "weft/library/library.h"
#include "weft/program/prepared_run.h"
#include "weft/run/policies/policy_file.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

struct PolicyInputs {
  const Library& library;
  const Tuning& tuning;
  comm::Communicator* ranks = nullptr;  // all of them call choose_policies() together
  std::function<void(const std::string&)> note = {};
  std::function<bool()> stop_requested = {};
  /// The state before the first step of a run.
  std::function<State(const program::PreparedRun&)> initial_state;
};

enum class Measuring { nothing, done, stopped };

/// Sets the keys of a resolved spec that MeasuredKeys names, and `policies` on all ranks: the first rank decides.
/// The measurements take less than 5 % of the run's samples. A run that is too short for a range test gets the
/// optimiser's own rate, with a line to `note`. Error(usage), here too, where the run cannot be prepared.
/// `stopped`: on request, and the spec is as it was.
Measuring choose_policies(const PolicyInputs& inputs, spec::RunSpec& spec, Policies& policies);

}  // namespace weft::run
