// weft bench: how fast a model's step runs here, on synthetic input.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/cli/real_number.h"
#include "weft/cli/recipe_input.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/graph/accumulation.h"
#include "weft/graph/collective.h"
#include "weft/launch/launched_ranks.h"
#include "weft/plan/counted_work.h"
#include "weft/program/arena_limit.h"
#include "weft/program/autotune.h"
#include "weft/program/planned_step.h"
#include "weft/program/process_memory.h"
#include "weft/report/rank_report.h"
#include "weft/report/shared_states.h"
#include "weft/report/work_report.h"
#include "weft/step/data_parallel.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/sharded_states.h"
#include "weft/step/virtual_ranks.h"

namespace weft::cli {

namespace {

constexpr int kWarmupSteps = 3;
constexpr int kFewestSteps = 5;

struct BenchOptions {
  ModelChoice choice;
  std::vector<std::string> without;
  std::string autotune = "off";
  std::string bucket;
  bool forward = false, plan_only = false, json = false;
  double seconds = 5;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// At least kFewestSteps steps, then as many as fit into `seconds`. Ranks end with the step in which the first of them
/// wants to, which the step tells all of them.
std::vector<double> time_steps(program::RunningStep& step, double seconds) {
  Executor& executor = step.last();
  const bool agrees = executor.has_scalar(step::kStop);
  for (int warmup = 0; warmup < kWarmupSteps; ++warmup) step.run();
  std::vector<double> times;
  double spent = 0;
  for (bool stops = false; !stops;) {
    const bool is_enough = spent >= seconds && times.size() + 1 >= kFewestSteps;
    if (agrees) executor.set_scalar(step::kStop, is_enough ? 1 : 0);
    const auto begin = std::chrono::steady_clock::now();
    step.run();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    spent += times.back();
    stops = agrees ? executor.scalar_output(step::kStop) > 0 : spent >= seconds && times.size() >= kFewestSteps;
  }
  step.finish();
  return times;
}

/// What such data would be: it knows what a rate counts.
data::DatasetInfo info_of(const Graph& graph, const models::ModelInput& input) {
  data::DatasetInfo info;
  info.sample_shape = Shape(input.shape);
  info.sample_dtype = graph.find_input("tokens") != nullptr ? DType::i32
                      : info.sample_shape.rank() == 3       ? DType::u8
                                                            : DType::f32;
  return info;
}

int64_t bucket_bytes_of(const std::string& bucket) {
  if (bucket.empty()) return 0;
  if (bucket == "none") return 1;
  const std::optional<int64_t> bytes = parse_bytes(bucket);
  if (!bytes || *bytes < 1) fail(ErrorKind::usage, "--bucket {}: write bytes as 25MB, or none", bucket);
  return *bytes;
}

struct ExchangedBytes {
  int64_t reduced = 0, gathered = 0;
};

/// Of one run of the step, which completes sums over several or does not.
ExchangedBytes exchanged_bytes_of(const Graph& graph, bool completes) {
  const std::vector<bool> is_completing = find_completing(graph);
  ExchangedBytes bytes;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    if (find_collective(node) == nullptr || is_collective_wait(node) || (is_completing[index] && !completes)) continue;
    const bool gets_parts = is_gather(node) || node.op->name == kAllToAll;
    for (const ValueId input : node.inputs) (gets_parts ? bytes.gathered : bytes.reduced) += graph.type(input).bytes();
  }
  return bytes;
}

/// What a report is about, whether steps ran or not.
struct Benched {
  const spec::RunSpec& spec;
  const models::ModelInput& input;
  const CompiledStep& compiled;
  DeviceIdentity identity;
  std::string costs;              // where the figures are from by which it was planned
  std::string input_source = {};  // likewise of the shape
  int64_t batch = 1;              // of all ranks
  int64_t batches = 1;            // per step
  int ranks = 1;
  bool forward = false;
  CountedWork work = {};
  int64_t total_bytes = 0;
  int64_t graph_and_kernel_bytes = 0;  // beside them, estimated
  int64_t reduced_bytes = 0;           // over the ranks, in each step, of this one's operands
  int64_t gathered_bytes = 0;          // from the ranks, likewise
  std::string pipeline = {};           // lines about each rank of one

