#include "weft/report/explained.h"

#include <numeric>

#include "weft/graph/signature_key.h"
#include "weft/runtime/collective_kernels.h"

namespace weft::report {

namespace {

void add_measured(const CompiledStep& compiled, const Device& device, Measured& measured) {
  const KernelTimes chosen = device.chosen();
  for (const PlannedNode& step : compiled.plan.steps) {
    const auto times = chosen.find(signature_key(signature_of(compiled.graph, step.node)));
    if (times != chosen.end()) measured[compiled.graph.node_name(step.node)] = times->second;
  }
}

/// Of the batch with which sums are complete; what it leaves to the next run is in the profile of all of them.
Profile of_last_batch(const Explained& explained, const Profile& of_all, Profile of_last) {
  if (explained.batches == 1) return of_all;
  for (auto index = static_cast<size_t>(explained.compiled->plan.deferred_from); index < of_last.seconds.size();
       ++index)
    of_last.seconds[index] = static_cast<double>(explained.batches) * of_all.seconds[index];
  return of_last;
}

std::vector<CollectiveProfile> collectives_of(const CompiledStep& step, const Profile& profile,
                                              program::PlannedStep& planned) {
  std::vector<CollectiveProfile> all =
      profile_collectives(step.graph, step.plan, profile, planned.ranks(), planned.costs());
  for (CollectiveProfile& one : all) {
    if (!one.algorithm.empty()) continue;  // there is no choice of them
    comm::Collectives& collectives = *planned.collectives(axis_of_exchange(step.graph.node(one.node)));
    const comm::CollectiveId id = collectives.prepare(reduction_of(signature_of(step.graph, one.node)));
    one.algorithm = collectives.describe(id);
    one.took_seconds = collectives.last_seconds(id);
  }
  return all;
}

/// What the step exchanges, and its update where that has a graph of its own.
std::vector<CollectiveProfile> collectives_of(const Explained& explained, const Profile& profile,
                                              const Profile& update_profile, program::PlannedStep& planned) {
  if (explained.update == nullptr)
    return collectives_of(*explained.compiled, of_last_batch(explained, profile, update_profile), planned);
  std::vector<CollectiveProfile> all = collectives_of(*explained.compiled, profile, planned);
  for (CollectiveProfile& one : collectives_of(*explained.update, update_profile, planned))
    all.push_back(std::move(one));
  return all;
}

Averaging explain_averaging(program::RunningStep& step, program::PlannedStep& planned, int64_t times) {
  const auto median_of = [&](program::Phase averaging) {
    std::vector<Profile> profiles(static_cast<size_t>(times));
    step.average(averaging, nullptr);
    for (Profile& profile : profiles) step.average(averaging, &profile);
    return median_profile(profiles);
  };
  const auto sum_of = [](const Profile& profile) {
    return std::accumulate(profile.seconds.begin(), profile.seconds.end(), 0.0);
  };
  const Profile profile = median_of(program::Phase::averaging);
  const bool has_others = planned.compiled_weight_averaging() != nullptr;
  return {.period = planned.spec().averaging.period,
          .states_every = planned.spec().averaging.states_every,
          .seconds = sum_of(profile),
          .weight_seconds = has_others ? sum_of(median_of(program::Phase::weight_averaging)) : 0,
          .collectives = collectives_of(*planned.compiled_averaging(), profile, planned)};
}

}  // namespace

Explained explain_plan(program::PlannedStep& planned) {
  const CompiledStep& compiled = planned.compiled();
  return {.compiled = &compiled,
          .costs = planned.costs().describe(),
          .update = planned.compiled_update(),
          .batches = planned.choice().batches,
          .at_peak = live_tensors(compiled.graph, compiled.plan, compiled.plan.peak_step)};
}

Explained explain_steps(program::PlannedStep& planned, int64_t steps) {
  Explained explained = explain_plan(planned);
  program::RunningStep step(planned);
  explained.rates = planned.device().measure_rates();
  step.run();  // the first step touches all memory for the first time
  std::vector<Profile> profiles(static_cast<size_t>(steps)), update_profiles(profiles.size());
  for (size_t count = 0; count < profiles.size(); ++count) step.run(&profiles[count], &update_profiles[count]);
  step.finish();
  const Profile profile = median_profile(profiles), update_profile = median_profile(update_profiles);
  const CompiledStep& compiled = *explained.compiled;
  explained.nodes = profile_nodes(compiled.graph, compiled.plan, profile, explained.rates, explained.batches);
  add_measured(compiled, planned.device(), explained.measured);
  if (const CompiledStep* update = explained.update) {
    explained.nodes =
        merged(std::move(explained.nodes), profile_nodes(update->graph, update->plan, update_profile, explained.rates));
    add_measured(*update, planned.device(), explained.measured);
  }
  for (const OpProfile& node : explained.nodes) {
    explained.step_seconds += node.seconds;
    explained.floor_seconds += node.floor_seconds;
  }
  const bool is_alone =
      planned.collectives() == nullptr && planned.collectives(kTensorAxis) == nullptr && planned.messages() == nullptr;
  if (is_alone) return explained;
  explained.collectives = collectives_of(explained, profile, update_profile, planned);
  if (planned.compiled_averaging() != nullptr) explained.averaging = explain_averaging(step, planned, steps);
  return explained;
}

}  // namespace weft::report
