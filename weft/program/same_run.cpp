#include "weft/program/same_run.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "weft/base/rng.h"
#include "weft/base/version.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/comm/patience.h"
#include "weft/data/dataset/checksums.h"
#include "weft/program/shared_state.h"
#include "weft/spec/recipe.h"

namespace weft::program {

namespace {

using nlohmann::json;

constexpr const char* kSameProgram = "start the same program on all hosts";
constexpr const char* kSameRecipe = "start all ranks with the same recipe and options";
constexpr const char* kSameData = "give all hosts the same files, in the same order";

std::string same_machine(const DeviceIdentity& identity) {
  return fmt::format("take hosts with the same processors, {}and give all ranks as many threads",
                     identity.to_limit.empty() ? "" : "or " + identity.to_limit + ", ");
}

void add_data(std::vector<Trait>& traits, const std::string& name, const data::Dataset& dataset,
              const std::string& checksum) {
  const data::DatasetInfo& info = dataset.info();
  traits.push_back({"the number of samples of the " + name + " data", std::to_string(dataset.size()), kSameData});
  traits.push_back({"the shape of the samples of the " + name + " data", to_string(info.sample_shape), kSameData});
  traits.push_back({"the number of classes of the " + name + " data", std::to_string(info.classes), kSameData});
  traits.push_back({"the targets of the " + name + " data", checksum, kSameData});
  traits.push_back({"the content of the " + name + " data", data::sample_checksum(dataset), kSameData});
}

}  // namespace

void require_same(comm::Communicator* ranks, const std::vector<Trait>& traits) {
  if (ranks == nullptr) return;
  json mine = json::array();
  for (const Trait& trait : traits) mine.push_back({trait.value, trait.detail, trait.among});
  std::vector<json> all;
  for (const std::string& text : comm::all_gather(*ranks, mine.dump(), "comparison of the ranks"))
    all.push_back(json::parse(text));
  const auto shown = [&](const json& row) {
    const std::string detail = row.at(1);
    return row.at(0).get<std::string>() + (detail.empty() ? "" : fmt::format(" ({})", detail));
  };
  for (size_t index = 0; index < traits.size(); ++index)
    for (size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank].size() <= index || all[0].size() <= index)
        throw comm::SharedError(ErrorKind::communication,
                                fmt::format("{} is about to do something else than rank 0; {}",
                                            comm::name_of_rank(*ranks, static_cast<int>(rank)), kSameRecipe));
      const json& other = all[rank][index];
      size_t least = 0;  // of those that are compared
      while (all[least][index].at(2) != other.at(2)) ++least;
      const json& first = all[least][index];
      if (first.at(0) == other.at(0)) continue;
      throw comm::SharedError(
          ErrorKind::communication,
          fmt::format("{} is {} on {}, but {} on rank {}; {}", traits[index].name, shown(other),
                      comm::name_of_rank(*ranks, static_cast<int>(rank)), shown(first), least, traits[index].advice));
    }
}

std::string fingerprint_of(const Graph& graph, const Plan& plan) {
  std::string text;
  for (const PlannedNode& step : plan.steps)
    text += fmt::format("{} {} {} {} {} {}\n", graph.node_name(step.node), graph.node(step.node).op->name, step.kernel,
                        step.workspace_offset, step.workspace_bytes, step.before);
  for (size_t index = 0; index < plan.placements.size(); ++index) {
    const Placement& placement = plan.placements[index];
    text += fmt::format("{} {} {} {} {}\n", graph.values()[index].name, to_string(graph.values()[index].type),
                        static_cast<int>(placement.where), placement.offset, placement.bytes);
  }
  return fmt::format("{:016x}", hash_name(text));
}

std::vector<Trait> traits_of(PreparedRun& run, const State& state) {
  spec::RunSpec spec = run.spec;
  spec.data = spec.init = spec.offload = "";
  if (!spec::validation_share(spec)) spec.validation = "";
  std::vector<Trait> traits = {
      {"the version of weft", std::string(version()), kSameProgram},
      {"the recipe", spec::spec_hash(spec, run.library), kSameRecipe},
      {"the precision", run.spec.precision, kSameRecipe},
      {"metrics.gradient_norm", run.spec.metrics.gradient_norm ? "true" : "false", kSameRecipe},
      {"metrics.noise_every", std::to_string(run.spec.metrics.noise_every), kSameRecipe},
      {"the number of threads", std::to_string(run.spec.threads), kSameRecipe}};
  const RunData& data = run.run_data;
  add_data(traits, "training", *data.training, data.description.target_checksum);
  if (data.validation) add_data(traits, "validation", *data.validation, data::target_checksum(*data.validation));
  if (data.test) add_data(traits, "test", *data.test, data::target_checksum(*data.test));
  const data::ChannelStatistics& statistics = data.description.statistics;
  traits.push_back({"the mean of the training images", fmt::format("{}", fmt::join(statistics.mean, ", ")), kSameData});
  traits.push_back(
      {"the deviation of the training images", fmt::format("{}", fmt::join(statistics.deviation, ", ")), kSameData});
  const DeviceIdentity identity = run.device->identity();
  const std::string machine = "with the instructions of " + identity.instructions, advice = same_machine(identity);
  for (const spec::StepShape& shape : run.shapes) {
    const CompiledStep& compiled = run.training.compiled(shape);
    const int stage = run.step.pipeline ? run.step.pipeline->rank : 0;
    traits.push_back({fmt::format("the plan for batches of {}", shape.batch),
                      fingerprint_of(compiled.graph, compiled.plan), advice, machine, stage});
    const auto add = [&](const std::string& name, const CompiledStep& step) {
      traits.push_back({name, fingerprint_of(step.graph, step.plan), advice, machine});
    };
    if (run.training.has(Phase::update)) add("the plan of the update", run.training.compiled(shape, Phase::update));
    if (run.training.has(Phase::averaging))
      add("the plan of the mean of all states", run.training.compiled(shape, Phase::averaging));
    if (run.training.has(Phase::weight_averaging))
      add("the plan of the mean of the weights", run.training.compiled(shape, Phase::weight_averaging));
  }
  if (run.step.pipeline) traits.push_back({"the cut of the pipeline", run.step.pipeline->cut, advice, machine});
  traits.push_back({"the state at the beginning", fingerprint_of(state, run.step.shardings), advice, machine});
  return traits;
}

}  // namespace weft::program
