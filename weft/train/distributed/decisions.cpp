#include "weft/train/distributed/decisions.h"

#include <nlohmann/json.hpp>

#include "weft/train/chosen_kernels.h"
#include "weft/train/distributed/together.h"

namespace weft::train {

using nlohmann::json;

std::unique_ptr<PreparedRun> prepare_run(const Library& library, const RunSpec& spec, const Tuning& tuning,
                                         const std::function<void(const std::string&)>& note,
                                         comm::Communicator* ranks) {
  const RankRuntime runtime(ranks, static_cast<int>(spec.threads), agreed_costs(ranks, spec.cluster),
                            spec.virtual_ranks > 0);
  std::unique_ptr<PreparedRun> run;
  const auto prepare = [&](const RunSpec& decided, const Tuning& known) {
    run = std::make_unique<PreparedRun>(library, decided, known, note, ranks, runtime);
  };
  const bool measures = spec.precision == "auto" || tuning.budget_seconds > 0 || !tuning.known.empty();
  if (ranks == nullptr) {
    prepare(spec, tuning);
    return run;
  }
  // The others learn from the first rank whether it measures, as caches of kernels differ between hosts.
  const std::string decisions = decided_by_first(ranks, "decisions of rank 0", [&] {
    if (!measures) return std::string();
    prepare(spec, tuning);
    return json{{"precision", run->spec.precision},
                {"precision_of", run->spec.precision_of},
                {"kernels", chosen_kernels_json(run->backend)}}
        .dump();
  });
  together(ranks, "preparation of the run", [&] {
    if (run) return;
    if (decisions.empty()) return prepare(spec, {});
    const json decided = json::parse(decisions);
    RunSpec alike = spec;
    alike.precision = decided.at("precision");
    alike.precision_of = decided.at("precision_of");
    prepare(alike, {.known = kernel_times_from(decided.at("kernels"))});
  });
  return run;
}

}  // namespace weft::train
