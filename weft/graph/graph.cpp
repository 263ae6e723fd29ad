#include "weft/graph/graph.h"

#include <fmt/format.h>

#include <cctype>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/operand_range.h"

namespace weft {

namespace {

std::string sanitize(const std::string& hint) {
  std::string name;
  for (const char c : hint)
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' || c == '-' ? c : '_';
  return name;
}

}  // namespace

std::string_view name_of(InputKind kind) {
  constexpr std::string_view names[] = {"batch", "parameter", "state", "scalar"};
  return names[static_cast<size_t>(kind)];
}

bool is_scalar_input(const TensorType& type) {
  return (type.dtype == DType::f32 || type.dtype == DType::i64) && type.elements() == 1 &&
         type.bytes() == byte_size(type.dtype, 1);
}

std::string Graph::unique_name(const std::string& hint) {
  const std::string base = sanitize(hint);
  if (!by_name_.contains(base)) return base;
  // Those below the suffix are taken.
  int& suffix = next_suffixes_.try_emplace(base, 2).first->second;
  std::string name = fmt::format("{}_{}", base, suffix);
  while (by_name_.contains(name)) name = fmt::format("{}_{}", base, ++suffix);
  return name;
}

ValueId Graph::add_input(InputKind kind, const std::string& name, TensorType type) {
  if (find_input(name) != nullptr) fail(ErrorKind::usage, "graph '{}' has an input '{}' already", name_, name);
  if (!has_bounded_size(type))
    fail(ErrorKind::shape, "graph '{}': input '{}' is {}, more than any memory holds", name_, name, to_string(type));
  if (kind == InputKind::scalar && !is_scalar_input(type))
    fail(ErrorKind::shape, "graph '{}': scalar '{}' is {}; a scalar input is one number of f32 or i64", name_, name,
         to_string(type));
  const ValueId id{static_cast<int32_t>(values_.size())};
  values_.push_back({unique_name(name), std::move(type), NodeId{}, 0});
  by_name_.emplace(values_.back().name, id);
  input_by_name_.emplace(name, inputs_.size());
  inputs_.push_back({kind, name, id});
  return id;
}

std::vector<ValueId> Graph::add_node(const std::string& op_name, const std::vector<ValueId>& inputs,
                                     const Attributes& attributes, const std::string& name_hint) {
  const OpDef& op = registry_->get(op_name);
  const std::string hint = name_hint.empty() ? op.name : name_hint;
  const auto [fewest, most] = operand_range(op);
  if (inputs.size() < fewest || inputs.size() > most)
    fail(ErrorKind::usage, "[{}] '{}': wants {}{} operands, got {}", op.name, hint, fewest,
         most == fewest            ? ""
         : most > op.inputs.size() ? " or more"
                                   : fmt::format(" to {}", most),
         inputs.size());
  std::vector<TensorType> input_types;
  std::vector<std::string> input_names;
  for (const ValueId input : inputs) {
    check(input.valid() && static_cast<size_t>(input.index) < values_.size(), "an operand is no value of the graph");
    input_types.push_back(type(input));
    input_names.push_back(value(input).name);
  }
  Node node{&op, inputs, {}, complete_attributes(op, hint, attributes)};
  const std::string base = unique_name(hint);
  const std::vector<TensorType> output_types = op.infer({op, base, input_types, input_names, node.attributes});
  const bool any_number = !op.outputs.empty() && op.outputs.back().ends_with("...");
  if (output_types.empty() || (output_types.size() > op.outputs.size() && !any_number))
    fail(ErrorKind::usage, "[{}] '{}': its shape rule gives {} outputs, the op has {}; mend the rule", op.name, base,
         output_types.size(), op.outputs.size());
  for (const TensorType& output : output_types)
    if (!has_bounded_size(output))
      fail(ErrorKind::shape, "[{}] '{}': gives {}, more than any memory holds", op.name, base, to_string(output));
  const NodeId node_id{static_cast<int32_t>(nodes_.size())};
  for (size_t index = 0; index < output_types.size(); ++index) {
    const ValueId id{static_cast<int32_t>(values_.size())};
    const std::string name = index == 0 ? base : unique_name(fmt::format("{}.{}", base, index));
    values_.push_back({name, output_types[index], node_id, static_cast<int>(index)});
    by_name_.emplace(name, id);
    node.outputs.push_back(id);
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void Graph::add_output(const std::string& name, ValueId value) {
  if (find_output(name) != nullptr) fail(ErrorKind::usage, "graph '{}' has an output '{}' already", name_, name);
  output_by_name_.emplace(name, outputs_.size());
  outputs_.push_back({name, value});
}

void Graph::add_update(const std::string& state, ValueId value) {
  const GraphInput* input = find_input(state);
  if (input == nullptr || (input->kind != InputKind::parameter && input->kind != InputKind::state))
    fail(ErrorKind::usage, "graph '{}' has no state '{}' to update", name_, state);
  const TensorType &from = type(input->value), &to = type(value);
  if (from.shape != to.shape || from.dtype != to.dtype)
    fail(ErrorKind::shape, "update of '{}': state {} cannot become {}", state, to_string(from), to_string(to));
  updates_.push_back({state, value});
}

void Graph::set_sharding(ValueId id, Sharding sharding) {
  Value& known = values_[static_cast<size_t>(id.index)];
  if (known.type.shape != part_shape(sharding))
    fail(ErrorKind::shape, "'{}' is {}, and a part of '{}' is {}", known.name, to_string(known.type),
         to_string(sharding), to_string(part_shape(sharding)));
  known.sharding = std::move(sharding);
}

void Graph::copy_sharding(ValueId value, const Graph& other, ValueId of) {
  if (other.sharding(of) && other.shape(of) == shape(value)) set_sharding(value, *other.sharding(of));
}

void Graph::set_layout(ValueId value, Layout layout) {
  values_[static_cast<size_t>(value.index)].type.layout = canonical(std::move(layout));
}

void Graph::rename(ValueId id, const std::string& name) {
  std::string& current = values_[static_cast<size_t>(id.index)].name;
  if (current == name) return;
  if (by_name_.contains(name)) fail(ErrorKind::usage, "graph '{}' has a value %{} already", name_, name);
  by_name_.erase(current);
  next_suffixes_.clear();  // the name is free again
  by_name_.emplace(name, id);
  current = name;
}

const Node* Graph::producer(ValueId id) const {
  const NodeId node_id = value(id).producer;
  return node_id.valid() ? &node(node_id) : nullptr;
}

const GraphInput* Graph::find_input(const std::string& name) const {
  const auto found = input_by_name_.find(name);
  return found == input_by_name_.end() ? nullptr : &inputs_[found->second];
}

const GraphOutput* Graph::find_output(const std::string& name) const {
  const auto found = output_by_name_.find(name);
  return found == output_by_name_.end() ? nullptr : &outputs_[found->second];
}

ValueId Graph::find_value(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? ValueId{} : found->second;
}

std::vector<std::vector<NodeId>> find_users(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.values().size());
  for (size_t index = 0; index < graph.nodes().size(); ++index)
    for (const ValueId input : graph.nodes()[index].inputs)
      users[static_cast<size_t>(input.index)].push_back(NodeId{static_cast<int32_t>(index)});
  return users;
}

NodeSignature signature_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  NodeSignature signature{node.op, graph.node_name(id), {}, {}, node.attributes};
  for (const ValueId input : node.inputs) signature.inputs.push_back(graph.type(input));
  for (const ValueId output : node.outputs) signature.outputs.push_back(graph.type(output));
  return signature;
}

}  // namespace weft
