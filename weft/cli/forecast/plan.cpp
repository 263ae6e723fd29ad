// weft plan: what a run will take, before it begins, here or on other machines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/now_and_then.h"
#include "weft/base/parse_number.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/forecast/plan_search.h"
#include "weft/cli/options.h"
#include "weft/cli/planned_model.h"
#include "weft/predict/largest_batch.h"
#include "weft/run/chosen_strategy.h"
#include "weft/run/earlier_runs.h"
#include "weft/run/prediction_file.h"
#include "weft/search/auto_strategy.h"

namespace weft::cli {

namespace {

constexpr double kLoadingSeconds = 0.3;  // for which making samples is measured

void print(const predict::Prediction& prediction, bool json) {
  if (json)
    fmt::print("{}\n", predict::to_json(prediction, /*with_timeline=*/true).dump(2));
  else
    fmt::print("{}", predict::describe(prediction));
}

/// As training would begin it: its plans, its data.
predict::Prediction predict_as_training(const Library& library, const spec::RunSpec& spec, const PlanOptions& options) {
  predict::recipe_by(predict::strategy_of(spec, 1, 1), spec, library);  // what cannot be is said first
  program::PreparedRun run(
      library, spec, {}, say, nullptr, program::RankRuntime(nullptr, 1),
      program::agreed_profile(nullptr, library, spec.cost_profile, static_cast<int>(spec.threads)));
  predict::Sources sources = run::sources_here(run, kLoadingSeconds, /*exact=*/!options.interpolate, say);
  if (!options.op_times.empty() || sources.nodes.common_spread > kRatedSpread)
    sources.nodes = times_of_machine(library, options, {.threads = spec.threads});
  return run::predict_here(run, sources, options.runs, "");
}

/// The fewest that the mesh of the recipe takes.
int64_t ranks_of_mesh(const spec::RunSpec& spec) {
  const auto along = [](int64_t ranks) { return std::max<int64_t>(1, ranks); };
  return along(spec.mesh.data) * along(spec.mesh.tensor) * along(spec.mesh.pipeline);
}

/// A run that begins here as the options say, for which neither another input nor other samples are assumed.
bool is_training_here(const Library& library, const PlanOptions& options, const spec::RunSpec& spec,
                      const machines::ClusterFile* cluster) {
  return cluster == nullptr && options.ranks <= 1 && ranks_of_mesh(spec) == 1 &&
         names_recipe(library, options.choice.model) && options.choice.input.empty() && options.choice.classes == 0 &&
         options.samples == 0 && can_open_data(library, spec);
}

std::optional<int64_t> ranks_of(const PlanOptions& options) {
  return options.ranks > 0 ? std::optional<int64_t>(options.ranks) : std::nullopt;
}

/// Without --ranks, here, and where the mesh names those along data: those of the mesh. On a cluster: the most devices,
/// of whole hosts where they are of several, that can share the batch alike. A line says so where these are not all.
std::optional<int64_t> ranks_by_batch(const PlanOptions& options, const spec::RunSpec& spec,
                                      const machines::ClusterFile* cluster) {
  if (options.ranks > 0) return options.ranks;
  if (cluster == nullptr || spec.mesh.data > 0) {
    const int64_t ranks = ranks_of_mesh(spec);
    if (ranks > 1)
      say(fmt::format("plans the {} ranks of the recipe's mesh{}", ranks,
                      spec.mesh.data > 0 ? "" : "; --ranks takes multiples of them"));
    return ranks;
  }
  const int64_t all = cluster->ranks();
  for (int64_t ranks = all; ranks > 0;
       ranks -= ranks > cluster->devices_per_host ? int64_t{cluster->devices_per_host} : 1) {
    if (!predict::can_divide(spec, ranks)) continue;
    if (ranks < all)
      say(fmt::format("plans {} of the {} devices, the most that can share a batch of {} alike; --ranks takes others",
                      ranks, all, spec.batch));
    return ranks;
  }
  return std::nullopt;
}

/// Says what was chosen, and then what a run by it takes, where its plan is not too large to be made.
int choose_strategy(const Library& library, const PlanOptions& options, const spec::RunSpec& spec,
                    const machines::ClusterFile* cluster) {
  predict::PlannedModel model = planned_model(library, options, spec);
  if (cluster != nullptr) note_unknown_cores(model, {*cluster});
  predict::Place place = place_of(library, options, cluster);
  // Rates that are measured now would give another answer each time.
  if (options.op_times.empty()) place.times_here = predict::kept_times_here(library.device, say, !options.interpolate);
  const search::Choice choice =
      search::choose_strategy(library, model, place, predict::strategy_on(model.spec, place, ranks_of(options)), {},
                              now_and_then(say, kSecondsBetweenLines, steady_seconds));
  if (options.json) {
    fmt::print("{}\n", search::to_json(choice).dump(2));
    return 0;
  }
  fmt::print("{}", search::describe(choice));
  if (is_training_here(library, options, spec, cluster)) {
    fmt::print("\n{}", predict::describe(
                           predict_as_training(library, run::chosen_spec(library, choice.strategy(), spec), options)));
    return 0;
  }
  if (!choice.found.ranked[*choice.found.chosen].planned) return 0;
  fmt::print("\n{}", predict::describe(predict::predict_on(library, model, choice.strategy(), place)));
  return 0;
}

int find_largest_batch(const Library& library, const PlanOptions& options, const spec::RunSpec& spec,
                       const machines::ClusterFile* cluster) {
  if (options.searches() || spec.strategy == "auto")
    fail(ErrorKind::usage,
         "--largest-batch is of one place and one strategy; leave {} away, and give --cluster, --ranks and --set",
         options.searches() ? "--deadline, --budget, --clusters, --svg and --spot" : "--strategy auto");
  predict::PlannedModel model = planned_model(library, options, spec, /*measures_loading=*/false);
  predict::Place place = place_of(library, options, cluster);
  place.times_here = predict::kept_times_here(library.device, say);  // nothing asks how long it takes
  place.seeks_least_memory = false;                                  // of one of many batches
  const predict::Strategy strategy = predict::strategy_on(model.spec, place, ranks_of(options));
  const predict::LargestBatch found = predict::largest_batch(library, model, strategy, place);
  predict::Strategy largest = strategy;
  largest.batch = found.batch;
  if (options.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"model", spec.model.name},
                                              {"strategy", predict::to_json(largest)},
                                              {"largest_batch", found.batch},
                                              {"memory_bytes", found.memory.total()},
                                              {"states_bytes", found.memory.states},
                                              {"rank_has_bytes", found.has_bytes},
                                              {"plans", found.plans}}
                           .dump(2));
  else
    fmt::print(
        "{}: the largest batch that fits is {}, with {} of {} at the peak of a rank, {} of it states\n"
        "{}\n{} plans were made; nothing was trained\n",
        spec.model.name, found.batch, human_bytes(static_cast<double>(found.memory.total())),
        human_bytes(found.has_bytes), human_bytes(static_cast<double>(found.memory.states)), predict::describe(largest),
        found.plans);
  return 0;
}

