// One training step as a graph: values in single assignment, nodes in topological order, named inputs and outputs.
// The step is a pure function (State, Batch, Scalars) -> (State, Outputs).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/graph/attributes.h"
#include "weft/graph/ids.h"
#include "weft/graph/op_def.h"
#include "weft/graph/sharding.h"
#include "weft/tensor/tensor.h"

namespace weft {

struct Value {
  std::string name;  // unique in its graph; letters, digits, '_', '.', '/', '-'
  TensorType type;   // logical shape and physical layout
  NodeId producer;   // invalid: a graph input
  int output_index = 0;
  // Where ranks share it: what this rank has, which the type is of. None: all of it.
  std::optional<Sharding> sharding = {};
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
};

enum class InputKind {
  batch,      // fed anew each step: images, labels
  parameter,  // state that is trained
  state,      // other state: running statistics, momentum
  scalar,     // one number per step: learning_rate, step, seed
};
std::string_view name_of(InputKind kind);
/// What a scalar input may be: one number of f32 or i64, without padding.
bool is_scalar_input(const TensorType& type);

struct GraphInput {
  InputKind kind;
  std::string name;  // e.g. "layer1.0.conv1.weight"
  ValueId value;
};
/// Something the caller reads after a step: "loss", "logits".
struct GraphOutput {
  std::string name;
  ValueId value;
};
/// The successor of a parameter or state after the step.
struct StateUpdate {
  std::string state;
  ValueId value;
};

class Graph {
 public:
  explicit Graph(const OpRegistry& registry, std::string name = "graph")
      : registry_(&registry), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  const OpRegistry& registry() const { return *registry_; }

  /// Error(usage) where the name is taken, Error(shape) where the type is no scalar's or larger than any memory.
  ValueId add_input(InputKind kind, const std::string& name, TensorType type);

  /// Adds a node; infers output types (plain layouts); throws Error(shape) or Error(usage) with names and shapes.
  /// Outputs are named `name_hint`, `name_hint.1`, ... made unique with a "_2" suffix where taken.
  /// An empty hint takes the op's name.
  std::vector<ValueId> add_node(const std::string& op, const std::vector<ValueId>& inputs,
                                const Attributes& attributes = {}, const std::string& name_hint = "");
  /// For ops with one output (or whose first one is meant).
  ValueId add(const std::string& op, const std::vector<ValueId>& inputs, const Attributes& attributes = {},
              const std::string& name_hint = "") {
    return add_node(op, inputs, attributes, name_hint).front();
  }

  void add_output(const std::string& name, ValueId value);
  void clear_outputs() {
    outputs_.clear();
    output_by_name_.clear();
  }
  void add_update(const std::string& state, ValueId value);
  void set_layout(ValueId value, Layout layout);
  /// Error(shape) where the value is no part of such a tensor.
  void set_sharding(ValueId value, Sharding sharding);
  /// That of a value of another graph, where it has one and both have the same shape.
  void copy_sharding(ValueId value, const Graph& other, ValueId of);
  /// Error(usage) where the name is taken by another value.
  void rename(ValueId value, const std::string& name);

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::vector<StateUpdate>& updates() const { return updates_; }

  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id.index)]; }
  const TensorType& type(ValueId id) const { return value(id).type; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  const std::optional<Sharding>& sharding(ValueId id) const { return value(id).sharding; }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id.index)]; }
  /// The producing node, or nullptr for a graph input.
  const Node* producer(ValueId id) const;
  /// The name of a node is that of its first output.
  const std::string& node_name(NodeId id) const { return value(node(id).outputs.front()).name; }
  /// nullptr where there is none of that name.
  const GraphInput* find_input(const std::string& name) const;
  const GraphOutput* find_output(const std::string& name) const;
  ValueId find_value(const std::string& name) const;

 private:
  std::string unique_name(const std::string& hint);

  const OpRegistry* registry_;
  std::string name_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<GraphInput> inputs_;
  std::vector<GraphOutput> outputs_;
  std::vector<StateUpdate> updates_;
  std::unordered_map<std::string, ValueId> by_name_;
  std::unordered_map<std::string, size_t> input_by_name_, output_by_name_;  // positions
  std::unordered_map<std::string, int> next_suffixes_;                      // of names that several wanted
};

/// For each value the nodes that read it, in order, a node once per operand position.
std::vector<std::vector<NodeId>> find_users(const Graph& graph);

/// What a backend needs to know of a node: no graph, only types.
struct NodeSignature {
  const OpDef* op = nullptr;
  std::string name;
  std::vector<TensorType> inputs, outputs;
  Attributes attributes;
};
NodeSignature signature_of(const Graph& graph, NodeId node);

}  // namespace weft
