#include "weft/graph/symbolic_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/operand_range.h"
#include "weft/graph/symbolic_rule.h"

namespace weft {

namespace {

/// The expressions of an attribute.
std::vector<Expression> expressions_of(const SymbolicAttribute& attribute) {
  if (const auto* one = std::get_if<Expression>(&attribute)) return {*one};
  if (const auto* list = std::get_if<std::vector<Expression>>(&attribute)) return *list;
  return {};
}

bool is_known(const std::vector<Expression>& expressions) {
  return std::all_of(expressions.begin(), expressions.end(),
                     [](const Expression& expression) { return expression.constant().has_value(); });
}

AttributeValue evaluate(const SymbolicAttribute& attribute, const SymbolBindings& bindings) {
  if (const auto* plain = std::get_if<AttributeValue>(&attribute)) return *plain;
  if (const auto* one = std::get_if<Expression>(&attribute)) return one->evaluate(bindings);
  std::vector<int64_t> values;
  for (const Expression& expression : std::get<std::vector<Expression>>(attribute))
    values.push_back(expression.evaluate(bindings));
  return values;
}

Attributes evaluate(const SymbolicAttributes& attributes, const SymbolBindings& bindings) {
  Attributes values;
  for (const auto& [name, attribute] : attributes) values.set(name, evaluate(attribute, bindings));
  return values;
}

/// The type of a value; a dimension in which a symbol stands must be at least 1.
TensorType evaluate(const SymbolicValue& value, const SymbolBindings& bindings) {
  std::vector<int64_t> dims;
  for (const Expression& dim : value.type.dims) {
    dims.push_back(dim.evaluate(bindings));
    if (dims.back() >= 1 || dim.constant()) continue;
    std::string numbers;
    for (const std::string& name : dim.symbols())
      numbers += fmt::format("{}{}={}", numbers.empty() ? "" : ", ", name, bindings.at(name));
    fail(ErrorKind::shape, "the dimension {} of '{}' is {} for {}; a dimension with a symbol is at least 1",
         to_string(dim), value.name, dims.back(), numbers);
  }
  const Shape shape(std::move(dims));
  if (!has_bounded_size(shape))
    fail(ErrorKind::shape, "'{}' is {}, more than any memory holds", value.name, to_string(shape));
  return {value.type.dtype, shape, {}};
}

/// By the ordinary rule.
std::vector<SymbolicType> infer_known(const OpDef& op, const std::string& node_name,
                                      const std::vector<SymbolicType>& inputs,
                                      const std::vector<std::string>& input_names,
                                      const SymbolicAttributes& attributes) {
  std::vector<TensorType> types;
  for (size_t index = 0; index < inputs.size(); ++index)
    types.push_back(evaluate({input_names[index], inputs[index]}, {}));
  const Attributes complete = complete_attributes(op, node_name, evaluate(attributes, {}));
  std::vector<SymbolicType> results;
  for (const TensorType& type : op.infer({op, node_name, types, input_names, complete}))
    results.push_back(symbolic(type));
  return results;
}

void check_attributes(const OpDef& op, const std::string& node_name, const SymbolicAttributes& attributes) {
  for (const auto& [name, attribute] : attributes) {
    if (std::holds_alternative<AttributeValue>(attribute)) continue;
    const auto spec = std::find_if(op.attributes.begin(), op.attributes.end(),
                                   [&name = name](const AttributeSpec& known) { return known.name == name; });
    const bool is_list = std::holds_alternative<std::vector<Expression>>(attribute);
    const bool fits =
        spec != op.attributes.end() && (is_list ? std::holds_alternative<std::vector<int64_t>>(spec->value)
                                                : std::holds_alternative<int64_t>(spec->value));
    if (!fits)
      fail(ErrorKind::usage, "[{}] '{}': there is no attribute '{}' of {}", op.name, node_name, name,
           is_list ? "integers" : "an integer");
  }
}

}  // namespace

Expression SymbolicType::elements() const {
  Expression product = 1;
  for (const Expression& dim : dims) product = product * dim;
  return product;
}

std::string to_string(const SymbolicType& type) {
  return fmt::format("{}[{}]", name_of(type.dtype), to_string(type.dims));
}

SymbolicType symbolic(const TensorType& type) { return {type.dtype, {type.shape.begin(), type.shape.end()}}; }

Expression SymbolicContext::integer(const std::string& name) const { return integers(name).front(); }

std::vector<Expression> SymbolicContext::integers(const std::string& name) const {
  const auto found = attributes.find(name);
  if (found != attributes.end() && !std::holds_alternative<AttributeValue>(found->second))
    return expressions_of(found->second);
  const AttributeValue value = plain(name);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return {list->begin(), list->end()};
  if (const auto* one = std::get_if<int64_t>(&value)) return {Expression(*one)};
  fail("attribute '" + name + "' wants integers, got " + to_string(value));
}

AttributeValue SymbolicContext::plain(const std::string& name) const {
  const auto found = attributes.find(name);
  if (found != attributes.end()) {
    if (!is_known(expressions_of(found->second))) fail("attribute '" + name + "' cannot hold a symbol; write a number");
    return evaluate(found->second, {});
  }
  for (const AttributeSpec& spec : op.attributes)
    if (spec.name == name && !spec.required) return spec.value;
  fail("attribute '" + name + "' is required");
}

std::string SymbolicContext::describe(int input) const {
  return fmt::format("'{}' [{}]", input_names[static_cast<size_t>(input)], to_string(dims(input)));
}

void SymbolicContext::fail(const std::string& message) const {
  throw Error(ErrorKind::shape, fmt::format("[{}] '{}': {}", op.name, node_name, message));
}

int SymbolicContext::axis(int input, const std::string& attribute) const {
  const AttributeValue value = plain(attribute);
  const int64_t* given = std::get_if<int64_t>(&value);
  const int64_t rank = inputs[static_cast<size_t>(input)].rank();
  if (given == nullptr || *given < -rank || *given >= rank)
    fail(fmt::format("{} {} is not an axis of {}", attribute, to_string(value), describe(input)));
  return static_cast<int>(*given < 0 ? *given + rank : *given);
}

std::vector<TensorType> SymbolicContext::infer_with(const std::vector<Shape>& shapes) const {
  std::vector<TensorType> types;
  for (size_t index = 0; index < shapes.size(); ++index) {
    types.push_back({inputs[index].dtype, shapes[index], {}});
    if (!has_bounded_size(shapes[index])) fail(describe(static_cast<int>(index)) + " is more than any memory holds");
  }
  Attributes known;
  for (const auto& [name, attribute] : attributes)
    if (is_known(expressions_of(attribute))) known.set(name, evaluate(attribute, {}));
  return op.infer({op, node_name, types, input_names, complete_attributes(op, node_name, known)});
}

ValueId SymbolicGraph::add_value(const std::string& hint, SymbolicType type) {
  std::string name = hint;
  for (int suffix = 2; by_name_.contains(name); ++suffix) name = fmt::format("{}_{}", hint, suffix);
  const ValueId id{static_cast<int32_t>(values_.size())};
  by_name_.emplace(name, id);
  values_.push_back({std::move(name), std::move(type)});
  return id;
}

ValueId SymbolicGraph::add_input(InputKind kind, const std::string& name, SymbolicType type,
                                 const std::string& value_name) {
  for (const GraphInput& input : inputs_)
    if (input.name == name) fail(ErrorKind::usage, "graph '{}' has an input '{}' already", name_, name);
  const ValueId id = add_value(value_name.empty() ? name : value_name, std::move(type));
  inputs_.push_back({kind, name, id});
  return id;
}

std::vector<ValueId> SymbolicGraph::add_node(const std::string& op_name, const std::vector<ValueId>& inputs,
                                             const SymbolicAttributes& attributes, const std::string& name_hint,
                                             const std::vector<SymbolicType>& types) {
  const OpDef& op = registry_->get(op_name);
  const std::string hint = name_hint.empty() ? op.name : name_hint;
  check_attributes(op, hint, attributes);
  std::vector<SymbolicType> operands;
  std::vector<std::string> names;
  bool all_known = true;
  for (const ValueId input : inputs) {
    check(input.valid() && static_cast<size_t>(input.index) < values_.size(), "an operand is no value of the graph");
    operands.push_back(type(input));
    names.push_back(value(input).name);
    all_known = all_known && is_known(operands.back().dims);
  }
  for (const auto& [name, attribute] : attributes) all_known = all_known && is_known(expressions_of(attribute));
  const auto [fewest, most] = operand_range(op);
  if (inputs.size() < fewest || inputs.size() > most)
    fail(ErrorKind::usage, "[{}] '{}': wants {} operands, got {}", op.name, hint, fewest, inputs.size());
  std::vector<SymbolicType> results = types;
  if (all_known || op.infer_symbolic) {
    results = all_known ? infer_known(op, hint, operands, names, attributes)
                        : op.infer_symbolic({op, hint, operands, names, attributes});
    for (size_t index = 0; index < std::min(types.size(), results.size()); ++index)
      if (types[index] != results[index])
        fail(ErrorKind::shape, "[{}] '{}': is {}, its operands give {}", op.name, hint, to_string(types[index]),
             to_string(results[index]));
    if (!types.empty() && types.size() != results.size())
      fail(ErrorKind::shape, "[{}] '{}': gives {} results, not {}", op.name, hint, results.size(), types.size());
  } else if (types.empty()) {
    fail(ErrorKind::usage, "[{}] '{}': the op has no rule for symbols; say which types its results have", op.name,
         hint);
  }
  SymbolicNode node{&op, inputs, {}, attributes};
  for (size_t index = 0; index < results.size(); ++index)
    node.outputs.push_back(add_value(index == 0 ? hint : fmt::format("{}.{}", hint, index), results[index]));
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void SymbolicGraph::add_output(const std::string& name, ValueId value) { outputs_.push_back({name, value}); }
void SymbolicGraph::add_update(const std::string& state, ValueId value) { updates_.push_back({state, value}); }

void SymbolicGraph::rename(ValueId id, const std::string& name) {
  std::string& current = values_[static_cast<size_t>(id.index)].name;
  if (current == name) return;
  if (by_name_.contains(name)) fail(ErrorKind::usage, "graph '{}' has a value %{} already", name_, name);
  by_name_.erase(current);
  by_name_.emplace(name, id);
  current = name;
}

ValueId SymbolicGraph::find_value(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? ValueId{} : found->second;
}

std::set<std::string> SymbolicGraph::symbols() const {
  std::set<std::string> all;
  for (const SymbolicValue& value : values_)
    for (const Expression& dim : value.type.dims) all.merge(dim.symbols());
  for (const SymbolicNode& node : nodes_)
    for (const auto& [name, attribute] : node.attributes)
      for (const Expression& expression : expressions_of(attribute)) all.merge(expression.symbols());
  return all;
}

Graph bind_symbols(const SymbolicGraph& source, const SymbolBindings& bindings) {
  const std::set<std::string> symbols = source.symbols();
  for (const auto& [name, value] : bindings) {
    if (!symbols.contains(name))
      fail(ErrorKind::usage, "graph '{}' has no symbol '{}'{}", source.name(), name,
           suggestion(name, {symbols.begin(), symbols.end()}));
    if (value < 1) fail(ErrorKind::usage, "the symbol '{}' is {}; bind it to 1 or more", name, value);
  }
  for (const std::string& name : symbols)
    if (!bindings.contains(name))
      fail(ErrorKind::usage, "the symbol '{}' of graph '{}' has no value; bind it, as in {}=32", name, source.name(),
           name);
  Graph graph(source.registry(), source.name());
  std::unordered_map<int32_t, ValueId> bound;
  const auto rename = [&](ValueId from, ValueId to) {
    bound[from.index] = to;
    graph.rename(to, source.value(from).name);
  };
  for (const GraphInput& input : source.inputs())
    rename(input.value, graph.add_input(input.kind, input.name, evaluate(source.value(input.value), bindings)));
  for (const SymbolicNode& node : source.nodes()) {
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) operands.push_back(bound.at(input.index));
    const std::string& name = source.value(node.outputs[0]).name;
    const auto results = graph.add_node(node.op->name, operands, evaluate(node.attributes, bindings), name);
    if (results.size() != node.outputs.size())
      fail(ErrorKind::shape, "[{}] '{}': gives {} results, not {}", node.op->name, name, results.size(),
           node.outputs.size());
    for (size_t index = 0; index < results.size(); ++index) {
      const TensorType wanted = evaluate(source.value(node.outputs[index]), bindings);
      TensorType given = graph.type(results[index]);
      given.layout = {};
      if (given != wanted)
        fail(ErrorKind::shape, "[{}] '{}': {} is {} with these symbols, the operands give {}", node.op->name, name,
             to_string(source.type(node.outputs[index])), to_string(wanted), to_string(given));
      rename(node.outputs[index], results[index]);
    }
  }
  for (const GraphOutput& output : source.outputs()) graph.add_output(output.name, bound.at(output.value.index));
  for (const StateUpdate& update : source.updates()) graph.add_update(update.state, bound.at(update.value.index));
  return graph;
}

}  // namespace weft
