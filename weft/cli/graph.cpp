// weft graph: the step as text, at any stage of its rewriting.
#include "weft/graph/graph.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <variant>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/cli/recipe_input.h"
#include "weft/compile/compile.h"
#include "weft/compile/memoized_backend.h"
#include "weft/graph/symbolic_text.h"
#include "weft/graph/text.h"
#include "weft/passes/pipeline.h"
#include "weft/passes/precision/lower_precision.h"
#include "weft/program/run_data.h"
#include "weft/run/run_directory.h"
#include "weft/spec/compile_options.h"
#include "weft/step/data_parallel.h"
#include "weft/step/step.h"

namespace weft::cli {

namespace {

struct GraphOptions {
  ModelChoice choice;  // choice.model may be a run directory or a graph file
  bool training = false, inference = false, list_passes = false;
  int64_t rank = 0;  // of a mesh in which ranks have different graphs
  std::string after;
  std::vector<std::string> without;
  std::vector<std::string> bind;  // of the symbols of a graph file
};

int list_passes() {
  Table table({{"pass"}, {"what it does"}});
  for (const passes::Pass& pass : passes::pipeline()) table.add_row({pass.name, pass.summary});
  fmt::print("{}", table.text());
  return 0;
}

/// A file such as a run's graph.weft. One with symbols is an ordinary graph once these are bound, as passes want it.
std::variant<Graph, SymbolicGraph> read_graph(const Library& library, const GraphOptions& options) {
  const ModelChoice& choice = options.choice;
  if (!choice.input.empty() || choice.classes != 0 || choice.batch != 0 || !choice.set.empty() || options.training ||
      options.inference)
    fail(ErrorKind::usage,
         "'{}' is a graph already; leave all options but --after, --without, --bind, --precision, --precision-of and "
         "--threads "
         "away",
         choice.model);
  const std::string text = read_text(choice.model);
  const std::filesystem::path constants_file = constants_path(choice.model);
  const SymbolBindings bindings = parse_bindings(options.bind);
  try {
    std::error_code code;
    const ConstantTable constants =
        std::filesystem::is_regular_file(constants_file, code) ? read_constants(constants_file) : ConstantTable{};
    if (!has_symbols(text) && bindings.empty()) return parse_graph(text, library.ops, constants);
    SymbolicGraph graph = parse_symbolic_graph(text, library.ops, constants);
    const bool is_shown = bindings.empty() && options.after.empty() && options.without.empty();
    if (is_shown) return graph;
    return bind_symbols(graph, bindings);
  } catch (const Error& error) {
    fail(error.kind(), "'{}': {}", choice.model, error.what());
  }
}

/// Those that divide each batch, where the spec leaves it to the number of ranks: as the run was started, or as few as
/// do what the spec says. What is assumed of ranks that divide more than the batch is said.
int64_t data_ranks_of(const spec::RunSpec& spec, int ranks_of_run) {
  const int64_t others = spec.mesh.tensor * spec.mesh.pipeline;
  if (ranks_of_run > 0 && ranks_of_run % others == 0) return ranks_of_run / others;
  const bool shares_along_data = spec.shard.zero > 0 || spec.shard.experts == "data";
  const int64_t data = shares_along_data ? 2 : 1;
  if (others * data > 1)
    say(fmt::format("assumed {} ranks, of which {} along mesh.data; --set mesh.data=N says another number",
                    others * data, data));
  return data;
}

/// Of a model or of a run, which may be told otherwise by every option. `spec`: what it is of.
Graph build_graph(const Library& library, const GraphOptions& options, spec::RunSpec& spec) {
  const ModelChoice& choice = options.choice;
  models::ModelInput input;
  int ranks_of_run = 0;  // not known
  std::error_code code;
  if (std::filesystem::is_directory(choice.model, code)) {
    const run::RunDirectory run = run::RunDirectory::open(choice.model);
    spec = run.read_spec(library);
    ranks_of_run = run.ranks();
    if (choice.batch != 0) spec::set_field(spec, "batch", choice.batch, "--batch", library);
    if (!choice.precision.empty()) spec::set_field(spec, "precision", choice.precision, "--precision", library);
    if (!choice.precision_of.empty())
      spec::set_field(spec, "precision_of", joined(choice.precision_of), "--precision-of", library);
    if (!choice.offload.empty()) spec::set_field(spec, "offload", choice.offload, "--offload", library);
    for (const std::string& assignment : choice.set) spec::set_from_text(spec, assignment, library);
    spec::resolve(spec, library);
    const spec::DataDescription data = run.read_data();
    const spec::StepShape shape =
        choice.batch == 0 ? program::largest_stage(spec, data).shape() : spec::StepShape(spec.batch);
    input = program::model_input(data, shape);
    if (!choice.input.empty()) input.shape = parse_dimensions(choice.input, "--input");
    if (choice.classes != 0) input.classes = choice.classes;
  } else {
    spec = spec_of(library, choice, 128);
    RecipeInput found = input_of_recipe(library, choice, spec);
    if (!found.note.empty()) say(found.note);
    input = std::move(found.input);
  }
  spec::choose_automatic_precision(spec, *library.device.make({}));
  if (options.inference) return step::build_prediction_step(library, spec, input);
  if (spec.mesh.data == 0) spec.mesh.data = data_ranks_of(spec, ranks_of_run);
  const int ranks = static_cast<int>(spec.mesh.data);
  if (input.batch % ranks != 0)
    fail(ErrorKind::usage, "--batch {}: {} ranks cannot divide it (mesh.data); choose a multiple of them", input.batch,
         ranks);
  input.batch /= ranks;
  const int64_t all = ranks * spec.mesh.pipeline * spec.mesh.tensor;
  if (options.rank >= all)
    fail(ErrorKind::usage, "--rank {}: the mesh has the ranks 0 to {} (mesh.data, mesh.tensor, mesh.pipeline)",
         options.rank, all - 1);
  return step::build_training_step(library, spec, input,
                                   {.ranks = ranks,
                                    .tensor_ranks = static_cast<int>(spec.mesh.tensor),
                                    .rank = static_cast<int>(options.rank)})
      .graph;
}

Graph run_passes(const Library& library, const GraphOptions& options, const spec::RunSpec& spec, const Graph& graph) {
  const int64_t threads = options.choice.threads > 0 ? options.choice.threads : available_cores();
  const std::unique_ptr<Device> device =
      library.device.make({.threads = static_cast<int>(threads), .kernels = library.kernels});
  CompileOptions compile_options = spec::compile_options(spec, *device);
  compile_options.threads = static_cast<int>(threads);
  compile_options.ranks.count = static_cast<int>(std::max<int64_t>(spec.mesh.data, 1));
  compile_options.ranks.batches = step::batches_per_exchange(spec);
  auto& disabled = compile_options.passes.disabled;
  disabled.insert(disabled.end(), options.without.begin(), options.without.end());
  passes::require_matches(graph, compile_options.precision);
  if (!options.choice.memory_limit.empty()) {
    const std::optional<int64_t> limit = parse_bytes(options.choice.memory_limit);
    if (!limit)
      fail(ErrorKind::usage, "--memory-limit '{}' is no amount of memory; write 1.5GB, 800MB or 2GiB",
           options.choice.memory_limit);
    const Plan plan = compile(graph, *device, compile_options).plan;
    compile_options.arena_limit_bytes = std::max<int64_t>(1, *limit - (plan.total_bytes() - plan.arena_bytes));
  }
  compile_options.passes.stop_after = options.after == "all" ? "" : options.after;
  const MemoizedBackend memoized(*device);
  return passes::run_pipeline(graph, pass_context(memoized, compile_options), compile_options.passes);
}

int graph_command(const Library& library, const GraphOptions& options) {
  if (options.list_passes) return list_passes();
  if (options.choice.model.empty())
    fail(ErrorKind::usage, "weft graph wants a model (see `weft models`), a recipe, a run directory or a graph file");
  std::error_code code;
  const bool is_file =
      !options.choice.model.ends_with(".toml") && std::filesystem::is_regular_file(options.choice.model, code);
  spec::RunSpec spec;
  if (is_file) spec = spec_of_model(library, options.choice, 1);
  if (!is_file && !options.bind.empty())
    fail(ErrorKind::usage, "--bind is for a graph file with symbols; '{}' is none", options.choice.model);
  std::variant<Graph, SymbolicGraph> read =
      is_file ? read_graph(library, options) : build_graph(library, options, spec);
  if (const auto* symbolic = std::get_if<SymbolicGraph>(&read)) {
    fmt::print("{}", print_symbolic_graph(*symbolic));
    return 0;
  }
  Graph& graph = std::get<Graph>(read);
  if (!options.after.empty() || !options.without.empty()) graph = run_passes(library, options, spec, graph);
  fmt::print("{}", print_graph(graph));
  return 0;
}

}  // namespace

void add_graph(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<GraphOptions>();
  CLI::App* command = app.add_subcommand("graph", "Print the graph of a step, before or after any pass");
  command
      ->add_option("MODEL_OR_RUN", options->choice.model,
                   "Model (see `weft models`), recipe, run directory or graph file")
      ->type_name("MODEL|RECIPE|RUN|FILE");
  command->add_option("--input", options->choice.input, "C,H,W of one image, or T tokens");
  command->add_option("--classes", options->choice.classes, "Or the vocabulary")->check(CLI::Range(1, 100000000));
  command->add_option("--batch", options->choice.batch, "Samples per step")->check(CLI::Range(1, 65536));
  command->add_option("--memory-limit", options->choice.memory_limit,
                      "Such as 1.5GB, which the passes recompute and offload keep to; default: none");
  command->add_option("--offload", options->choice.offload, kOffloadHelp)->type_name("DIR");
  command->add_option("--threads", options->choice.threads, "That the passes count on; default: all cores")
      ->check(CLI::Range(0, 1024));
  command->add_option("--precision", options->choice.precision, "f32, bf16, f16 or auto; default: f32, or the run's");
  command->add_option("--precision-of", options->choice.precision_of, "NAME=f32, of a node or an op; repeatable")
      ->allow_extra_args(false);
  command->add_option("--set", options->choice.set, "Any key of a recipe; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--rank", options->rank, "Whose graph, where mesh.pipeline divides the model; default 0")
      ->check(CLI::Range(0, 1000000));
  CLI::Option* training = command->add_flag("--training", options->training, "Forward, backward and update (default)");
  command->add_flag("--inference", options->inference, "Forward only")->excludes(training);
  command->add_option("--after", options->after, "Run the passes up to and including this one, or all; default: none")
      ->type_name("PASS");
  command->add_option("--without", options->without, "Run all passes but this one; repeatable")
      ->type_name("PASS")
      ->allow_extra_args(false);
  command->add_option("--bind", options->bind, "NAME=NUMBER, of a symbol in a graph file; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--list-passes", options->list_passes, "List the passes in order");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return graph_command(library, *options); }; });
}

}  // namespace weft::cli
