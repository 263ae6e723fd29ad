#include "weft/graph/symbolic_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/line_reader.h"

namespace weft {

namespace {

std::string in_quotes(const std::string& text) { return to_string(AttributeValue(text)); }

std::string print_attribute(const SymbolicAttribute& attribute) {
  if (const auto* one = std::get_if<Expression>(&attribute)) return to_string(*one);
  if (const auto* list = std::get_if<std::vector<Expression>>(&attribute)) return "[" + to_string(*list) + "]";
  const AttributeValue& value = std::get<AttributeValue>(attribute);
  const auto* constant = std::get_if<Constant>(&value);
  return constant != nullptr ? print_constant(*constant) : to_string(value);
}

std::string print_node(const SymbolicGraph& graph, const SymbolicNode& node) {
  const auto names = [&](const std::vector<ValueId>& values) {
    std::string text;
    for (const ValueId value : values) text += fmt::format("{}%{}", text.empty() ? "" : ", ", graph.value(value).name);
    return text;
  };
  std::string attributes;
  for (const auto& [name, attribute] : node.attributes)
    attributes += fmt::format("{}{}={}", attributes.empty() ? "" : ", ", name, print_attribute(attribute));
  if (!attributes.empty()) attributes = " {" + attributes + "}";
  std::string types;
  for (const ValueId output : node.outputs)
    types += fmt::format("{}{}", types.empty() ? "" : ", ", to_string(graph.type(output)));
  return fmt::format("  {} = {}({}){} : {}\n", names(node.outputs), node.op->name, names(node.inputs), attributes,
                     types);
}

SymbolicType parse_type(LineReader& line) {
  const std::string_view text = line.bracketed_type();
  const size_t open = text.find('[');
  const auto dtype = open == text.npos ? std::nullopt : parse_dtype(text.substr(0, open));
  if (!dtype) line.bad(fmt::format("a type like f32[N,3] instead of '{}'", text));
  SymbolicType type{*dtype, parse_expressions(text.substr(open + 1, text.size() - open - 2))};
  for (const Expression& dim : type.dims)
    if (dim.constant().value_or(0) < 0) line.bad(fmt::format("no negative dimension in '{}'", text));
  return type;
}

/// An expression where the op's attribute is an integer or a list of them, else an ordinary value.
SymbolicAttribute parse_attribute(const OpDef& op, const std::string& name, std::string_view text,
                                  const ConstantTable& constants) {
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.name != name) continue;
    if (std::holds_alternative<int64_t>(spec.value)) return Expression::parse(text);
    if (std::holds_alternative<std::vector<int64_t>>(spec.value) && text.starts_with("[") && text.ends_with("]"))
      return parse_expressions(text.substr(1, text.size() - 2));
  }
  if (text.starts_with("<")) return AttributeValue(parse_constant(text, constants));
  return parse_attribute_value(text);
}

class GraphReader {
 public:
  GraphReader(std::string_view text, const OpRegistry& registry, const ConstantTable& constants)
      : text_(text), constants_(constants), graph_(registry) {}

  SymbolicGraph read() {
    LineReader first = next_line();
    if (first.word() != "graph") first.bad("'graph \"name\" {' as the first line");
    graph_ = SymbolicGraph(graph_.registry(), first.quoted_text());
    first.require('{');
    first.require_end();
    for (;;) {
      LineReader line = next_line();
      if (line.accept('}')) {
        line.require_end();
        break;
      }
      line.next_is('%') ? read_node(line) : read_word(line);
      line.require_end();
    }
    while (!text_.empty())
      if (LineReader rest = take_line(); !rest.at_end()) rest.bad("nothing after the closing brace");
    return std::move(graph_);
  }

 private:
  LineReader take_line() {
    const size_t end = std::min(text_.find('\n'), text_.size());
    LineReader line(text_.substr(0, end), ++number_);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    return line;
  }
  /// The next one that is not empty.
  LineReader next_line() {
    while (!text_.empty())
      if (LineReader line = take_line(); !line.at_end()) return line;
    fail(ErrorKind::data, "graph text, line {}: the closing brace is missing", number_);
  }

