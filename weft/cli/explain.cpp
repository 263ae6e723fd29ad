// weft explain: where a run's step spends its time and its memory.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/memory_timeline.h"
#include "weft/cli/op_profile.h"
#include "weft/cli/options.h"
#include "weft/cli/synthetic.h"
#include "weft/train/compile_options.h"
#include "weft/train/run_data.h"
#include "weft/train/step.h"
#include "weft/train/step_cache.h"
#include "weft/train/summary.h"

namespace weft::cli {

namespace {

using nlohmann::ordered_json;
constexpr int kTimelineRows = 24;
constexpr size_t kPeakRows = 12;

struct ExplainOptions {
  std::string run, precision;
  int64_t steps = 10, rows = 20, batch = 0, threads = 0;
  std::vector<std::string> without;
  bool passes = false, json = false;
};

/// The run's training step, compiled here and timed on synthetic batches.
struct Explained {
  const CompiledStep* compiled = nullptr;
  const CompiledStep* update = nullptr;  // where batches are accumulated; else null
  int64_t batches = 1;                   // per step
  std::vector<OpProfile> nodes;
  double step_seconds = 0;
  std::vector<LiveTensor> at_peak;
};

ordered_json entries_json(const std::vector<OpProfile>& entries) {
  auto rows = ordered_json::array();
  for (const OpProfile& e : entries) {
    ordered_json row = {{"op", e.op},           {"type", e.dtype},  {"kernel", e.kernel}, {"calls", e.calls},
                        {"seconds", e.seconds}, {"flops", e.flops}, {"bytes", e.bytes}};
    if (!e.name.empty()) row["node"] = e.name;
    if (!e.declined.empty()) row["declined"] = e.declined;
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_json(const Explained& explained) {
  const Plan& plan = explained.compiled->plan;
  const Graph& graph = explained.compiled->graph;
  auto timeline = ordered_json::array(), peak = ordered_json::array(), passes = ordered_json::array();
  for (const PlannedNode& node : plan.steps)
    timeline.push_back({{"node", graph.node_name(node.node)}, {"live_bytes", node.live_bytes}});
  for (const LiveTensor& t : explained.at_peak)
    peak.push_back({{"name", t.name},
                    {"type", t.type},
                    {"bytes", t.bytes},
                    {"made_by", t.made_by},
                    {"last_read_by", t.last_read_by}});
  for (const auto& pass : explained.compiled->passes)
    passes.push_back({{"pass", pass.pass},
                      {"seconds", pass.seconds},
                      {"nodes_before", pass.nodes_before},
                      {"nodes_after", pass.nodes_after}});
  const ordered_json root = {{"step_seconds", explained.step_seconds},
                             {"batches_per_step", explained.batches},
                             {"nodes", entries_json(explained.nodes)},
                             {"kernels", entries_json(sum_by_kernel(explained.nodes))},
                             {"memory",
                              {{"arena_bytes", plan.arena_bytes},
                               {"update_arena_bytes", explained.update ? explained.update->plan.arena_bytes : 0},
                               {"lower_bound_bytes", plan.lower_bound_bytes},
                               {"state_bytes", plan.state_bytes},
                               {"batch_bytes", plan.batch_bytes},
                               {"peak_node", graph.node_name(plan.steps[static_cast<size_t>(plan.peak_step)].node)},
                               {"at_peak", peak},
                               {"timeline", timeline}}},
                             {"passes", passes}};
  fmt::print("{}\n", root.dump(2));
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
  fmt::print("{}\n", draw_timeline(graph, plan, kTimelineRows));
  const PlannedNode& peak = plan.steps[static_cast<size_t>(plan.peak_step)];
  fmt::print("peak: {} while '{}' ({}) runs, step {}; what stands there:\n", bytes(peak.live_bytes),
             graph.node_name(peak.node), graph.node(peak.node).op->name, plan.peak_step);
  Table table({{"bytes", Align::right}, {"tensor"}, {"type"}, {"made by"}, {"last read by"}});
  int64_t rest = 0;
  for (size_t index = 0; index < explained.at_peak.size(); ++index) {
    const LiveTensor& t = explained.at_peak[index];
    if (index < kPeakRows)
      table.add_row({bytes(t.bytes), t.name, t.type, t.made_by, t.last_read_by});
    else
      rest += t.bytes;
  }
  if (rest > 0) table.add_row({bytes(rest), fmt::format("{} more", explained.at_peak.size() - kPeakRows), "", "", ""});
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

int explain_command(const train::Library& library, const ExplainOptions& options) {
  const train::RunDirectory run = train::RunDirectory::open(options.run);
  train::RunSpec spec = run.read_spec();
  train::choose_threads(spec, options.threads);
  if (options.batch > 0) spec.batch = options.batch;
  const train::DataDescription data = run.read_data();
  const models::ModelInput input = train::model_input(data, spec.batch);
  const CpuBackend backend(static_cast<int>(spec.threads), library.kernels);
  const train::TrainingStep training = train::build_training_step(library, spec, input);
  train::choose_precision(spec, options.precision, backend, say);
  CompileOptions compile_options = train::compile_options(spec, backend);
  compile_options.passes.disabled = options.without;
  train::StepCache steps([&](int64_t) { return training.graph; }, backend, compile_options);
  const CompiledStep& compiled = steps.compiled(spec.batch);
  train::StepCache update([&](int64_t) { return train::update_graph_for(training, compiled.graph); }, backend,
                          compile_options);
  const CompiledStep* compiled_update = training.update ? &update.compiled(spec.batch) : nullptr;
  if (options.passes) {
    print_passes(compiled);
    if (compiled_update != nullptr) fmt::print("\nthe update after {} batches:\n", spec.accumulate);
    if (compiled_update != nullptr) print_passes(*compiled_update);
    return 0;
  }
  require_memory(spec.model.name, spec.batch, compiled.plan.total_bytes() + update.arena_bytes(),
                 "explain it with a smaller --batch or on a machine with more");
  State state = train::initial_state(training, static_cast<uint64_t>(spec.seed));
  Executor& executor = steps.executor(spec.batch);
  executor.bind_state(state);
  const SyntheticBatch batch(compiled.graph, input.classes);
  batch.bind(executor);
  if (training.update) update.executor(spec.batch).bind_state(state);
  SyntheticStep step(executor, training.update ? &update.executor(spec.batch) : nullptr, spec.accumulate);
  step.run();  // the first step touches all memory for the first time
  Profile profile, update_profile;
  for (int64_t count = 0; count < options.steps; ++count) step.run(&profile, &update_profile);

  Explained explained{.compiled = &compiled,
                      .update = compiled_update,
                      .batches = spec.accumulate,
                      .nodes = profile_nodes(compiled.graph, compiled.plan, profile, spec.accumulate),
                      .at_peak = live_tensors(compiled.graph, compiled.plan, compiled.plan.peak_step)};
  if (compiled_update != nullptr)
    explained.nodes = merged(std::move(explained.nodes),
                             profile_nodes(compiled_update->graph, compiled_update->plan, update_profile));
  for (const OpProfile& node : explained.nodes) explained.step_seconds += node.seconds;
  if (options.json) {
    print_json(explained);
    return 0;
  }
  const int64_t samples = spec.accumulate * spec.batch;
  const double rate = static_cast<double>(samples * data.info.items_per_sample()) / explained.step_seconds;
  fmt::print("{}: {} {}batch {}, {}, {} threads: {} per step, {:.0f} {}/s ({} steps measured now)\n\n", options.run,
             spec.model.name, spec.accumulate > 1 ? fmt::format("{} times ", spec.accumulate) : "", spec.batch,
             spec.precision, spec.threads, human_duration(explained.step_seconds), rate, data.info.item(),
             options.steps);
  fmt::print("{}\n", profile_table(sum_by_kernel(explained.nodes), explained.nodes.size()));
  fmt::print("slowest nodes:\n{}\n", profile_table(explained.nodes, static_cast<size_t>(options.rows)));
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
  command->add_option("--rows", options->rows, "Slowest nodes to list; default 20")->check(CLI::Range(1, 1000000));
  command->add_option("--batch", options->batch, "Default: as in training")->check(CLI::Range(1, 65536));
  command->add_option("--threads", options->threads, "Default: as in training")->check(CLI::Range(0, 1024));
  command->add_option("--precision", options->precision, "f32, bf16, f16 or auto; default: as in training");
  command->add_option("--without", options->without, "Leave this pass out (see `weft graph --list-passes`); repeatable")
      ->allow_extra_args(false);
  CLI::Option* passes =
      command->add_flag("--passes", options->passes, "Only what each pass took and did; runs no step");
  command->add_flag("--json", options->json, "Print JSON, every node and pass included")->excludes(passes);
  command->callback(
      [options, &action, &library] { action = [options, &library] { return explain_command(library, *options); }; });
}

}  // namespace weft::cli