int plan_command(const Library& library, const PlanOptions& options) {
  if (options.averaging && (!options.searches() || options.strategy == "auto"))
    fail(ErrorKind::usage,
         "--averaging is one of the strategies that --deadline, --budget and --clusters compare{}; give one of them, "
         "or plan such a run with --set averaging.period=8",
         options.strategy == "auto" ? " without --strategy auto" : "");
  if (options.searches() && !options.largest_batch) return search_plans(library, options);
  const spec::RunSpec spec = spec_of_plan(library, with_strategy(options));
  std::optional<machines::ClusterFile> cluster;
  if (!options.cluster.empty()) cluster = machines::read_cluster(options.cluster);
  if (options.largest_batch) return find_largest_batch(library, options, spec, cluster ? &*cluster : nullptr);
  if (spec.strategy == "auto") return choose_strategy(library, options, spec, cluster ? &*cluster : nullptr);
  if (is_training_here(library, options, spec, cluster ? &*cluster : nullptr)) {
    print(predict_as_training(library, spec, options), options.json);
    return 0;
  }
  const predict::PlannedModel model = planned_model(library, options, spec);
  if (cluster) note_unknown_cores(model, {*cluster});
  const predict::Place place = place_of(library, options, cluster ? &*cluster : nullptr);
  const predict::Strategy strategy =
      predict::strategy_on(model.spec, place, ranks_by_batch(options, model.spec, place.cluster));
  predict::Prediction prediction = predict::predict_on(library, model, strategy, place);
  if (const std::optional<predict::Target> target = run::target_of(model.spec, library))
    prediction.to_target = predict::estimate_time(
        run::earlier_curves(library, options.runs, "", model.spec, target->metric), *target, prediction.run_seconds());
  print(prediction, options.json);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Say what a run will take - time, memory, traffic, cost - without training");
  command->footer(
      "`weft rates --ops` measures the ops of this machine once; without it, times are rough. With --deadline or "
      "--budget, chooses among the clusters of --clusters.");
  command->add_option("MODEL", options->choice.model, "A recipe, or a model on random input")
      ->type_name("RECIPE|MODEL|FILE")
      ->required();
  command
      ->add_option("--cluster", options->cluster,
                   "Plan for this cluster: a file, or one that comes with weft; default: this machine")
      ->type_name("FILE");
  command->add_option("--ranks", options->ranks, "Default: 1 here, of a cluster the most that can share the batch")
      ->check(CLI::Range(1, 65536));
  command->add_option("--input", options->choice.input,
                      "C,H,W of one image, or T tokens; default: of the recipe's data, or the model's own");
  command->add_option("--classes", options->choice.classes, "Or the vocabulary")->check(CLI::Range(1, 100000000));
  command->add_option("--samples", options->samples, "To train on; default: those of the recipe's data")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 50));
  command->add_option("--batch", options->choice.batch, "Samples per step of all ranks; default 16, or the recipe's")
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--precision", options->choice.precision, "f32 (default), bf16, f16, or auto");
  command
      ->add_option("--strategy", options->strategy,
                   "auto: choose how the ranks divide the work and what each of them keeps, for the least time under "
                   "--memory-limit; default: as the recipe says")
      ->check(CLI::IsMember({"manual", "auto"}));
  command->add_option("--memory-limit,--memory", options->choice.memory_limit,
                      "Such as 1.5GB of each rank: activations are computed twice to keep to it; default: none");
  command->add_option("--threads", options->choice.threads, "Of a rank here; default: all cores");
  command->add_option("--set", options->choice.set, "Any key of a recipe; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--runs", options->runs, "Where earlier runs are, whose curves tell when stop.target is reached")
      ->type_name("DIR")
      ->capture_default_str();
  command
      ->add_option("--op-times", options->op_times,
                   "Times that `weft rates --ops` has kept; default: those of this machine's cache")
      ->type_name("FILE");
  command->add_flag("--interpolate", options->interpolate,
                    "Leave out times of the very same shapes: to judge what is said of others");
  command->add_option("--deadline", options->deadline, "Such as 6h: choose what ends by then");
  command->add_option("--budget", options->budget, "Choose what costs no more, in the currency of the cluster files")
      ->check([](const std::string& text) {
        const std::optional<double> amount = parse_number<double>(text);
        return amount && std::isfinite(*amount) && *amount > 0 ? "" : "'" + text + "' is no amount above 0, such as 40";
      });
  command
      ->add_option("--clusters", options->clusters,
                   "Directory of cluster files to choose from; default: those that come with weft")
      ->type_name("DIR");
  command->add_option("--svg", options->svg, "Draw time against cost of all choices into this file")->type_name("FILE");
  command->add_flag("--spot", options->spot,
                    "Interruptible machines, at their price and with their interruptions, too");
  command->add_flag("--averaging", options->averaging,
                    "With --deadline or --budget: also ranks that exchange the mean of their states every 8 steps, "
                    "which may cost accuracy");
  command->add_flag("--largest-batch", options->largest_batch,
                    "Find the largest batch that fits the memory of each rank, instead of --batch");
  command->add_flag("--json", options->json, "Print JSON, with the timeline of a step");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return plan_command(library, *options); }; });
}

}  // namespace weft::cli