  ValueId known_value(LineReader& line) {
    const std::string name = line.value_name();
    const ValueId id = graph_.find_value(name);
    if (!id.valid()) line.bad(fmt::format("a value that is defined above (there is no %{})", name));
    return id;
  }

  void read_word(LineReader& line) {
    const std::string word = line.word();
    if (word == "output" || word == "update") {
      const std::string name = line.quoted_text();
      const ValueId value = known_value(line);
      return word == "output" ? graph_.add_output(name, value) : graph_.add_update(name, value);
    }
    for (const InputKind kind : {InputKind::batch, InputKind::parameter, InputKind::state, InputKind::scalar}) {
      if (word != name_of(kind)) continue;
      const std::string value = line.value_name(), name = line.quoted_text();
      line.require(':');
      graph_.rename(graph_.add_input(kind, name, parse_type(line)), value);
      return;
    }
    line.bad("batch, parameter, state, scalar, output, update or a node instead of '" + word + "'");
  }

  void read_node(LineReader& line) {
    std::vector<std::string> names;
    do names.push_back(line.value_name());
    while (line.accept(','));
    line.require('=');
    const OpDef& op = graph_.registry().get(line.word());
    line.require('(');
    std::vector<ValueId> inputs;
    if (!line.accept(')')) {
      do inputs.push_back(known_value(line));
      while (line.accept(','));
      line.require(')');
    }
    SymbolicAttributes attributes;
    if (line.accept('{')) {
      do {
        const std::string name = line.word();
        line.require('=');
        attributes[name] = parse_attribute(op, name, line.attribute_token(), constants_);
      } while (line.accept(','));
      line.require('}');
    }
    line.require(':');
    std::vector<SymbolicType> types;
    do types.push_back(parse_type(line));
    while (line.accept(','));
    if (types.size() != names.size()) line.bad(fmt::format("{} types", names.size()));
    if (graph_.find_value(names.front()).valid()) line.bad(fmt::format("a new name (%{} is taken)", names.front()));
    const std::vector<ValueId> outputs = graph_.add_node(op.name, inputs, attributes, names.front(), types);
    for (size_t index = 0; index < outputs.size(); ++index) graph_.rename(outputs[index], names[index]);
  }

  std::string_view text_;
  const ConstantTable& constants_;
  SymbolicGraph graph_;
  int number_ = 0;
};

}  // namespace

std::string print_symbolic_graph(const SymbolicGraph& graph) {
  std::string text = fmt::format("graph {} {{\n", in_quotes(graph.name()));
  for (const GraphInput& input : graph.inputs())
    text += fmt::format("  {} %{} {} : {}\n", name_of(input.kind), graph.value(input.value).name, in_quotes(input.name),
                        to_string(graph.type(input.value)));
  for (const SymbolicNode& node : graph.nodes()) text += print_node(graph, node);
  for (const GraphOutput& output : graph.outputs())
    text += fmt::format("  output {} %{}\n", in_quotes(output.name), graph.value(output.value).name);
  for (const StateUpdate& update : graph.updates())
    text += fmt::format("  update {} %{}\n", in_quotes(update.state), graph.value(update.value).name);
  return text + "}\n";
}

SymbolicGraph parse_symbolic_graph(std::string_view text, const OpRegistry& registry, const ConstantTable& constants) {
  return GraphReader(text, registry, constants).read();
}

bool has_symbols(std::string_view text) {
  bool is_quoted = false, in_brackets = false, in_comment = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') is_quoted = in_brackets = in_comment = false;
    if (in_comment) continue;
    if (is_quoted) {
      if (c == '\\') ++at;
      if (c == '"') is_quoted = false;
    } else if (c == '"') {
      is_quoted = true;
    } else if (c == '#') {
      in_comment = true;
    } else if (c == '[') {
      in_brackets = true;
    } else if (c == ']') {
      in_brackets = false;
    } else if (in_brackets && (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_')) {
      return true;
    }
  }
  return false;
}

}  // namespace weft
