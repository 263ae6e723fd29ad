// weft simulate: steps and whole runs on a cluster of a file, up to thousands of ranks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/forecast/simulate_memory.h"
#include "weft/cli/forecast/simulate_report.h"
#include "weft/cli/forecast/simulated_timeline.h"
#include "weft/cli/real_number.h"
#include "weft/cli/recipe_input.h"
#include "weft/simulate/graph_step.h"
#include "weft/simulate/trace.h"

namespace weft::cli {

namespace {

constexpr const char* kTransformer = "transformer";
constexpr int64_t kUsualBatch = 32;  // of a rank

struct SimulateOptions {
  ModelChoice choice;
  std::string cluster, strategy, shape, bucket, exchange = "f32", trace, picture, checkpoint_interval;
  int ranks = 0;
  bool tf32 = false, unequal = false, json = false, as_others = false, spot = false;
  std::vector<std::string> without;
  double calibration = 1, weeks = 0, device_hours = 0;
  int64_t batch = 0, steps = 0, seed = 0;
  std::string not_of_shapes;  // the error where an option was given that a transformer of --shape does not have
};

/// An option of models that are graphs, and what a transformer of --shape has in its place.
struct GraphOption {
  CLI::Option* option;
  const char* next_step;
};

std::string why_not_of_shapes(const std::vector<GraphOption>& all) {
  for (const auto& [option, next_step] : all)
    if (option->count() > 0)
      return fmt::format("{} is not for the model '{}'; {}", option->get_name(), kTransformer, next_step);
  return "";
}

int64_t parse_bucket(const std::string& bucket) {
  if (bucket.empty()) return 0;
  if (bucket == "none") return 1;
  const std::optional<int64_t> bytes = parse_bytes(bucket);
  if (!bytes) fail(ErrorKind::usage, "--bucket {}: write bytes as 25MB, or none", bucket);
  return *bytes;
}

double exchange_factor_of(const std::string& exchange) {
  if (exchange == "f32") return 1;
  if (exchange == "f16" || exchange == "bf16") return 0.5;
  fail(ErrorKind::usage, "--exchange {}: gradients travel as f32, f16 or bf16", exchange);
}

/// A model of the zoo or a recipe, whose ranks share a batch.
void simulate_graph(const Library& library, const SimulateOptions& options, const machines::ClusterFile& cluster,
                    SimulationReport& report) {
  // Keys of a recipe hold what a rank computes; the batch of all ranks may be larger than any of them takes.
  ModelChoice choice = options.choice;
  if (options.batch > 0) choice.batch = std::max<int64_t>(1, options.batch / report.ranks);
  spec::RunSpec spec = spec_of(library, choice, kUsualBatch);
  if (const std::string key = simulate::unsimulated_key(spec); !key.empty())
    fail(ErrorKind::usage,
         "{} is not simulated: the step would look like one without it; `weft plan {} --cluster {} --ranks {} --set "
         "{}` says what it takes",
         key, choice.model, options.cluster, report.ranks, key);
  RecipeInput found = input_of_recipe(library, choice, spec);
  const bool is_recipe = names_recipe(library, options.choice.model);
  const int64_t whole = options.batch > 0 ? options.batch : is_recipe ? spec.batch : spec.batch * report.ranks;
  if (!found.note.empty()) say(found.note);
  report.model = spec.model.name;
  report.batch = whole * std::max<int64_t>(1, spec.accumulate);
  report.batches = static_cast<int>(std::max<int64_t>(1, spec.accumulate));
  const int ranks = report.ranks;
  simulate::GraphStepOptions step_options{
      .ranks = ranks,
      .roofline = {.uses_tf32 = options.tf32, .calibration = {options.calibration, options.calibration}},
      .bucket_bytes = parse_bucket(options.bucket),
      .bytes_factor = exchange_factor_of(options.exchange),
      .defers_updates = !options.as_others,
      .gathers_rows = !options.as_others,
      .without = options.without};
  // Ranks of one rate and one part of the batch do the same.
  std::vector<double> speeds;
  for (int rank = 0; rank < ranks; ++rank) speeds.push_back(cluster.speed_of(rank));
  if (whole < ranks)
    fail(ErrorKind::usage, "a batch of {} leaves some of {} ranks without a sample; choose --batch {} or more", whole,
         ranks, ranks);
  std::vector<int64_t> parts(speeds.size(), whole / ranks);
  if (options.unequal)
    parts = simulate::unequal_shares(whole, speeds);
  else if (whole % ranks != 0)
    fail(ErrorKind::usage, "a batch of {} does not divide among {} ranks; choose --batch {}, or --unequal-shares",
         whole, ranks, (whole / ranks + 1) * ranks);
  std::map<std::pair<double, int64_t>, int> kinds;
  for (size_t rank = 0; rank < speeds.size(); ++rank) ++kinds[{speeds[rank], parts[rank]}];
  const auto compiled = [&](int64_t batch, int count) {
    spec::RunSpec own = spec;
    own.batch = found.input.batch = batch;
    simulate::GraphStepOptions own_options = step_options;
    own_options.ranks = count;
    return simulate::compile_for(library, own, found.input, cluster, own_options);
  };
  // All ranks run one program, since its collectives must agree. What a rank with another part of the batch computes
  // takes as much longer as a step of that part alone.
  const int64_t even = whole / ranks;
  const simulate::GraphStep step = compiled(even, ranks), alone = compiled(even, 1);
  std::map<int64_t, double> lengths = {{even, 1}};
  std::vector<simulate::RankClass> classes;
  const double straggling = simulate::straggler_factor(cluster.stragglers, ranks, static_cast<uint64_t>(options.seed));
  for (const auto& [kind, count] : kinds) {
    const auto [speed, batch] = kind;
    if (!lengths.contains(batch))
      lengths[batch] = compiled(batch, 1).program.seconds_of(report.batches) / alone.program.seconds_of(report.batches);
    classes.push_back({.name = fmt::format("{} rank{} of batch {}", count, count == 1 ? "" : "s", batch),
                       .count = count,
                       .program = &step.program,
                       .factor = straggling * lengths.at(batch) / speed});
  }
  report.parameters = step.parameters;
  report.program = step.program;
  report.step = simulate::simulate_step(
      classes, cluster, {.ranks = ranks, .batches = report.batches, .bytes_factor = step_options.bytes_factor});
  report.seconds = report.step.seconds;
  report.busy_seconds = report.step.compute_seconds;
  report.bytes_sent = report.step.link_bytes;
  report.flops = report.program.flops * ranks * report.batches;
  const int64_t largest = *std::max_element(parts.begin(), parts.end());
  report.memory_bytes = (largest == even ? step : compiled(largest, ranks)).program.total_bytes();
  report.state_bytes = report.program.state_bytes;
  // Linear: what the ranks would do if each ran as one of its rate does alone, on its part of the batch.
  double rates = 0;
  for (const double speed : speeds) rates += speed;
  const double batch_of_one = static_cast<double>(even) * report.batches;
  report.of_linear = static_cast<double>(report.batch) / report.seconds /
                     (ranks * batch_of_one / alone.program.seconds_of(report.batches));
  report.speed_share = rates / ranks;
  if (!report.fits())
    report.next_step = least_memory_text(library,
                                         {.name = choice.model,
                                          .cluster = options.cluster,
                                          .spec = spec,
                                          .input = found.input,
                                          .batch = whole,
                                          .ranks = ranks},
                                         cluster);
}

void simulate_shape(const SimulateOptions& options, const machines::ClusterFile& cluster, SimulationReport& report) {
  if (!options.not_of_shapes.empty()) fail(ErrorKind::usage, "{}", options.not_of_shapes);
  const simulate::TransformerShape shape = simulate::parse_shape(options.shape);
  const int64_t batch = options.batch > 0 ? options.batch : kUsualBatch * report.ranks;
  const simulate::Strategy strategy = simulate::parse_strategy(options.strategy, report.ranks, batch);
  const double factor = simulate::slowest_factor(cluster, report.ranks, static_cast<uint64_t>(options.seed));
  report.transformer =
      simulate::simulate_transformer(shape, strategy, cluster, {options.calibration, options.calibration}, factor);
  const simulate::TransformerStep& step = *report.transformer;
  report.model = kTransformer;
  report.strategy = simulate::describe(strategy);
  report.hosts_per_replica =
      std::max(1, strategy.tensor * strategy.pipeline * strategy.context / cluster.devices_per_host);
  report.batch = strategy.batch;
  report.tokens_per_sample = shape.sequence;
  report.parameters = shape.parameters();
  report.seconds = step.seconds;
  report.busy_seconds = step.busy_seconds;
  report.bytes_sent = step.exchanged_bytes + step.pipeline_bytes;
  report.flops = step.flops;
  report.memory_bytes = step.memory.total();
  report.state_bytes = step.memory.states;
  report.next_step = "divide it further by --strategy's tensor, pipeline, zero or recompute, or choose a smaller batch";
}

void require_failures(const SimulateOptions& options, const machines::ClusterFile& cluster) {
  const machines::Failures& failures = cluster.failures;
  if (options.spot) machines::require_interruptions(cluster);
  if (failures.per_device_hour > 0 || (options.spot && failures.spot_interruptions_per_host_hour.value_or(0) > 0))
    return;
  fail(ErrorKind::usage,
       "--{}: failures.per_device_hour is missing in '{}', so that nothing would ever fail; write it there, such as "
       "2e-5: one in 50,000 device-hours",
       options.weeks > 0 ? "weeks" : "device-hours", cluster.file);
}

void simulate_failures(const SimulateOptions& options, const machines::ClusterFile& cluster, SimulationReport& report) {
  if (options.weeks <= 0 && options.device_hours <= 0) return;
  const int hosts = std::max(1, report.ranks / cluster.devices_per_host);
  const double all_states = report.transformer ? 14 * report.parameters : report.state_bytes;
  const double writing = all_states / (hosts * cluster.failures.checkpoint_bytes_per_second);
  report.run_model = {
      .hosts = hosts,
      .devices_per_host = std::min(report.ranks, cluster.devices_per_host),
      .hosts_per_replica = report.hosts_per_replica,
      .failures_per_device_hour = cluster.failures.per_device_hour,
      .interruptions_per_host_hour = options.spot ? cluster.failures.spot_interruptions_per_host_hour.value_or(0) : 0,
      .restart_seconds = cluster.failures.restart_seconds,
      .repair_seconds = cluster.failures.repair_seconds,
      .checkpoint_seconds = writing,
      .restore_seconds = writing};
  double usual = 3600;
  if (!options.checkpoint_interval.empty()) {
    const std::optional<double> parsed = parse_duration(options.checkpoint_interval);
    if (!parsed) fail(ErrorKind::usage, "--checkpoint-interval {}: write such as 30m", options.checkpoint_interval);
    usual = *parsed;
  }
  const double hours = options.device_hours > 0 ? options.device_hours : options.weeks * 7 * 24 * report.ranks;
  report.campaign_device_hours = hours;
  report.campaign = simulate::campaign(report.run_model, hours, usual, static_cast<uint64_t>(options.seed));
}

int simulate_command(const Library& library, const SimulateOptions& options) {
  const machines::ClusterFile cluster = machines::read_cluster(options.cluster);
  SimulationReport report;
  report.cluster = cluster;
  report.ranks = options.ranks > 0 ? options.ranks : cluster.ranks();
  if (report.ranks > cluster.ranks())
    fail(ErrorKind::usage, "--ranks {}: cluster '{}' has {} hosts of {} devices; write more hosts into its file",
         report.ranks, cluster.name, cluster.hosts, cluster.devices_per_host);
  if (report.ranks > cluster.devices_per_host && report.ranks % cluster.devices_per_host != 0)
    fail(ErrorKind::usage, "--ranks {}: take whole hosts, a multiple of {}", report.ranks, cluster.devices_per_host);
  report.steps = options.steps;
  report.is_spot = options.spot;
  if (options.spot && cluster.price.spot_per_host_hour <= 0)
    fail(ErrorKind::usage, "--spot: cluster '{}' has no price.spot_per_host_hour; write one into its file",
         cluster.name);
  if (options.weeks > 0 || options.device_hours > 0) require_failures(options, cluster);
  if (options.choice.model == kTransformer) {
    simulate_shape(options, cluster, report);
  } else {
    if (!options.strategy.empty() || !options.shape.empty())
      fail(ErrorKind::usage, "--strategy and --shape are for the model '{}'; strategies of recipes are keys of theirs",
           kTransformer);
    simulate_graph(library, options, cluster, report);
  }
  simulate_failures(options, cluster, report);
  const simulate::TaskGraph& tasks = report.transformer ? report.transformer->tasks : report.step.tasks;
  const std::vector<simulate::Span>& spans = report.transformer ? report.transformer->spans : report.step.spans;
  if (!options.trace.empty()) write_atomically(options.trace, simulate::chrome_trace(tasks, spans, report.title()));
  if (!options.picture.empty())
    write_atomically(options.picture, plot::draw_svg(simulated_timeline(tasks, spans, report.title())));
  fmt::print("{}\n", options.json ? report.json() : report.text());
  if (!options.trace.empty()) say(fmt::format("trace written to '{}': open it in ui.perfetto.dev", options.trace));
  if (!options.picture.empty()) say(fmt::format("timeline drawn in '{}'", options.picture));
  if (report.fits()) return 0;
  say(report.why_not());
  return 1;
}

}  // namespace

void add_simulate(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "Simulate steps and runs on a cluster that a file describes");
  command->add_option("MODEL", options->choice.model, "Model, recipe, or 'transformer' with --shape")
      ->type_name("MODEL|RECIPE|FILE")
      ->required();
  command->add_option("--cluster", options->cluster, "Cluster file, or the name of one that comes with weft")
      ->type_name("FILE|NAME")
      ->required();
  command->add_option("--ranks", options->ranks, "Default: all devices of the cluster")->check(CLI::Range(1, 1000000));
  command->add_option("--batch", options->batch, "Samples per step, of all ranks; default 32 for each, or the recipe's")
      ->check(CLI::Range(1, 100000000));
  const std::vector<GraphOption> of_graphs = {
      {command->add_option("--input", options->choice.input,
                           "C,H,W of one image, or T tokens; default: the model's own"),
       "write sequence=1024 into --shape"},
      {command->add_option("--classes", options->choice.classes, "Or the vocabulary")->check(CLI::Range(1, 100000000)),
       "write vocabulary=51200 into --shape"},
      {command->add_option("--precision", options->choice.precision, "f32 (default), bf16, f16, or auto"),
       "write arithmetic=f16 into --strategy: f32, tf32, f16, bf16 (default), f8 or i8"},
      {command->add_option("--set", options->choice.set, "Any key of a recipe; repeatable")
           ->type_name("KEY=VALUE")
           ->allow_extra_args(false),
       "write its sizes into --shape, and how ranks divide it into --strategy"},
      {command->add_flag("--tf32", options->tf32, "Products of f32 in tf32, where the device has it"),
       "write arithmetic=tf32 into --strategy"},
      {command->add_option("--exchange", options->exchange, "What gradients travel as: f32 (default), f16 or bf16"),
       "write gradient-bytes=2 into --strategy: 4 (default) for f32"},
      {command->add_option(
           "--bucket", options->bucket,
           "Of gradients that ranks reduce together: such as 25MB, or none; default: as is predicted best"),
       "leave it away: each layer's gradients are reduced together"},
      {command
           ->add_option("--without", options->without,
                        "Leave this pass out (see `weft graph --list-passes`); repeatable")
           ->type_name("PASS")
           ->allow_extra_args(false),
       "leave it away: it is not compiled, so that no pass runs"},
      {command->add_flag("--reduce-all", options->as_others,
                         "All gradients are reduced, and waited for before the update, as most frameworks do"),
       "leave it away: its gradients always are"},
      {command->add_flag("--unequal-shares", options->unequal, "Faster ranks get more of the batch"),
       "leave it away: all of its ranks get as much of the batch"}};
  command->add_option("--shape", options->shape, "Of a transformer: layers=24,hidden=1024,heads=16,sequence=1024...");
  command->add_option("--strategy", options->strategy, "Of a transformer: tensor=8,pipeline=4,micro-batch=1,zero=1...");
  command
      ->add_option("--calibration", options->calibration,
                   "What nodes take of the time that the device file gives; default 1")
      ->check(real_number_in(0.01, 100));
  command->add_option("--steps", options->steps, "Of a run: prints its hours, energy and price")
      ->check(CLI::Range(1, 2000000000));
  command->add_option("--weeks", options->weeks, "Of a run with failures")->check(real_number_in(0, 520));
  command->add_option("--device-hours", options->device_hours, "The same, counted over all devices")
      ->check(real_number_in(0, 1e10));
  command->add_flag("--spot", options->spot, "Spot machines: their price, and their interruptions among the failures");
  command->add_option("--checkpoint-interval", options->checkpoint_interval,
                      "Of the run beside which the best interval is set; default 1h");
  command->add_option("--seed", options->seed, "Of stragglers and failures; default 0");
  command->add_option("--trace", options->trace, "Writes the timeline, for Perfetto")->type_name("FILE");
  command->add_option("--svg", options->picture, "Draws the timeline")->type_name("FILE");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, of_graphs, &action, &library] {
    options->not_of_shapes = why_not_of_shapes(of_graphs);
    action = [options, &library] { return simulate_command(library, *options); };
  });
}

}  // namespace weft::cli
