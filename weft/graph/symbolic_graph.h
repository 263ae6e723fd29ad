// A graph with dimensions that are not known yet. It can be built, inferred, printed and read; nothing runs it. Binding
// its symbols gives an ordinary graph, and passes, plans and kernels never see a symbol.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "weft/graph/expression.h"
#include "weft/graph/graph.h"

namespace weft {

struct SymbolicType {
  DType dtype = DType::f32;
  std::vector<Expression> dims;

  int rank() const { return static_cast<int>(dims.size()); }
  Expression elements() const;
  friend bool operator==(const SymbolicType&, const SymbolicType&) = default;
};
/// "f32[N,2*T+1]"
std::string to_string(const SymbolicType& type);
SymbolicType symbolic(const TensorType& type);

/// Of an attribute that is an integer or a list of them, expressions; of others, and where no symbol is in it, the
/// ordinary value.
using SymbolicAttribute = std::variant<AttributeValue, Expression, std::vector<Expression>>;
using SymbolicAttributes = std::map<std::string, SymbolicAttribute>;

struct SymbolicValue {
  std::string name;
  SymbolicType type;
};

struct SymbolicNode {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs, outputs;
  SymbolicAttributes attributes;  // as given: without defaults
};

class SymbolicGraph {
 public:
  explicit SymbolicGraph(const OpRegistry& registry, std::string name = "graph")
      : registry_(&registry), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  const OpRegistry& registry() const { return *registry_; }

  /// Error(usage) where the name is taken.
  ValueId add_input(InputKind kind, const std::string& name, SymbolicType type, const std::string& value_name = "");

  /// Infers the results' types by OpDef::infer_symbolic, or by the op's ordinary rule where no symbol is in operands
  /// and attributes. An op without a rule for symbols wants `types`, which are checked when the symbols are bound; for
  /// others they may be given, and Error(shape) where they are not what the operands give.
  std::vector<ValueId> add_node(const std::string& op, const std::vector<ValueId>& inputs,
                                const SymbolicAttributes& attributes = {}, const std::string& name_hint = "",
                                const std::vector<SymbolicType>& types = {});
  void add_output(const std::string& name, ValueId value);
  void add_update(const std::string& state, ValueId value);
  /// Error(usage) where the name is taken by another value.
  void rename(ValueId value, const std::string& name);

  const SymbolicValue& value(ValueId id) const { return values_[static_cast<size_t>(id.index)]; }
  const SymbolicType& type(ValueId id) const { return value(id).type; }
  /// Invalid where there is none.
  ValueId find_value(const std::string& name) const;
  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<SymbolicNode>& nodes() const { return nodes_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::vector<StateUpdate>& updates() const { return updates_; }
  /// In types and attributes.
  std::set<std::string> symbols() const;

 private:
  ValueId add_value(const std::string& hint, SymbolicType type);

  const OpRegistry* registry_;
  std::string name_;
  std::vector<SymbolicValue> values_;
  std::vector<SymbolicNode> nodes_;
  std::vector<GraphInput> inputs_;
  std::vector<GraphOutput> outputs_;
  std::vector<StateUpdate> updates_;
  std::unordered_map<std::string, ValueId> by_name_;
};

/// The graph with every symbol replaced by its number; the ordinary rules infer all types again and must agree with the
/// symbolic ones. Error(usage) that names a symbol without a value, or a name that is no symbol of the graph;
/// Error(shape) that names the value and the dimension where one becomes less than 1.
Graph bind_symbols(const SymbolicGraph& graph, const SymbolBindings& bindings);

}  // namespace weft
