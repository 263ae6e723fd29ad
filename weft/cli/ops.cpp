// weft ops: the reference of all ops, from the registry.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/graph/constant_text.h"
#include "weft/report/op_class.h"

namespace weft::cli {

namespace {

/// Of a constant its elements, as a graph's text has them.
std::string shown(const AttributeValue& value) {
  const auto* constant = std::get_if<Constant>(&value);
  return constant != nullptr ? print_constant(*constant) : to_string(value);
}

struct OpsOptions {
  std::string name;
  bool json = false;
};

std::string call_of(const OpDef& op) {
  return fmt::format("{}({}) -> {}", op.name, fmt::join(op.inputs, ", "), fmt::join(op.outputs, ", "));
}

std::string_view name_of_rule(LayoutRule rule) {
  constexpr std::string_view names[] = {"plain", "elementwise", "channelwise", "kernel"};
  return names[static_cast<size_t>(rule)];
}

nlohmann::ordered_json to_json(const OpDef& op) {
  auto attributes = nlohmann::ordered_json::array();
  for (const AttributeSpec& attribute : op.attributes)
    attributes.push_back({{"name", attribute.name},
                          {"kind", std::string(kind_name(attribute.value))},
                          {"required", attribute.required},
                          {"default", attribute.required ? "" : to_string(attribute.value)},
                          {"help", attribute.help}});
  return {{"name", op.name},
          {"summary", op.summary},
          {"inputs", op.inputs},
          {"outputs", op.outputs},
          {"attributes", attributes},
          {"class", std::string(report::class_of(op))},
          {"differentiable", static_cast<bool>(op.gradient)},
          {"layout_rule", std::string(name_of_rule(op.layout_rule))},
          {"precision", std::string(name_of(op.precision))},
          {"is_view", op.is_view},
          {"is_update", op.is_update}};
}

std::string details_of(const OpDef& op) {
  std::string text = fmt::format("{}\n  {}\n", call_of(op), op.summary);
  Table table({{""}, {""}, {""}, {""}});
  for (const AttributeSpec& attribute : op.attributes)
    table.add_row({"  " + attribute.name, std::string(kind_name(attribute.value)),
                   attribute.required ? "required" : "= " + to_string(attribute.value), attribute.help});
  if (!op.attributes.empty()) text += "attributes:\n" + table.text();
  text += fmt::format("layout: {}; precision: {}; {}{}{}\n", name_of_rule(op.layout_rule), name_of(op.precision),
                      op.gradient ? "has a gradient" : "has no gradient",
                      op.is_view ? "; a view, computes nothing" : "", op.is_update ? "; updates a state" : "");
  for (const OpExample& example : op.examples) {
    std::vector<std::string> inputs, attributes;
    for (const TensorType& type : example.inputs) inputs.push_back(to_string(type));
    for (const auto& [name, value] : example.attributes.values())
      attributes.push_back(fmt::format("{}={}", name, shown(value)));
    text += fmt::format("example: {}({}) {{{}}}{}\n", op.name, fmt::join(inputs, ", "), fmt::join(attributes, ", "),
                        example.label.empty() ? "" : "  # " + example.label);
  }
  return text;
}

int ops_command(const Library& library, const OpsOptions& options) {
  if (!options.name.empty()) {
    const OpDef& op = library.ops.get(options.name);
    fmt::print("{}", options.json ? to_json(op).dump(2) + "\n" : details_of(op));
    return 0;
  }
  auto rows = nlohmann::ordered_json::array();
  Table table({{"op"}, {"summary"}});
  for (const auto& [name, op] : library.ops.all()) {
    rows.push_back(to_json(op));
    table.add_row({call_of(op), op.summary});
  }
  fmt::print("{}", options.json ? rows.dump(2) + "\n" : table.text());
  return 0;
}

}  // namespace

void add_ops(CLI::App& app, Action& action, const Library& library) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* command = app.add_subcommand("ops", "List the ops, or describe one");
  command->add_option("NAME", options->name, "Only this one, with attributes and examples")->type_name("OP");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &action, &library] { action = [options, &library] { return ops_command(library, *options); }; });
}

}  // namespace weft::cli
