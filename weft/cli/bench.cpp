// weft bench: how fast a model's step runs here, on synthetic input.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/cli/synthetic.h"
#include "weft/train/arena_limit.h"
#include "weft/train/compile_options.h"
#include "weft/train/step.h"
#include "weft/train/step_cache.h"

namespace weft::cli {

namespace {

constexpr int kWarmupSteps = 3;
constexpr int kFewestSteps = 5;

struct BenchOptions {
  ModelChoice choice;
  std::vector<std::string> without;
  bool forward = false, json = false;
  double seconds = 5;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// At least kFewestSteps steps, then as many as fit into `seconds`.
std::vector<double> time_steps(SyntheticStep& step, double seconds) {
  for (int warmup = 0; warmup < kWarmupSteps; ++warmup) step.run();
  std::vector<double> times;
  for (double spent = 0; spent < seconds || times.size() < kFewestSteps; spent += times.back()) {
    const auto begin = std::chrono::steady_clock::now();
    step.run();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
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

int bench_command(const train::Library& library, const BenchOptions& options) {
  const train::RunSpec spec = spec_of(options.choice, 16);
  const models::ModelInput input = input_of(library, options.choice, spec.batch);
  const CpuBackend backend(static_cast<int>(spec.threads), library.kernels);
  const train::TrainingStep training = train::build_training_step(library, spec, input);
  CompileOptions compile_options = train::compile_options(spec, backend);
  compile_options.passes.disabled = options.without;
  passes::require_matches(training.graph, compile_options.precision);
  const auto arena = std::make_shared<Arena>();
  train::StepCache steps(
      [&](int64_t) { return options.forward ? train::build_prediction_step(library, spec, input) : training.graph; },
      backend, compile_options, arena);
  train::StepCache update([&](int64_t batch) { return train::update_graph_for(training, steps.compiled(batch).graph); },
                          backend, compile_options, arena);
  const bool updates_apart = training.update && !options.forward;
  const CompiledStep* compiled_update = updates_apart ? &update.compiled(spec.batch) : nullptr;
  const Plan& unlimited = steps.compiled(spec.batch).plan;
  train::keep_to_memory_limit(steps, spec, unlimited.total_bytes() - unlimited.arena_bytes);
  const CompiledStep& compiled = steps.compiled(spec.batch);
  arena->reserve(std::max(steps.arena_bytes(), update.arena_bytes()));
  const int64_t total_bytes = compiled.plan.total_bytes() - compiled.plan.arena_bytes + arena->bytes();
  require_memory(spec.model.name, spec.batch, total_bytes, "choose a smaller --batch or --input");
  State state = train::initial_state(training, static_cast<uint64_t>(spec.seed));
  Executor& executor = steps.executor(spec.batch);
  executor.bind_state(state);
  const SyntheticBatch batch(compiled.graph, input.classes);
  batch.bind(executor);
  if (updates_apart) update.executor(spec.batch).bind_state(state);
  const int64_t batches = options.forward ? 1 : spec.accumulate;
  SyntheticStep step(executor, updates_apart ? &update.executor(spec.batch) : nullptr, batches);
  const std::vector<double> times = time_steps(step, options.seconds);
  const double step_seconds = median(times);
  const data::DatasetInfo info = info_of(compiled.graph, input);
  const double samples_per_second = static_cast<double>(batches * spec.batch) / step_seconds;
  const double rate = samples_per_second * static_cast<double>(info.items_per_sample());
  int64_t flops = 0;
  for (const PlannedNode& node : compiled.plan.steps) flops += batches * node.flops;
  if (updates_apart)
    for (const PlannedNode& node : compiled_update->plan.steps) flops += node.flops;
  if (options.json) {
    auto passes = nlohmann::ordered_json::array();
    for (const passes::PassReport& pass : compiled.passes)
      passes.push_back({{"pass", pass.pass},
                        {"seconds", pass.seconds},
                        {"nodes_before", pass.nodes_before},
                        {"nodes_after", pass.nodes_after}});
    const nlohmann::ordered_json root = {{"model", spec.model.name},
                                         {"input", input.shape},
                                         {"batch", spec.batch},
                                         {"batches_per_step", batches},
                                         {"precision", spec.precision},
                                         {"threads", spec.threads},
                                         {"mode", options.forward ? "forward" : "training"},
                                         {"steps", times.size()},
                                         {"median_step_seconds", step_seconds},
                                         {"fastest_step_seconds", *std::min_element(times.begin(), times.end())},
                                         {"samples_per_second", samples_per_second},
                                         {fmt::format("{}_per_second", info.item()), rate},
                                         {"flops_per_step", flops},
                                         {"planned_peak_bytes", compiled.plan.arena_bytes},
                                         {"planned_total_bytes", total_bytes},
                                         {"recomputed_nodes", compiled.recompute.nodes},
                                         {"recomputed_flops", batches * compiled.recompute.flops},
                                         {"compile_seconds", compiled.compile_seconds},
                                         {"passes", passes}};
    fmt::print("{}\n", root.dump(2));
    return 0;
  }
  fmt::print("{} {} {}, {}batch {}, {}, {} threads: {} per step (median of {}), {:.1f} {}/s, {}FLOP/s, arena {}\n",
             spec.model.name, to_string(Shape(input.shape)), options.forward ? "forward" : "training",
             batches > 1 ? fmt::format("{} times ", batches) : "", spec.batch, spec.precision, spec.threads,
             human_duration(step_seconds), times.size(), rate, info.item(),
             human_count(static_cast<double>(flops) / step_seconds),
             human_bytes(static_cast<double>(compiled.plan.arena_bytes)));
  const std::string twice = train::describe_recompute(compiled, spec);
  if (!twice.empty()) fmt::print("{}\n", twice);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action, const train::Library& library) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure the step time of a model on synthetic input");
  command->add_option("MODEL", options->choice.model, "Model (see `weft models`)")->required();
  command->add_option("--input", options->choice.input, "C,H,W of one image, or T tokens; default: the model's own");
  command->add_option("--classes", options->choice.classes, "Or the vocabulary")->check(CLI::Range(1, 100000000));
  command->add_option("--batch", options->choice.batch, "Samples per step; default 16")->check(CLI::Range(1, 65536));
  command->add_option("--precision", options->choice.precision, "f32 (default), bf16, f16, or auto");
  command->add_option("--precision-of", options->choice.precision_of, "NAME=f32, of a node or an op; repeatable")
      ->allow_extra_args(false);
  command->add_option("--memory-limit", options->choice.memory_limit,
                      "Such as 1.5GB: activations are computed twice to keep to it; default: none");
  command->add_option("--threads", options->choice.threads, "Default: all cores this process may use");
  command->add_option("--set", options->choice.set, "Any key of a recipe; repeatable")->allow_extra_args(false);
  command->add_option("--seconds", options->seconds, "How long to measure; default 5")->check(CLI::Range(0.0, 86400.0));
  command->add_option("--without", options->without, "Leave this pass out (see `weft graph --list-passes`); repeatable")
      ->allow_extra_args(false);
  command->add_flag("--forward", options->forward, "Inference instead of training");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return bench_command(library, *options); }; });
}

}  // namespace weft::cli
