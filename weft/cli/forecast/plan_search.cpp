#include "weft/cli/forecast/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/machines/shipped.h"
#include "weft/planner/offers.h"
#include "weft/step/rank_mesh.h"

namespace weft::cli {

namespace {

std::vector<machines::ClusterFile> clusters_of(const PlanOptions& options) {
  if (!options.cluster.empty() && !options.clusters.empty())
    fail(ErrorKind::usage, "--cluster {} and --clusters {} are two choices of machines; leave one of them away",
         options.cluster, options.clusters);
  if (!options.cluster.empty()) return {machines::read_cluster(options.cluster)};
  if (!options.clusters.empty()) return machines::read_clusters(options.clusters);
  std::vector<machines::ClusterFile> clusters;
  for (const machines::ShippedFile& file : machines::shipped_clusters())
    clusters.push_back(machines::read_cluster(file.name));
  return clusters;
}

planner::Goal goal_of(const PlanOptions& options) {
  planner::Goal goal;
  if (!options.deadline.empty()) {
    goal.deadline_seconds = parse_duration(options.deadline);
    if (!goal.deadline_seconds)
      fail(ErrorKind::usage, "--deadline '{}' is no duration; write 90m, 6h, 1h 30m or 3600 (seconds)",
           options.deadline);
  }
  if (options.budget != 0) goal.budget = options.budget;
  return goal;
}

[[noreturn]] void fail_without_candidates(const Library& library, const std::vector<machines::ClusterFile>& clusters,
                                          int64_t ranks, const spec::RunSpec& spec) {
  int64_t most = 0;
  for (const machines::ClusterFile& cluster : clusters) most = std::max<int64_t>(most, cluster.ranks());
  if (ranks > most)
    fail(ErrorKind::usage,
         "--ranks {}: no cluster has so many devices, the largest has {}; give fewer, or raise machine.hosts in its "
         "file",
         ranks, most);
  if (ranks > 0)
    predict::recipe_by(predict::strategy_of(spec, ranks, ranks), spec, library);  // says what else is wrong
  const std::string along = spec.mesh.tensor * spec.mesh.pipeline > 1 ? " along mesh.data" : "";
  if (ranks > 0)
    fail(ErrorKind::usage,
         "{} ranks{} cannot share a batch of {} alike; choose a multiple of them with --batch, or other --ranks",
         step::data_ranks(spec, static_cast<int>(ranks)), along, spec.batch);
  fail(ErrorKind::usage,
       "no cluster has ranks of the recipe's mesh that can share a batch of {} alike; choose another --batch, or other "
       "--ranks",
       spec.batch);
}

}  // namespace

int search_plans(const Library& library, const PlanOptions& options) {
  const planner::Goal goal = goal_of(options);
  const spec::RunSpec spec = spec_of_plan(library, with_strategy(options));
  const bool is_open = spec.strategy == "auto";
  const std::vector<machines::ClusterFile> clusters = clusters_of(options);
  planner::require_one_currency(clusters);
  if (goal.budget) planner::require_prices(clusters, options.spot);
  if (options.spot)
    for (const machines::ClusterFile& cluster : clusters) machines::require_interruptions(cluster);
  const predict::PlannedModel model = planned_model(library, options, spec);
  note_unknown_cores(model, clusters);
  if (model.samples == 0)
    fail(ErrorKind::usage, "how long the run is follows from its data, which are not here; give --samples N");
  std::vector<planner::Candidate> candidates = planner::candidates_of(
      clusters, model.spec,
      {.spot = options.spot, .averages = options.averaging, .ranks = options.ranks, .open = is_open});
  if (candidates.empty()) fail_without_candidates(library, clusters, options.ranks, model.spec);
  predict::Place here = place_of(library, options, nullptr);
  here.seeks_least_memory = false;  // of one of many plans
  if (is_open) {
    // Rates that are measured now would give another answer each time.
    if (options.op_times.empty()) here.times_here = predict::kept_times_here(library.device, say, !options.interpolate);
    say(
        fmt::format("chooses a strategy for each of {} clusters and numbers of ranks; name fewer with --cluster, "
                    "--clusters and --ranks where that takes too long",
                    candidates.size()));
  }
  const size_t each = is_open ? 1 : 10;
  const planner::Found found = planner::search(
      std::move(candidates), goal, planner::evaluator_of(library, model, here), [&](size_t done, size_t all) {
        if (done % each == 0 && done < all) say(fmt::format("{} of {} {}", done, all, is_open ? "choices" : "plans"));
      });
  if (found.offers.empty())
    fail(ErrorKind::usage, "no plan is possible: {}", found.refused.empty() ? "" : found.refused.front().why);
  if (!options.svg.empty()) {
    write_atomically(options.svg,
                     planner::draw_svg(found, fmt::format("{}: time against cost", model.spec.model.name)));
    say(fmt::format("wrote '{}'", options.svg));
  }
  if (options.json)
    fmt::print("{}\n", planner::to_json(found, goal).dump(2));
  else
    fmt::print("{}", planner::describe(found, goal));
  return found.best || (!goal.deadline_seconds && !goal.budget) ? 0 : 1;
}

}  // namespace weft::cli