  std::string title() const {
    return fmt::format("{} {} {}, {}batch {}, {}, {}{} threads", spec.model.name, to_string(Shape(input.shape)),
                       forward ? "forward" : "training", batches > 1 ? fmt::format("{} times ", batches) : "", batch,
                       spec.precision, ranks > 1 ? fmt::format("{} ranks of ", ranks) : "", spec.threads);
  }
  nlohmann::ordered_json json() const {
    auto passes = nlohmann::ordered_json::array();
    for (const passes::PassReport& pass : compiled.passes)
      passes.push_back({{"pass", pass.pass},
                        {"seconds", pass.seconds},
                        {"nodes_before", pass.nodes_before},
                        {"nodes_after", pass.nodes_after}});
    return {{"model", spec.model.name},
            {"input", input.shape},
            {"input_from", input_source},
            {"classes", input.classes},
            {"batch", batch},
            {"batches_per_step", batches},
            {"precision", spec.precision},
            {"ranks", ranks},
            {"threads", spec.threads},
            {"mode", forward ? "forward" : "training"},
            {"isa", identity.instructions},
            {identity.library, identity.library_version},
            {"costs", costs},
            {"flops_per_step", work.flops},
            {"reduced_bytes", reduced_bytes},
            {"gathered_bytes", gathered_bytes},
            {"planned_peak_bytes", compiled.plan.arena_bytes},
            {"planned_total_bytes", total_bytes},
            {"graph_and_kernel_bytes", graph_and_kernel_bytes},
            {"recomputed_nodes", compiled.recompute.nodes},
            {"recomputed_flops", batches * compiled.recompute.flops},
            {"offloaded_bytes", batches * compiled.recompute.offloaded_bytes},
            {"compile_seconds", compiled.compile_seconds},
            {"passes", passes},
            {"work", report::work_json(work)}};
  }
};

void print_input(const Benched& benched) {
  fmt::print("input {} and {} classes: from {}\n", to_string(Shape(benched.input.shape)), benched.input.classes,
             benched.input_source);
}

void print_recompute(const Benched& benched) {
  const std::string twice = program::describe_recompute(benched.compiled, benched.spec);
  if (!twice.empty()) fmt::print("{}\n", twice);
  const std::string offloaded = program::describe_offload(benched.compiled, benched.spec);
  if (!offloaded.empty()) fmt::print("{}\n", offloaded);
}

int print_plan(const Benched& benched, bool json) {
  if (json) {
    fmt::print("{}\n", benched.json().dump(2));
    return 0;
  }
  fmt::print("{}: planned in {}\n", benched.title(), human_duration(benched.compiled.compile_seconds));
  print_input(benched);
  print_recompute(benched);
  fmt::print("costs of nodes in this plan: {}\n", benched.costs);
  fmt::print("{}{}{}", benched.pipeline, report::shared_states_text(benched.compiled.graph),
             report::work_table(benched.work));
  return 0;
}

/// `input_source` becomes where the shape is from.
program::StepChoice choose_step(const Library& library, const BenchOptions& options, comm::Communicator* communicator,
                                const program::Note& note, std::string& input_source) {
  spec::RunSpec spec = spec_of(library, options.choice, 16);
  step::require_sharers(spec, comm::number_of(communicator),
                        {.command = fmt::format("weft bench {} ...", quoted_for_shell(options.choice.model))});
  const int ranks = step::data_ranks(spec, comm::number_of(communicator));
  step::place_of(spec, communicator);  // what cannot be is said first
  RecipeInput found = input_of_recipe(library, options.choice, spec);
  if (!found.note.empty() && note) note(found.note);
  input_source = found.source;
  const int64_t shards = step::shards_of_rank(spec, ranks);
  spec.batch = found.input.batch = spec.balance.grains > 0
                                       ? step::samples_at_a_time(spec, spec.batch, ranks)
                                       : launch::batch_of_rank(spec.batch / shards, ranks, "--batch");
  const program::Autotune autotune = program::parse_autotune(options.autotune);
  return {
      .spec = spec,
      .input = std::move(found.input),
      .batches = options.forward ? 1 : std::max(shards, spec.accumulate),
      .forward = options.forward,
      .without = options.without,
      .bucket_bytes = bucket_bytes_of(options.bucket),
      .tuning = [=, &library](int64_t threads) { return program::tuning_of(library.device, autotune, threads, note); },
      .limit = [spec](program::StepCache& steps,
                      int64_t other_bytes) { program::keep_to_memory_limit(steps, spec, other_bytes); },
      .where_too_large = "choose a smaller --batch or --input"};
}

/// Of all that a step of this rank does.
Benched work_of(program::PlannedStep& planned, int ranks) {
  const program::StepChoice& choice = planned.choice();
  const CompiledStep& compiled = planned.compiled();
  const int64_t batches = choice.batches;
  Benched benched{.spec = planned.spec(),
                  .input = choice.input,
                  .compiled = compiled,
                  .identity = planned.device().identity(),
                  .costs = planned.costs().describe(),
                  .batch = step::data_ranks(planned.spec(), ranks) * planned.spec().batch,
                  .batches = batches,
                  .ranks = ranks,
                  .forward = choice.forward};
  benched.work.add(count_work_of_part(compiled.graph, compiled.plan), batches - 1);
  benched.work.add(count_work(compiled.graph, compiled.plan), 1);
  const auto exchange = [&](const Graph& graph, bool completes, int64_t times) {
    const ExchangedBytes bytes = exchanged_bytes_of(graph, completes);
    benched.gathered_bytes += times * bytes.gathered;
    benched.reduced_bytes += times * bytes.reduced;
  };
  exchange(compiled.graph, /*completes=*/false, batches - 1);
  exchange(compiled.graph, /*completes=*/true, 1);
  benched.total_bytes = planned.total_bytes();
  benched.graph_and_kernel_bytes = planned.graph_and_kernel_bytes();
  if (const CompiledStep* update = planned.compiled_update()) {  // after which the states are bound again, once
    benched.work.add(count_work(update->graph, update->plan), 1);
    benched.work.add(count_work_when_bound(compiled.graph, compiled.plan), 1);
    benched.work.kernels_when_bound.clear();
    exchange(update->graph, /*completes=*/true, 1);
  }
  return benched;
}

int bench_command(const Library& library, const BenchOptions& options, comm::Communicator* communicator) {
  const bool is_first = comm::is_first(communicator);
  const auto note = launch::note_of(communicator);
  const program::MemoryGrowth growth;
  std::string input_source;
  const program::PlannedOnRanks planned = program::plan_on_ranks(
      library, communicator, note, [&] { return choose_step(library, options, communicator, note, input_source); });
  Benched benched = work_of(*planned.step, comm::number_of(communicator));
  benched.input_source = input_source;
  benched.pipeline = report::report_ranks(*planned.step, communicator).text;
  if (options.plan_only) return is_first ? print_plan(benched, options.json) : 0;
  comm::on_all_ranks(communicator, "memory of the step", [&] { planned.step->require_memory(note); });
  growth.restart_peak();
  program::RunningStep step(*planned.step);
  const std::vector<double> times = time_steps(step, options.seconds);
  int64_t grown = 0, code = 0;
  comm::on_all_ranks(communicator, "memory of the process", [&] {  // while all have theirs
    grown = growth.peak();
    code = growth.code();
  });
  // Of pages that ranks share each counts a part, not always an equal one: what they take together says more.
  std::vector<double> of_ranks{static_cast<double>(benched.total_bytes + benched.graph_and_kernel_bytes),
                               static_cast<double>(grown - code)};
  if (communicator != nullptr) comm::all_reduce_sum(*communicator, of_ranks, "memory of all ranks");
  if (!is_first) return 0;
  const CompiledStep& compiled = benched.compiled;
  const double step_seconds = median(times);
  const data::DatasetInfo info = info_of(compiled.graph, benched.input);
  const double samples_per_second = static_cast<double>(benched.batches * benched.batch) / step_seconds;
  const auto items = static_cast<double>(info.items_per_sample());
  const double rate = samples_per_second * items;
  // The median hides stalls, such as other processes cause: hence the whole time beside it.
  const double whole = std::accumulate(times.begin(), times.end(), 0.0);
  const double whole_rate = static_cast<double>(times.size()) * samples_per_second * step_seconds / whole * items;
  if (options.json) {
    nlohmann::ordered_json root = benched.json();
    root["steps"] = times.size();
    root["median_step_seconds"] = step_seconds;
    root["fastest_step_seconds"] = *std::min_element(times.begin(), times.end());
    root["samples_per_second"] = samples_per_second;
    root[fmt::format("{}_per_second", info.item())] = rate;
    root["seconds"] = whole;
    root[fmt::format("{}_per_second_over_all_steps", info.item())] = whole_rate;
    root["rss_growth_bytes"] = grown;
    root["code_growth_bytes"] = code;
    root["memory_of_ranks"] = {{"planned_bytes", of_ranks[0]}, {"taken_bytes", of_ranks[1]}};
    fmt::print("{}\n", root.dump(2));
    return 0;
  }
  fmt::print("{}: {} per step (median of {}), {:.1f} {}/s ({:.1f} over all {}), {:.1f} GFLOP/s, arena {}\n",
             benched.title(), human_duration(step_seconds), times.size(), rate, info.item(), whole_rate,
             human_duration(whole), static_cast<double>(benched.work.flops) / step_seconds / 1e9,
             human_bytes(static_cast<double>(compiled.plan.arena_bytes)));
  constexpr double kStalled = 1.5;
  if (whole > kStalled * step_seconds * static_cast<double>(times.size()))
    fmt::print("some steps took much longer than the median: other processes use the same cores\n");
  print_input(benched);
  print_recompute(benched);
  fmt::print("{}", benched.pipeline);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure the step time of a model on synthetic input");
  command->add_option("MODEL", options->choice.model, "Model, or a recipe for its model, optimiser and batch")
      ->type_name("MODEL|RECIPE|FILE")
      ->required();
  command->add_option("--input", options->choice.input,
                      "C,H,W of one image, or T tokens; default: of the recipe's data, or the model's own");
  command->add_option("--classes", options->choice.classes, "Or the vocabulary")->check(CLI::Range(1, 100000000));
  command->add_option("--batch", options->choice.batch, "Samples per step; default 16, or the recipe's")
      ->check(CLI::Range(1, 65536));
  command->add_option("--precision", options->choice.precision, "f32 (default), bf16, f16, or auto");
  command->add_option("--precision-of", options->choice.precision_of, "NAME=f32, of a node or an op; repeatable")
      ->allow_extra_args(false);
  command->add_option("--memory-limit", options->choice.memory_limit,
                      "Such as 1.5GB: activations are computed twice to keep to it; default: none");
  command->add_option("--offload", options->choice.offload, kOffloadHelp)->type_name("DIR");
  command->add_option("--autotune", options->autotune, std::string(program::kAutotuneHelp) + "; default: off");
  command->add_option("--threads", options->choice.threads, "Default: all cores this process may use");
  command->add_option("--set", options->choice.set, "Any key of a recipe; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--seconds", options->seconds, "How long to measure; default 5")->check(real_number_in(0, 86400));
  command->add_option(
      "--bucket", options->bucket,
      "Of gradients that ranks reduce together: such as 25MB, or none; default: as is predicted to be best");
  command->add_option("--without", options->without, "Leave this pass out (see `weft graph --list-passes`); repeatable")
      ->type_name("PASS")
      ->allow_extra_args(false);
  command->add_flag("--forward", options->forward, "Inference instead of training");
  command->add_flag("--plan-only", options->plan_only, "Only the counted work of the plan; runs no step");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &action, &library] {
    action = [options, &library] {
      return launch::on_launched_ranks(
          [&](comm::Communicator* ranks) { return bench_command(library, *options, ranks); });
    };
  });
}

}  // namespace weft::cli
