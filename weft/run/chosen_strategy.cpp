#include "weft/run/chosen_strategy.h"

#include <optional>
#include <utility>

#include "weft/base/clock.h"
#include "weft/base/now_and_then.h"
#include "weft/comm/host_share.h"
#include "weft/comm/measure/measure.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/machines/cluster_file.h"
#include "weft/predict/planned_model.h"
#include "weft/predict/run_prediction.h"
#include "weft/program/rank_runtime.h"
#include "weft/search/auto_strategy.h"
#include "weft/spec/recipe.h"

namespace weft::run {

namespace {

/// The links between these hosts; nothing on one host, whose ranks share memory.
std::optional<machines::ClusterFile> cluster_of(comm::Communicator* ranks, const std::string& file) {
  if (ranks == nullptr || ranks->members().back().host_index == 0) return std::nullopt;
  const comm::ClusterCosts costs = program::agreed_costs(ranks, file);
  machines::ClusterFile cluster = machines::parse_cluster(comm::cluster_text(*ranks, costs), "cluster.toml");
  cluster.cores_per_host = static_cast<int>(comm::cores_of_host(ranks));
  return cluster;
}

std::string text_by(const Library& library, const predict::Strategy& chosen, spec::RunSpec spec) {
  search::apply_choice(chosen, spec);
  return spec::print_recipe(spec, library);
}

spec::RunSpec parsed(const Library& library, const std::string& text) {
  spec::RunSpec spec;
  spec::apply_recipe(spec, text, "spec.toml", library);
  spec::resolve(spec, library);
  return spec;
}

}  // namespace

spec::RunSpec chosen_spec(const Library& library, const predict::Strategy& chosen, spec::RunSpec spec) {
  return parsed(library, text_by(library, chosen, std::move(spec)));
}

void choose_strategy(const Library& library, spec::RunSpec& spec, comm::Communicator* ranks,
                     const std::function<void(const std::string&)>& note) {
  if (spec.strategy != "auto") return;
  const std::optional<machines::ClusterFile> cluster = cluster_of(ranks, spec.cluster);
  const std::string text = comm::decided_by_first(ranks, "strategy", [&] {
    const program::RunData data = program::open_run_data(library, spec);
    const predict::PlannedModel model = predict::planned_model(library, spec, data);
    const auto say = [&](const std::string& line) {
      if (note) note(line);
    };
    const predict::Place place{.cluster = cluster ? &*cluster : nullptr,
                               .times_here = predict::kept_times_here(library.device, say),
                               .cores = comm::cores_of_host(ranks)};
    const search::Choice choice = search::choose_strategy(
        library, model, place, predict::strategy_of(spec, comm::number_of(ranks), comm::ranks_of_host(ranks)), {},
        now_and_then(say, kSecondsBetweenLines, steady_seconds));
    say(search::describe(choice));
    return text_by(library, choice.strategy(), spec);
  });
  spec = parsed(library, text);
}

}  // namespace weft::run
