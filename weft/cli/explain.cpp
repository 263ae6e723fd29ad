// weft explain: where a run's step spends its time and its memory.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/cli/comm_report.h"
#include "weft/cli/command.h"
#include "weft/cli/launched_ranks.h"
#include "weft/cli/memory_timeline.h"
#include "weft/cli/op_profile.h"
#include "weft/cli/options.h"
#include "weft/cli/synthetic.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/graph/signature_key.h"
#include "weft/runtime/collective_kernels.h"
#include "weft/train/arena_limit.h"
#include "weft/train/autotune.h"
#include "weft/train/compile_options.h"
#include "weft/train/data_parallel.h"
#include "weft/train/distributed/rank_runtime.h"
#include "weft/train/distributed/together.h"
#include "weft/train/run_data.h"
#include "weft/train/step.h"
#include "weft/train/step_cache.h"
#include "weft/train/summary.h"
#include "weft/train/virtual_ranks.h"

namespace weft::cli {

namespace {

using nlohmann::ordered_json;
constexpr int kTimelineRows = 24;
constexpr size_t kPeakRows = 12;

struct ExplainOptions {
  std::string run, precision, svg;
  std::optional<std::string> memory_limit, offload, autotune;
  int64_t steps = 10, rows = 20, batch = 0, threads = 0;
  std::vector<std::string> without;
  bool passes = false, memory = false, comm = false, json = false;
};

/// By the names of nodes whose kernel was measured beside others: the times, that of the chosen kernel first.
using Measured = std::map<std::string, std::vector<KernelTime>>;

/// The run's training step, compiled here and timed on synthetic batches.
struct Explained {
  const CompiledStep* compiled = nullptr;
  const CompiledStep* update = nullptr;  // where batches are accumulated; else null
  int64_t batches = 1;                   // per step
  MachineRates rates = {};
  std::vector<OpProfile> nodes = {};
  double step_seconds = 0, floor_seconds = 0;
  std::vector<LiveTensor> at_peak = {};
  Measured measured = {};
  std::vector<CollectiveProfile> collectives = {};  // of one rank of several
};

void add_measured(const CompiledStep& compiled, const TunedBackend& backend, Measured& measured) {
  const KernelTimes chosen = backend.chosen();
  for (const PlannedNode& step : compiled.plan.steps) {
    const auto times = chosen.find(signature_key(signature_of(compiled.graph, step.node)));
    if (times != chosen.end()) measured[compiled.graph.node_name(step.node)] = times->second;
  }
}

/// The table with how much faster each kernel was than the next one, where they were measured.
std::string nodes_table(std::vector<OpProfile> nodes, const Measured& measured, size_t rows) {
  for (OpProfile& node : nodes) {
    const auto found = measured.find(node.name);
    if (found == measured.end() || found->second.size() < 2) continue;
    const std::vector<KernelTime>& times = found->second;
    node.kernel += fmt::format(" ({:.2f} times as fast as {})", times[1].seconds / times[0].seconds, times[1].kernel);
  }
  return profile_table(nodes, rows);
}

ordered_json entries_json(const std::vector<OpProfile>& entries, const Measured& measured = {}) {
  auto rows = ordered_json::array();
  for (const OpProfile& e : entries) {
    ordered_json row = {{"class", e.op_class}};
    if (!e.op.empty()) row.update({{"op", e.op}, {"type", e.dtype}, {"kernel", e.kernel}});
    row.update({{"calls", e.calls},
                {"seconds", e.seconds},
                {"floor_seconds", e.floor_seconds},
                {"memory_floor_seconds", e.memory_floor_seconds},
                {"flops", e.flops},
                {"bytes", e.bytes}});
    if (!e.name.empty()) row["node"] = e.name;
    if (!e.declined.empty()) row["declined"] = e.declined;
    if (const auto times = measured.find(e.name); times != measured.end())
      for (const KernelTime& time : times->second)
        row["measured"].push_back({{"kernel", time.kernel}, {"seconds", time.seconds}});
    rows.push_back(std::move(row));
  }
  return rows;
}

ordered_json rates_json(const MachineRates& rates) {
  const auto arithmetic = [](const ArithmeticRate& rate) {
    return ordered_json{{"flops_per_second", rate.flops_per_second}, {"measured_by", rate.measured_by}};
  };
  auto memory = ordered_json::array();
  for (const MemoryRate& rate : rates.memory) {
    memory.push_back({{"level", rate.level}, {"bytes_per_second", rate.bytes_per_second}});
    if (rate.capacity_bytes < std::numeric_limits<int64_t>::max())
      memory.back()["capacity_bytes"] = rate.capacity_bytes;
  }
  return {{"threads", rates.threads},
          {"f32", arithmetic(rates.f32)},
          {"bf16", arithmetic(rates.bf16)},
          {"memory", memory},
          {"measuring_seconds", rates.measuring_seconds}};
}

ordered_json memory_json(const Explained& explained) {
  const Plan& plan = explained.compiled->plan;
  const Graph& graph = explained.compiled->graph;
  auto timeline = ordered_json::array(), peak = ordered_json::array();
  const std::vector<MemoryBytes> by_use = memory_by_use(graph, plan);
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    const PlannedNode& node = plan.steps[step];
    ordered_json row = {{"node", graph.node_name(node.node)}, {"live_bytes", node.live_bytes}};
    for (const MemoryUse use :
         {MemoryUse::activation, MemoryUse::recomputed, MemoryUse::gradient, MemoryUse::workspace})
      row[std::string(name_of(use))] = by_use[step][static_cast<size_t>(use)];
    timeline.push_back(std::move(row));
  }
  for (const LiveTensor& t : explained.at_peak)
    peak.push_back({{"name", t.name},
                    {"type", t.type},
                    {"use", name_of(t.use)},
                    {"bytes", t.bytes},
                    {"made_by", t.made_by},
                    {"last_read_by", t.last_read_by}});
  const RecomputeReport& again = explained.compiled->recompute;
  return {{"arena_bytes", plan.arena_bytes},
          {"update_arena_bytes", explained.update ? explained.update->plan.arena_bytes : 0},
          {"lower_bound_bytes", plan.lower_bound_bytes},
          {"arena_limit_bytes", plan.arena_limit_bytes},
          {"state_bytes", plan.state_bytes},
          {"batch_bytes", plan.batch_bytes},
          {"recomputed",
           {{"nodes", again.nodes},
            {"flops", again.flops},
            {"all_flops", again.all_flops},
            {"predicted_seconds", again.seconds},
            {"all_predicted_seconds", again.all_seconds}}},
          {"offloaded",
           {{"values", again.offloaded},
            {"bytes", again.offloaded_bytes},
            {"file_bytes", plan.file_bytes},
            {"predicted_seconds", again.offload_seconds}}},
          {"peak_node", graph.node_name(plan.steps[static_cast<size_t>(plan.peak_step)].node)},
          {"at_peak", peak},
          {"timeline", timeline}};
}

ordered_json collectives_json(const std::vector<CollectiveProfile>& collectives) {
  auto rows = ordered_json::array();
  for (const CollectiveProfile& one : collectives)
    rows.push_back({{"tensors", one.tensors},
                    {"kind", one.kind},
                    {"algorithm", one.algorithm},
                    {"bytes", one.bytes},
                    {"starts_at_seconds", one.starts_at},
                    {"predicted_seconds", one.predicted_seconds},
                    {"took_seconds", one.took_seconds},
                    {"start_seconds", one.start_seconds},
                    {"hidden_seconds", one.hidden_seconds},
                    {"wait_seconds", one.wait_seconds}});
  return rows;
}

void print_json(const Explained& explained) {
  auto passes = ordered_json::array();
  for (const auto& pass : explained.compiled->passes)
    passes.push_back({{"pass", pass.pass},
                      {"seconds", pass.seconds},
                      {"nodes_before", pass.nodes_before},
                      {"nodes_after", pass.nodes_after}});
  const ordered_json root = {{"step_seconds", explained.step_seconds},
                             {"floor_seconds", explained.floor_seconds},
                             {"batches_per_step", explained.batches},
                             {"machine", rates_json(explained.rates)},
                             {"classes", entries_json(sum_by_class(explained.nodes))},
                             {"nodes", entries_json(explained.nodes, explained.measured)},
                             {"kernels", entries_json(sum_by_kernel(explained.nodes))},
                             {"collectives", collectives_json(explained.collectives)},
                             {"memory", memory_json(explained)},
                             {"passes", passes}};
  fmt::print("{}\n", root.dump(2));
}

bool is_transfer(const Node& node) { return is_store(node) || is_load(node); }

/// ", measured +12 %", of what `counts` counts over what would run without a limit; nothing where no step was run.
std::string measured_extra(const Explained& explained, bool (*counts)(const Node&)) {
  double counted = 0, extra = 0;
  for (const OpProfile& node : explained.nodes) {
    const Graph& graph = explained.compiled->graph;
    const ValueId value = graph.find_value(node.name);
    const Node* producer = value.valid() ? graph.producer(value) : nullptr;
    if (producer == nullptr) continue;
    if (counts(*producer)) counted += node.seconds;
    if (is_recomputed(*producer) || is_transfer(*producer)) extra += node.seconds;
  }
  if (counted == 0) return "";
  return fmt::format(", measured +{:.0f} %", 100 * counted / (explained.step_seconds - extra));
}

void print_memory(const Explained& explained) {
  const Plan& plan = explained.compiled->plan;
  const Graph& graph = explained.compiled->graph;
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  fmt::print("memory: arena {} (no placement can need less than {}), state {}, batch {}\n\n", bytes(plan.arena_bytes),
             bytes(plan.lower_bound_bytes), bytes(plan.state_bytes), bytes(plan.batch_bytes));
  if (explained.update != nullptr)
    fmt::print("the update after {} batches: arena {}; what follows is of a batch\n\n", explained.batches,
               bytes(explained.update->plan.arena_bytes));
  const RecomputeReport& again = explained.compiled->recompute;
  if (again.nodes > 0)
    fmt::print("{} nodes run twice to save memory: {}FLOP more (+{:.1f} %), predicted +{:.0f} % time{}\n\n",
               again.nodes, human_count(static_cast<double>(again.flops)),
               100 * static_cast<double>(again.flops) / static_cast<double>(again.all_flops - again.flops),
               100 * again.seconds / again.own_seconds(), measured_extra(explained, is_recomputed));
  if (again.offloaded > 0)
    fmt::print(
        "{} activations lie in a file between their uses: {} written and read in each step, {} on the disk, "
        "predicted +{:.0f} % time{}\n\n",
        again.offloaded, bytes(again.offloaded_bytes), bytes(plan.file_bytes),
        100 * again.offload_seconds / again.own_seconds(), measured_extra(explained, is_transfer));
  fmt::print("{}\n", draw_timeline(graph, plan, kTimelineRows));
  const PlannedNode& peak = plan.steps[static_cast<size_t>(plan.peak_step)];
  fmt::print("peak: {} while '{}' ({}) runs, step {}; what stands there:\n", bytes(peak.live_bytes),
             graph.node_name(peak.node), graph.node(peak.node).op->name, plan.peak_step);
  MemoryBytes sums{};
  for (const LiveTensor& t : explained.at_peak) sums[static_cast<size_t>(t.use)] += t.bytes;
  std::string parts;
  for (size_t use = 0; use < kMemoryUses; ++use)
    if (sums[use] > 0)
      parts +=
          fmt::format("{}{} of {}", parts.empty() ? "" : ", ", bytes(sums[use]), name_of(static_cast<MemoryUse>(use)));
  fmt::print("{}\n", parts);
  Table table({{"bytes", Align::right}, {"use"}, {"tensor"}, {"type"}, {"made by"}, {"last read by"}, {"steps"}});
  int64_t rest = 0;
  for (size_t index = 0; index < explained.at_peak.size(); ++index) {
    const LiveTensor& t = explained.at_peak[index];
    if (index < kPeakRows)
      table.add_row({bytes(t.bytes), std::string(name_of(t.use)), t.name, t.type, t.made_by, t.last_read_by,
                     fmt::format("{}-{}", t.first_step, t.last_step)});
    else
      rest += t.bytes;
  }
  if (rest > 0)
    table.add_row({bytes(rest), "", fmt::format("{} more", explained.at_peak.size() - kPeakRows), "", "", "", ""});
  fmt::print("{}", table.text());
}

/// What training measured, beside what was planned; nothing where the run has not ended.
void print_audit(const train::RunDirectory& run) {
  std::error_code code;
  if (!std::filesystem::exists(run.summary(), code)) return;
  const std::optional<train::Summary> summary = train::parse_summary(read_text(run.summary()));
  if (!summary) return;
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  fmt::print("\nin training: arena {} planned, {} allocated; all memory {} planned, {} measured; {:.0f} {}/s\n",
             bytes(summary->planned_peak_bytes), bytes(summary->arena_bytes), bytes(summary->planned_total_bytes),
             bytes(summary->rss_growth_bytes), summary->items_per_second, summary->item);
  if (summary->step_seconds > 0)
    fmt::print("steps waited {} of {} for their batches: {:.2f} %\n", human_duration(summary->input_wait_seconds),
               human_duration(summary->step_seconds), 100 * summary->input_wait_seconds / summary->step_seconds);
  if (summary->damaged_samples > 0) fmt::print("damaged samples passed over: {}\n", summary->damaged_samples);
}

void print_passes(const CompiledStep& compiled) {
  Table table(
      {{"pass"}, {"milliseconds", Align::right}, {"nodes before", Align::right}, {"nodes after", Align::right}});
  for (const passes::PassReport& report : compiled.passes)
    table.add_row({report.pass, fmt::format("{:.2f}", 1e3 * report.seconds), std::to_string(report.nodes_before),
                   std::to_string(report.nodes_after)});
  fmt::print("{}", table.text());
}

/// As in training where nothing says otherwise: what the arena was given then stands in the run's plan.
void keep_to_limit(train::StepCache& steps, const train::RunSpec& spec, const ExplainOptions& options,
                   const train::RunDirectory& run) {
  std::error_code code;
  if (!options.memory_limit && options.batch == 0 && std::filesystem::exists(run.plan(), code)) {
    const auto plan = nlohmann::json::parse(read_text(run.plan()), nullptr, false);
    const int64_t limit = plan.is_object() ? plan.value("arena_limit_bytes", int64_t{0}) : 0;
    if (limit > 0) steps.limit_arena(limit);
    return;
  }
  const Plan& plan = steps.compiled(spec.batch).plan;
  train::keep_to_memory_limit(steps, spec, plan.total_bytes() - plan.arena_bytes);
}

/// The plan alone: no step runs.
void explain_memory(Explained explained, const ExplainOptions& options, const train::RunSpec& spec) {
  const CompiledStep& compiled = *explained.compiled;
  explained.at_peak = live_tensors(compiled.graph, compiled.plan, compiled.plan.peak_step);
  if (options.json)
    fmt::print("{}\n", memory_json(explained).dump(2));
  else
    print_memory(explained);
  if (options.svg.empty()) return;
  const std::string title =
      fmt::format("{}, batch {}, {}: arena {}, states and batch {}", spec.model.name, spec.batch, spec.precision,
                  human_bytes(static_cast<double>(compiled.plan.arena_bytes)),
                  human_bytes(static_cast<double>(compiled.plan.total_bytes() - compiled.plan.arena_bytes)));
  write_atomically(options.svg, draw_memory_svg(compiled.graph, compiled.plan, title));
  say(fmt::format("wrote '{}'", options.svg));
}

/// What the step exchanges, and its update where that has a graph of its own.
std::vector<CollectiveProfile> collectives_of(const Explained& explained, const Profile& profile,
                                              const Profile& update_profile, const passes::Ranks& ranks,
                                              comm::Collectives& collectives) {
  std::vector<CollectiveProfile> all;
  const auto add = [&](const CompiledStep& step, const Profile& of_step) {
    for (CollectiveProfile& one : profile_collectives(step.graph, step.plan, of_step, ranks)) {
      const comm::CollectiveId id = collectives.prepare(reduction_of(signature_of(step.graph, one.node)));
      one.algorithm = collectives.describe(id);
      one.took_seconds = collectives.last_seconds(id);
      all.push_back(std::move(one));
    }
  };
  add(*explained.compiled, profile);
  if (explained.update != nullptr) add(*explained.update, update_profile);
  return all;
}

int explain_command(const train::Library& library, const ExplainOptions& options, comm::Communicator* communicator) {
  const int ranks = train::number_of(communicator);
  const bool is_first = train::is_first(communicator);
  if (options.comm && ranks == 1)
    fail(ErrorKind::usage,
         "--comm explains what several ranks exchange; start them with `mpirun -n 2 weft explain {} "
         "--comm`",
         options.run);
  const auto note = note_of(communicator);
  const train::RunDirectory run = train::RunDirectory::open(options.run);
  train::RunSpec spec = run.read_spec();
  train::choose_threads(spec, options.threads);
  if (options.offload) train::set_field(spec, "offload", *options.offload, "--offload");
  if (options.memory_limit) {
    train::set_field(spec, "memory_limit", *options.memory_limit, "--memory-limit");
    train::resolve(spec);
  }
  const train::DataDescription data = run.read_data();
  train::Stage stage = train::largest_stage(spec, data);
  if (options.batch > 0) stage = {.batch = options.batch, .accumulate = spec.accumulate};
  train::place_of(spec, communicator);  // what cannot be is said first
  if (const int64_t shards = train::shards_of_rank(spec, ranks); spec.virtual_ranks > 0) {
    stage.batch /= shards;
    stage.accumulate = shards;
  }
  spec.batch = stage.batch = batch_of_rank(stage.batch, ranks, "batch");
  spec.accumulate = stage.accumulate;
  const models::ModelInput input = train::model_input(data, stage.shape());
  const train::RankRuntime runtime(communicator, static_cast<int>(spec.threads),
                                   train::agreed_costs(communicator, spec.cluster), spec.virtual_ranks > 0);
  const TunedBackend backend(static_cast<int>(spec.threads), runtime.kernels(library.kernels),
                             options.autotune
                                 ? train::tuning_of(train::parse_autotune(*options.autotune), spec.threads, note)
                                 : train::tuning_of_run(run, note));
  const train::TrainingStep training =
      train::build_training_step(library, spec, input, {.ranks = ranks, .costs = runtime.costs()});
  train::choose_precision(spec, options.precision, backend, note);
  CompileOptions compile_options = train::compile_options(spec, backend);
  auto& disabled = compile_options.passes.disabled;
  disabled.insert(disabled.end(), options.without.begin(), options.without.end());
  compile_options.ranks = runtime.costs();
  compile_options.ranks.may_defer = train::may_defer_updates(spec);
  const std::shared_ptr<Arena> arena = runtime.make_arena();
  train::StepCache steps([&](const train::StepShape&) { return training.graph; }, backend, compile_options, arena);
  train::StepCache update(
      [&](const train::StepShape& shape) { return train::update_graph_for(training, steps.compiled(shape).graph); },
      backend, compile_options, arena);
  const CompiledStep* compiled_update = training.update ? &update.compiled(spec.batch) : nullptr;
  keep_to_limit(steps, spec, options, run);
  const CompiledStep& compiled = steps.compiled(spec.batch);
  train::keep_measured(backend, note);
  if ((options.passes || options.memory || !options.svg.empty()) && !is_first) return 0;
  if (options.passes) {
    print_passes(compiled);
    if (compiled_update != nullptr) fmt::print("\nthe update after {} batches:\n", spec.accumulate);
    if (compiled_update != nullptr) print_passes(*compiled_update);
    return 0;
  }
  if (options.memory || !options.svg.empty()) {
    explain_memory({.compiled = &compiled, .update = compiled_update, .batches = spec.accumulate}, options, spec);
    return 0;
  }
  arena->reserve(std::max(steps.arena_bytes(), update.arena_bytes()));
  train::open_offload_file(*arena, steps, spec, note);
  const int64_t total_bytes = compiled.plan.total_bytes() - compiled.plan.arena_bytes + arena->bytes();
  require_memory(spec.model.name, spec.batch, total_bytes,
                 "explain it with a smaller --batch or on a machine with more");
  State state = train::initial_state(training, static_cast<uint64_t>(spec.seed));
  Executor& executor = steps.executor(spec.batch);
  const SyntheticBatch batch(compiled.graph, input.classes);
  batch.bind(executor);
  SyntheticStep step(executor, training.update ? &update.executor(spec.batch) : nullptr, state, spec.accumulate);
  const MachineRates rates = measure_machine(backend, library.ops.get("matmul"));
  step.run();  // the first step touches all memory for the first time
  std::vector<Profile> profiles(static_cast<size_t>(options.steps)), update_profiles(profiles.size());
  for (size_t count = 0; count < profiles.size(); ++count) step.run(&profiles[count], &update_profiles[count]);
  executor.finish();
  const Profile profile = median_profile(profiles), update_profile = median_profile(update_profiles);

  Explained explained{.compiled = &compiled,
                      .update = compiled_update,
                      .batches = spec.accumulate,
                      .rates = rates,
                      .nodes = profile_nodes(compiled.graph, compiled.plan, profile, rates, spec.accumulate),
                      .at_peak = live_tensors(compiled.graph, compiled.plan, compiled.plan.peak_step)};
  if (compiled_update != nullptr)
    explained.nodes = merged(std::move(explained.nodes),
                             profile_nodes(compiled_update->graph, compiled_update->plan, update_profile, rates));
  add_measured(compiled, backend, explained.measured);
  if (compiled_update != nullptr) add_measured(*compiled_update, backend, explained.measured);
  for (const OpProfile& node : explained.nodes) {
    explained.step_seconds += node.seconds;
    explained.floor_seconds += node.floor_seconds;
  }
  if (!is_first) return 0;
  if (ranks > 1)
    explained.collectives =
        collectives_of(explained, profile, update_profile, compile_options.ranks, *runtime.collectives());
  if (options.json) {
    print_json(explained);
    return 0;
  }
  if (options.comm) {
    fmt::print("{}", collectives_table(explained.collectives, explained.step_seconds, compile_options.ranks));
    return 0;
  }
  const int64_t samples = ranks * spec.accumulate * spec.batch;
  const double rate = static_cast<double>(samples * data.info.items_per_sample()) / explained.step_seconds;
  fmt::print("{}: {} {}batch {}, {}, {}{} threads: {} per step, {:.0f} {}/s ({} steps measured now, medians)\n\n",
             options.run, spec.model.name, spec.accumulate > 1 ? fmt::format("{} times ", spec.accumulate) : "",
             ranks * spec.batch, spec.precision, ranks > 1 ? fmt::format("{} ranks of ", ranks) : "", spec.threads,
             human_duration(explained.step_seconds), rate, data.info.item(), options.steps);
  fmt::print("{}\nfloors, of what each node computes or moves at these rates, add up to {}: {:.0f} % of the step\n\n",
             describe(explained.rates), human_duration(explained.floor_seconds),
             100 * explained.floor_seconds / explained.step_seconds);
  fmt::print("{}\n", class_table(sum_by_class(explained.nodes)));
  fmt::print("{}\n", profile_table(sum_by_kernel(explained.nodes), explained.nodes.size()));
  fmt::print("nodes furthest above their floor:\n{}\n",
             nodes_table(explained.nodes, explained.measured, static_cast<size_t>(options.rows)));
  print_memory(explained);
  print_audit(run);
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action, const train::Library& library) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "Show where a run's step spends its time and its memory");
  command->add_option("RUN", options->run, "Run directory")->required();
  command->add_option("--steps", options->steps, "Steps to measure; default 10")->check(CLI::Range(1, 100000));
  command->add_option("--rows", options->rows, "Nodes to list, those furthest above their floor first; default 20")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--batch", options->batch, "Default: as in training")->check(CLI::Range(1, 65536));
  command->add_option("--threads", options->threads, "Default: as in training")->check(CLI::Range(0, 1024));
  command->add_option("--precision", options->precision, "f32, bf16, f16 or auto; default: as in training");
  command->add_option("--autotune", options->autotune,
                      std::string(train::kAutotuneHelp) + "; off: neither; default: as in training");
  command->add_option("--without", options->without, "Leave this pass out (see `weft graph --list-passes`); repeatable")
      ->allow_extra_args(false);
  CLI::Option* passes =
      command->add_flag("--passes", options->passes, "Only what each pass took and did; runs no step");
  CLI::Option* memory = command->add_flag("--memory", options->memory, "Only the memory of its plan; runs no step");
  memory->excludes(passes);
  command->add_option("--svg", options->svg, "Draw the memory into this file; as --memory, runs no step")
      ->excludes(passes);
  command->add_option("--memory-limit", options->memory_limit, "Such as 1.5GB; default: as in training");
  command->add_option("--offload", options->offload,
                      "Directory for the file of activations that the limit leaves no place for; default: as in "
                      "training");
  command->add_flag("--comm", options->comm, "Only what several ranks exchange: mpirun -n 2 weft explain RUN --comm")
      ->excludes(passes)
      ->excludes(memory);
  command->add_flag("--json", options->json, "Print JSON, every node and pass included")->excludes(passes);
  command->callback([options, &action, &library] {
    action = [options, &library] {
      return on_launched_ranks([&](comm::Communicator* ranks) { return explain_command(library, *options, ranks); });
    };
  });
}

}  // namespace weft::cli
