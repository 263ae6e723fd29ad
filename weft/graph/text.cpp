#include "weft/graph/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/line_reader.h"

namespace weft {

namespace {

constexpr const char* kSharding = "sharding";

std::string quoted(const std::string& text) { return to_string(AttributeValue(text)); }

std::string print_attribute(const AttributeValue& value) {
  const auto* constant = std::get_if<Constant>(&value);
  return constant != nullptr ? print_constant(*constant) : to_string(value);
}

/// " : f32[768] {sharding="flat(data=2) of (64,24)"}", without the colon.
std::string print_type(const Graph& graph, ValueId value) {
  const std::string type = to_string(graph.type(value));
  const auto& sharding = graph.sharding(value);
  return sharding ? fmt::format("{} {{{}={}}}", type, kSharding, quoted(to_string(*sharding))) : type;
}

std::string print_node(const Graph& graph, const Node& node) {
  std::string line = "  ";
  for (size_t index = 0; index < node.outputs.size(); ++index)
    line += fmt::format("{}%{}", index == 0 ? "" : ", ", graph.value(node.outputs[index]).name);
  line += fmt::format(" = {}(", node.op->name);
  for (size_t index = 0; index < node.inputs.size(); ++index)
    line += fmt::format("{}%{}", index == 0 ? "" : ", ", graph.value(node.inputs[index]).name);
  line += ")";
  std::string attributes;
  for (const auto& [name, value] : node.attributes.values()) {
    bool is_default = false;
    for (const AttributeSpec& spec : node.op->attributes)
      is_default = is_default || (spec.name == name && !spec.required && spec.value == value);
    if (!is_default) attributes += fmt::format("{}{}={}", attributes.empty() ? "" : ", ", name, print_attribute(value));
  }
  if (!attributes.empty()) line += " {" + attributes + "}";
  line += " : ";
  for (size_t index = 0; index < node.outputs.size(); ++index)
    line += fmt::format("{}{}", index == 0 ? "" : ", ", print_type(graph, node.outputs[index]));
  return line + "\n";
}

ValueId known_value(const Graph& graph, LineReader& line) {
  const std::string name = line.value_name();
  const ValueId id = graph.find_value(name);
  if (!id.valid()) line.bad(fmt::format("a value that is defined above (there is no %{})", name));
  return id;
}

/// Behind a type, where it says one.
void parse_sharding_of(Graph& graph, ValueId value, LineReader& line) {
  if (!line.accept('{')) return;
  if (line.word() != kSharding) line.bad("sharding=\"...\"");
  line.require('=');
  graph.set_sharding(value, parse_sharding(line.quoted_text()));
  line.require('}');
}

void parse_input(Graph& graph, InputKind kind, LineReader& line) {
  const std::string value = line.value_name();
  const std::string name = line.quoted_text();
  line.require(':');
  const ValueId id = graph.add_input(kind, name, line.tensor_type());
  graph.rename(id, value);
  parse_sharding_of(graph, id, line);
}

void parse_node(Graph& graph, LineReader& line, const ConstantTable& constants) {
  std::vector<std::string> names;
  do names.push_back(line.value_name());
  while (line.accept(','));
  line.require('=');
  const std::string op = line.word();
  line.require('(');
  std::vector<ValueId> inputs;
  if (!line.accept(')')) {
    do inputs.push_back(known_value(graph, line));
    while (line.accept(','));
    line.require(')');
  }
  Attributes attributes;
  if (line.accept('{')) {
    do {
      const std::string name = line.word();
      line.require('=');
      attributes.set(name, line.attribute_value(constants));
    } while (line.accept(','));
    line.require('}');
  }
  if (graph.find_value(names.front()).valid()) line.bad(fmt::format("a new name (%{} is taken)", names.front()));
  const std::vector<ValueId> outputs = graph.add_node(op, inputs, attributes, names.front());
  if (outputs.size() != names.size()) line.bad(fmt::format("{} results of {}", outputs.size(), op));
  for (size_t index = 0; index < outputs.size(); ++index) graph.rename(outputs[index], names[index]);
  line.require(':');
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (index > 0) line.require(',');
    const TensorType written = line.tensor_type();
    const TensorType& inferred = graph.type(outputs[index]);
    if (written.shape != inferred.shape || written.dtype != inferred.dtype)
      line.bad(fmt::format("type {}, which the operands give, not {}", to_string(inferred), to_string(written)));
    graph.set_layout(outputs[index], written.layout);
    parse_sharding_of(graph, outputs[index], line);
  }
}

}  // namespace

std::string print_graph(const Graph& graph) {
  std::string text = fmt::format("graph {} {{\n", quoted(graph.name()));
  for (const GraphInput& input : graph.inputs()) {
    text += fmt::format("  {} %{} {} : {}", name_of(input.kind), graph.value(input.value).name, quoted(input.name),
                        print_type(graph, input.value));
    text += "\n";
  }
  for (const Node& node : graph.nodes()) text += print_node(graph, node);
  for (const GraphOutput& output : graph.outputs())
    text += fmt::format("  output {} %{}\n", quoted(output.name), graph.value(output.value).name);
  for (const StateUpdate& update : graph.updates())
    text += fmt::format("  update {} %{}\n", quoted(update.state), graph.value(update.value).name);
  return text + "}\n";
}

Graph parse_graph(std::string_view text, const OpRegistry& registry, const ConstantTable& constants) {
  Graph graph(registry);
  enum class Part { before, inside, after } part = Part::before;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    LineReader line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.at_end()) continue;
    if (part == Part::after) line.bad("nothing after the closing brace");
    if (part == Part::before) {
      if (line.word() != "graph") line.bad("'graph \"name\" {' as the first line");
      graph.set_name(line.quoted_text());
      line.require('{');
      part = Part::inside;
    } else if (line.accept('}')) {
      part = Part::after;
    } else if (line.next_is('%')) {
      parse_node(graph, line, constants);
    } else {
      const std::string word = line.word();
      if (word == "output" || word == "update") {
        const std::string name = line.quoted_text();
        const ValueId value = known_value(graph, line);
        word == "output" ? graph.add_output(name, value) : graph.add_update(name, value);
      } else if (word == "batch") {
        parse_input(graph, InputKind::batch, line);
      } else if (word == "parameter") {
        parse_input(graph, InputKind::parameter, line);
      } else if (word == "state") {
        parse_input(graph, InputKind::state, line);
      } else if (word == "scalar") {
        parse_input(graph, InputKind::scalar, line);
      } else {
        line.bad("batch, parameter, state, scalar, output, update or a node instead of '" + word + "'");
      }
    }
    line.require_end();
  }
  if (part != Part::after) fail(ErrorKind::data, "graph text, line {}: the closing brace is missing", number);
  return graph;
}

}  // namespace weft
