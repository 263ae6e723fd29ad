// weft models: what can be trained, with parameters and multiply-adds for an input.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/step/step.h"

namespace weft::cli {

namespace {

struct ModelsOptions {
  std::string name, input;
  int64_t classes = 0;
  std::vector<std::string> set;
  bool json = false;
};

/// One row: what a model costs for one sample, or why it cannot read it.
struct ModelCost {
  models::ModelInput input;
  int64_t parameters = 0, multiply_adds = 0, flops = 0;
  std::string problem;
};

int64_t flops_of(const Graph& graph) {
  int64_t total = 0;
  for (const Node& node : graph.nodes()) {
    if (!node.op->flops) continue;
    std::vector<TensorType> inputs, outputs;
    for (const ValueId value : node.inputs) inputs.push_back(graph.type(value));
    for (const ValueId value : node.outputs) outputs.push_back(graph.type(value));
    total += node.op->flops(inputs, outputs, node.attributes);
  }
  return total;
}

ModelCost cost_of(const Library& library, const models::ModelEntry& entry, const ModelsOptions& options) {
  ModelCost cost;
  const ModelChoice choice{.model = entry.name, .input = options.input, .classes = options.classes, .set = options.set};
  cost.input = input_of(library, choice, 1);
  const spec::RunSpec spec = spec_of_model(library, choice, 1);
  if (cost.input.shape.empty()) {
    cost.problem = "give --input: the model has no default";
    return cost;
  }
  try {
    const models::Model model =
        models::build(library.ops, entry, cost.input, spec.model.options, models::Mode::inference);
    cost.parameters = step::parameter_count(model.parameters);
    cost.multiply_adds = models::multiply_adds(model.graph);
    cost.flops = flops_of(model.graph);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::shape || !options.name.empty()) throw;
    cost.problem = error.what();
  }
  return cost;
}

std::string input_text(const models::ModelInput& input) { return to_string(Shape(input.shape)); }

int models_command(const Library& library, const ModelsOptions& options) {
  if (!options.name.empty()) models::find_model(library.models, options.name);  // it must be known
  auto rows = nlohmann::ordered_json::array();
  Table table({{"model"},
               {"input"},
               {"classes", Align::right},
               {"parameters", Align::right},
               {"multiply-adds", Align::right},
               {"summary"}});
  std::string details;
  for (const models::ModelEntry& entry : library.models) {
    if (!options.name.empty() ? entry.name != options.name : entry.is_made_of_file) continue;
    const ModelCost cost = cost_of(library, entry, options);
    const bool fits = cost.problem.empty();
    const auto count = [&](int64_t n) { return fits ? human_count(static_cast<double>(n)) : std::string("-"); };
    table.add_row({entry.name, input_text(cost.input), std::to_string(cost.input.classes), count(cost.parameters),
                   count(cost.multiply_adds),
                   fits                       ? entry.summary
                   : cost.input.shape.empty() ? entry.summary + " (--input says what it reads)"
                                              : "does not read this input"});
    rows.push_back({{"name", entry.name},
                    {"summary", entry.summary},
                    {"input", cost.input.shape},
                    {"classes", cost.input.classes},
                    {"parameters", fits ? nlohmann::ordered_json(cost.parameters) : nlohmann::ordered_json()},
                    {"multiply_adds", fits ? nlohmann::ordered_json(cost.multiply_adds) : nlohmann::ordered_json()},
                    {"forward_flops", fits ? nlohmann::ordered_json(cost.flops) : nlohmann::ordered_json()},
                    {"options", entry.options}});
    for (const std::string& option : entry.options) details += fmt::format("  --set model.{}\n", option);
  }
  if (options.json) {
    fmt::print("{}\n", rows.dump(2));
    return 0;
  }
  fmt::print("{}", table.text());
  if (!options.name.empty() && !details.empty()) fmt::print("options:\n{}", details);
  if (options.name.empty())
    fmt::print("multiply-adds are those of one sample, forward; `weft models NAME` shows a model's options\n");
  return 0;
}

}  // namespace

void add_models(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<ModelsOptions>();
  CLI::App* command = app.add_subcommand("models", "List the models with their parameters and multiply-adds");
  command->add_option("NAME", options->name, "Only this one, with its options")->type_name("MODEL");
  command->add_option("--input", options->input, "C,H,W of one image, or T tokens; default: each model's own");
  command->add_option("--classes", options->classes, "Or the vocabulary")->check(CLI::Range(1, 100000000));
  command->add_option("--set", options->set, "model.KEY=VALUE; repeatable")
      ->type_name("model.KEY=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return models_command(library, *options); }; });
}

}  // namespace weft::cli
