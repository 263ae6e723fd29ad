#include "weft/run/prediction_file.h"

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/seal.h"
#include "weft/comm/host_share.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/predict/loading.h"
#include "weft/predict/planned_run.h"
#include "weft/run/earlier_runs.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr double kLoadingSeconds = 0.05;  // for which the beginning of a run waits

}  // namespace

predict::Sources sources_here(const program::PreparedRun& run, double loading_seconds, bool exact,
                              const NoteLine& note) {
  const int ranks = comm::number_of(run.ranks), of_host = comm::ranks_of_host(run.ranks);
  const predict::HostCores host{.cores = comm::cores_of_host(run.ranks), .threads = run.spec.threads, .ranks = of_host};
  OpTimes times = predict::known_times(run.library.device, host, note);
  const bool is_measured = !times.empty();
  predict::Sources sources{
      .nodes = predict::times_here(std::move(times), run.cost_profile.costs, static_cast<int>(run.spec.threads), exact),
      .exchange = {},
      .device = run.library.device.describe_machine(static_cast<int>(run.spec.threads)),
      .cores = host.cores};
  const passes::Ranks costs = run.runtime.costs();
  if (of_host < ranks) {
    sources.exchange = predict::exchange_by(costs, of_host);
  } else {
    predict::Place here;
    if (costs.count > 1) here.shared_bytes_per_second = costs.bytes_per_second;  // as its cluster file has it
    sources.exchange = predict::exchange_at(here, predict::strategy_of(run.spec, ranks, of_host), sources.nodes);
  }
  // Beside a step that is only rated it says nothing.
  if (is_measured && loading_seconds > 0)
    sources.sample_seconds = predict::measure_loading(
        *run.run_data.training,
        program::training_loader_options(run.spec, run.run_data.description, run.training_share, run.library),
        loading_seconds);
  return sources;
}

predict::Prediction predict_here(program::PreparedRun& run, const predict::Sources& sources, const fs::path& folder,
                                 const fs::path& own) {
  predict::Prediction prediction = predict::predict_run(run, sources);
  const std::optional<predict::Target> target = target_of(run.spec, run.library);
  if (target)
    prediction.to_target = predict::estimate_time(earlier_curves(run.library, folder, own, run.spec, target->metric),
                                                  *target, prediction.run_seconds());
  return prediction;
}

void write_prediction(const RunDirectory& directory, program::PreparedRun& run, const NoteLine& note) {
  const predict::Prediction prediction = predict_here(run, sources_here(run, kLoadingSeconds, /*exact=*/true, note),
                                                      fs::absolute(directory.path()).parent_path(), directory.path());
  nlohmann::ordered_json root = predict::to_json(prediction);
  add_seal(root);
  write_atomically(directory.prediction(), root.dump(1) + "\n");
}

std::optional<predict::Prediction> read_prediction(const RunDirectory& directory, const NoteLine& note) {
  std::error_code code;
  const std::string path = directory.prediction().string();
  if (!fs::exists(path, code)) return std::nullopt;
  try {
    const nlohmann::json root = nlohmann::json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
    if (!root.is_object()) fail(ErrorKind::data, "'{}' is damaged; remove it, or put the original back", path);
    check_seal(root, fmt::format("'{}'", path));
    return predict::prediction_from(root, path);
  } catch (const Error& error) {
    if (note) note(fmt::format("the run is not compared with its prediction: {}", error.what()));
    return std::nullopt;
  }
}

void revise_target(const RunDirectory& directory, const predict::Prediction& prediction,
                   std::optional<double> run_seconds) {
  if (!prediction.to_target || prediction.to_target->reached == 0 || !run_seconds) return;
  const predict::Interval run =
      predict::interval_of(*run_seconds * prediction.to_target->pace, prediction.to_target->pace_spread);
  nlohmann::ordered_json root = nlohmann::ordered_json::parse(read_text(directory.prediction()));
  root.erase("checksum");
  const predict::Interval seconds = predict::product(prediction.to_target->share, run);
  root["to_target_at_a_tenth"] = {
      {"seconds", {{"low", seconds.low}, {"expected", seconds.expected}, {"high", seconds.high}}}};
  add_seal(root);
  write_atomically(directory.prediction(), root.dump(1) + "\n");
}

bool is_predicted_for(const RunDirectory& directory, const program::PreparedRun& run) {
  const std::optional<predict::Prediction> known = read_prediction(directory, {});
  return known && known->strategy.ranks == comm::number_of(run.ranks);
}

}  // namespace weft::run
