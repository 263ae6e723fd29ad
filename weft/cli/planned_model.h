// What `weft plan` is asked, and what it knows of the model, the data and the machine.
#pragma once

#include <string>
#include <vector>

#include "weft/cli/options.h"
#include "weft/predict/planned_run.h"

namespace weft::cli {

struct PlanOptions {
  ModelChoice choice;
  std::string cluster, clusters, op_times, deadline, svg, strategy;
  std::string runs = "runs";
  int64_t ranks = 0, samples = 0;
  double budget = 0;  // 0: none
  bool interpolate = false, spot = false, averaging = false, largest_batch = false, json = false;

  bool searches() const { return !deadline.empty() || budget != 0 || !clusters.empty() || !svg.empty() || spot; }
};

/// What the options say of the model, --strategy among the keys.
ModelChoice with_strategy(const PlanOptions& options);

/// The recipe, resolved, on the threads that it names where the options name none.
spec::RunSpec spec_of_plan(const Library& library, ModelChoice choice);

/// Whether the recipe's data are at hand; a line says so where they are not.
bool can_open_data(const Library& library, const spec::RunSpec& spec);

/// The model with its data, as far as these are at hand: else what input_of_recipe() finds, and a line says so.
/// `measures_loading`: what making a sample takes, which a prediction of memory alone does not ask.
predict::PlannedModel planned_model(const Library& library, const PlanOptions& options, const spec::RunSpec& spec,
                                    bool measures_loading = true);

/// A line where the time of loading is known here, but not on how many cores hosts of these clusters do it.
void note_unknown_cores(const predict::PlannedModel& model, const std::vector<machines::ClusterFile>& clusters);

/// Beyond what times of ops that were measured are off by.
inline constexpr double kRatedSpread = 0.3;
/// Of this machine: its file, or that of the options; without measured ops, from rates that are measured now.
/// Error(data) naming a file that is of another machine or version.
predict::NodeTimes times_of_machine(const Library& library, const PlanOptions& options, const predict::HostCores& host);

/// Null: ranks on this machine.
predict::Place place_of(const Library& library, const PlanOptions& options, const machines::ClusterFile* cluster);

}  // namespace weft::cli
