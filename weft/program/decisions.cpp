#include "weft/program/decisions.h"

#include <nlohmann/json.hpp>

#include "weft/comm/on_all_ranks.h"
#include "weft/program/chosen_kernels.h"
#include "weft/step/rank_mesh.h"

namespace weft::program {

using nlohmann::json;

void prepare_alike(comm::Communicator* ranks, std::string_view what, bool measures,
                   const std::function<std::string(const std::string& decided)>& prepare) {
  if (ranks == nullptr) {
    prepare("");
    return;
  }
  bool is_done = false;
  // The others learn from the first rank whether it measures, as caches of kernels differ between hosts.
  const std::string decided = comm::decided_by_first(ranks, what, [&] {
    is_done = measures;
    return measures ? prepare("") : std::string();
  });
  comm::on_all_ranks(ranks, what, [&] {
    if (!is_done) prepare(decided);
  });
}

bool measures(const Tuning& tuning) { return tuning.budget_seconds > 0 || !tuning.known.empty(); }

std::string chosen_kernels_of(const Device& device) { return chosen_kernels_json(device).dump(); }

Tuning tuning_by(const std::string& chosen_kernels) {
  return {.known = kernel_times_from(json::parse(chosen_kernels))};
}

std::unique_ptr<PreparedRun> prepare_run(const Library& library, const spec::RunSpec& spec, const Tuning& tuning,
                                         const std::function<void(const std::string&)>& note, comm::Communicator* ranks,
                                         const std::string& cluster, const std::string& cost_profile) {
  comm::on_all_ranks(ranks, "mesh", [&] { step::require_mesh(spec, comm::number_of(ranks)); });
  const RankRuntime runtime(ranks, static_cast<int>(spec.threads), agreed_costs(ranks, cluster), spec.virtual_ranks > 0,
                            step::mesh_of(spec, comm::number_of(ranks)));
  const CostProfile profile = agreed_profile(ranks, library, cost_profile, static_cast<int>(spec.threads));
  std::unique_ptr<PreparedRun> run;
  const auto prepare = [&](const std::string& decided) {
    spec::RunSpec alike = spec;
    Tuning known = tuning;
    if (!decided.empty()) {
      const json decisions = json::parse(decided);
      alike.precision = decisions.at("precision");
      alike.precision_of = decisions.at("precision_of");
      known = tuning_by(decisions.at("kernels"));
    }
    run = std::make_unique<PreparedRun>(library, alike, known, note, ranks, runtime, profile);
    return json{{"precision", run->spec.precision},
                {"precision_of", run->spec.precision_of},
                {"kernels", chosen_kernels_of(*run->device)}}
        .dump();
  };
  prepare_alike(ranks, "preparation of the run", spec.precision == "auto" || measures(tuning), prepare);
  return run;
}

}  // namespace weft::program
