// weft rates: what this machine's processor and memory can do, as a file for `cost_profile`; and, with --ops, what its
// ops take within steps, which `weft plan` predicts from.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/parse_number.h"
#include "weft/base/say.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/cli/planned_model.h"
#include "weft/cli/real_number.h"
#include "weft/cli/recipe_input.h"
#include "weft/device/machine_file.h"
#include "weft/device/op_times_file.h"
#include "weft/predict/measure_exchanges.h"
#include "weft/predict/measure_ops.h"
#include "weft/program/cost_profile.h"
#include "weft/spec/run_spec.h"
#include "weft/step/rank_mesh.h"

namespace weft::cli {

namespace {

struct RatesOptions {
  std::string output;
  std::vector<std::string> models;
  std::string batches, precisions, input;
  int64_t classes = 0;
  std::vector<std::string> set;
  int64_t threads = 0, ranks = 1;
  double seconds = 120;
  bool ops = false;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

/// Of a model of the zoo, or a recipe with its own batch and precision where nothing else is asked for.
void add_choices(const Library& library, const RatesOptions& options, const std::string& model,
                 std::vector<program::StepChoice>& choices) {
  const bool is_recipe = names_recipe(library, model);
  std::vector<std::string> batches = split(options.batches), precisions = split(options.precisions);
  if (batches.empty()) batches = is_recipe ? std::vector<std::string>{"0"} : std::vector<std::string>{"8", "32"};
  if (precisions.empty()) {
    precisions.emplace_back(is_recipe ? "" : "f32");
    if (!is_recipe && library.device.make({})->computes_fast(DType::bf16)) precisions.emplace_back("bf16");
  }
  for (const std::string& precision : precisions)
    for (const std::string& batch : batches) {
      const std::optional<int64_t> count = parse_number<int64_t>(batch);
      if (!count || *count < 0)
        fail(ErrorKind::usage, "--batch {}: give whole numbers with commas between them, such as 8,32",
             options.batches);
      const ModelChoice choice{.model = model,
                               .input = options.input,
                               .classes = options.classes,
                               .batch = *count,
                               .threads = options.threads,
                               .precision = precision,
                               .set = options.set};
      spec::RunSpec spec = spec_of_plan(library, choice);
      RecipeInput found = input_of_recipe(library, choice, spec);
      if (!found.note.empty()) say(found.note);
      // Ranks divide the batch of a recipe, but those that share or divide the layers have all of it.
      if (*count == 0)
        spec.batch = std::max<int64_t>(1, spec.batch / step::data_ranks(spec, static_cast<int>(options.ranks)));
      found.input.batch = spec.batch;
      const int64_t batches_per_step = spec.accumulate;
      choices.push_back({.spec = std::move(spec), .input = std::move(found.input), .batches = batches_per_step});
    }
}

int measure_ops_command(const Library& library, const RatesOptions& options) {
  std::vector<program::StepChoice> choices;
  const int64_t cores = available_cores();
  const int64_t of_each = std::max<int64_t>(1, options.threads);
  if (options.ranks > 1 && options.ranks * of_each > cores)
    fail(ErrorKind::usage, "--ranks {}: with {} thread{} each they would take turns on {} core{}; give fewer",
         options.ranks, of_each, of_each == 1 ? "" : "s", cores, cores == 1 ? "" : "s");
  std::vector<std::string> models = options.models;
  if (models.empty())
    for (const models::ModelEntry& entry : library.models) models.push_back(entry.name);
  for (const std::string& model : models) {
    try {
      add_choices(library, options, model, choices);
    } catch (const Error&) {
      if (!options.models.empty()) throw;
      // Of the whole zoo: a model that wants more than a name, such as a file.
    }
  }
  // As `weft plan` has them: a rank's part of the cores, unless the recipe wants fewer.
  if (options.ranks > 1)
    for (program::StepChoice& choice : choices)
      choice.spec.threads = std::min(choice.spec.threads, cores / options.ranks);
  predict::MeasuredOps measured = predict::measure_ops(
      library, choices,
      {.most_seconds = options.seconds,
       .ranks = options.ranks,
       .progress = [](size_t done, size_t all, const predict::MeasuredStep& step) {
         say(fmt::format("{}/{} {}: {}", done, all, step.name,
                         step.left_out.empty()
                             ? fmt::format("{} per step, {} nodes", human_duration(step.step_seconds), step.nodes)
                             : "left out: " + step.left_out));
       }});
  if (measured.times.empty()) fail(ErrorKind::usage, "no step was measured; give more --seconds, or a smaller --batch");
  const int64_t threads = choices.front().spec.threads;
  const std::string machine = library.device.describe_machine(static_cast<int>(threads));
  std::string kept = options.output;
  const auto keep = [&] {
    if (!options.output.empty()) return write_atomically(options.output, print_op_times(measured.times, machine));
    const OpTimesFile file(directory_of_machine_files(), machine, options.ranks);
    file.add(measured.times);
    kept = file.file().string();
  };
  keep();
  measured.times.exchanges =
      predict::measure_exchanges(library.ops, {.threads = static_cast<int>(threads), .cores = cores});
  if (!measured.times.exchanges.empty()) keep();
  const size_t exchanges = measured.times.exchanges.all().size();
  fmt::print("{} kinds of nodes of {} steps{} measured on {}; '{}' keeps them\n", measured.times.size(),
             std::count_if(measured.steps.begin(), measured.steps.end(),
                           [](const auto& step) { return step.left_out.empty(); }),
             exchanges > 0 ? fmt::format(", and {} exchanges between ranks in memory,", exchanges) : "", machine, kept);
  return 0;
}

int rates_command(const Library& library, const RatesOptions& options) {
  if (options.ops) return measure_ops_command(library, options);
  if (!options.models.empty())
    fail(ErrorKind::usage, "{}: models are for --ops, which measures ops in their steps", options.models.front());
  const int64_t threads = options.threads > 0 ? options.threads : available_cores();
  const std::string text = print_device_profile(program::measure_profile(library, static_cast<int>(threads)));
  if (!options.output.empty()) write_atomically(options.output, text);
  fmt::print("{}", text);
  if (!options.output.empty()) say(fmt::format("written to '{}'", options.output));
  return 0;
}

}  // namespace

void add_rates(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<RatesOptions>();
  CLI::App* command = app.add_subcommand(
      "rates", "Measure this machine's rates, as a file that cost_profile = FILE reads, or its ops, for `weft plan`");
  CLI::Option* ops = command->add_flag(
      "--ops", options->ops, "Measure ops instead, each within steps of models, and keep them for `weft plan`");
  command->add_option("MODELS", options->models, "With --ops: models or recipes; default: all models of weft")
      ->type_name("MODEL|RECIPE|FILE");
  command
      ->add_option("--batch", options->batches,
                   "With --ops: of one rank, such as 8,32, the default; of a recipe, its own, which ranks share")
      ->needs(ops);
  command
      ->add_option("--input", options->input, "With --ops: C,H,W of one image, or T tokens; default: the model's own")
      ->needs(ops);
  command->add_option("--classes", options->classes, "With --ops: or the vocabulary")
      ->check(CLI::Range(1, 100000000))
      ->needs(ops);
  command
      ->add_option(
          "--precision", options->precisions,
          "With --ops: such as f32,bf16; default: both, where the machine is fast with both; of a recipe, its own")
      ->needs(ops);
  command->add_option("--set", options->set, "With --ops: any key of a recipe; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->needs(ops);
  command
      ->add_option("--seconds", options->seconds, "With --ops: for all steps; what is longer is left out; default 120")
      ->check(real_number_in(1, 86400))
      ->needs(ops);
  command
      ->add_option(
          "--ranks", options->ranks,
          "With --ops: ranks that compute at once, each with --threads threads, as `weft plan --ranks` has them "
          "on one host; default 1")
      ->check(CLI::Range(1, 1024))
      ->needs(ops);
  command->add_option("--output", options->output, "The file to write; default: none, with --ops this machine's cache")
      ->type_name("FILE");
  command
      ->add_option("--threads", options->threads,
                   "Default: all cores this process may use, or with --ranks a rank's part of them")
      ->check(CLI::Range(1, 1024));
  command->callback(
      [options, &action, &library] { action = [options, &library] { return rates_command(library, *options); }; });
}

}  // namespace weft::cli
