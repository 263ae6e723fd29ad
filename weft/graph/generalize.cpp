#include "weft/graph/generalize.h"

#include <algorithm>
#include <unordered_map>

#include "weft/base/error.h"

namespace weft {

namespace {

/// Thrown and caught here alone: the graphs are of no common form.
struct NoCommonForm {};

void require(bool holds) {
  if (!holds) throw NoCommonForm{};
}

/// What a text leaves out.
bool is_default(const OpDef& op, const std::string& name, const AttributeValue& value) {
  return std::any_of(op.attributes.begin(), op.attributes.end(), [&](const AttributeSpec& spec) {
    return spec.name == name && !spec.required && spec.value == value;
  });
}

class Generalizer {
 public:
  Generalizer(const SizedGraph& first, const SizedGraph& second, const std::string& symbol)
      : first_(first),
        second_(second),
        symbol_(Expression::symbol(symbol)),
        result_(first.graph.registry(), first.graph.name()) {}

  SymbolicGraph run() {
    const Graph &a = first_.graph, &b = second_.graph;
    require(a.inputs().size() == b.inputs().size() && a.nodes().size() == b.nodes().size() &&
            a.outputs().size() == b.outputs().size() && a.updates().empty() && b.updates().empty());
    for (size_t index = 0; index < a.inputs().size(); ++index) add_input(a.inputs()[index], b.inputs()[index]);
    for (size_t index = 0; index < a.nodes().size(); ++index) add_node(a.nodes()[index], b.nodes()[index]);
    for (size_t index = 0; index < a.outputs().size(); ++index) {
      require(a.outputs()[index].name == b.outputs()[index].name);
      result_.add_output(a.outputs()[index].name, matched(a.outputs()[index].value, b.outputs()[index].value));
    }
    return std::move(result_);
  }

 private:
  /// b + a * symbol, which is both numbers at their sizes.
  Expression expression(int64_t first, int64_t second) const {
    if (first == second) return first;
    const int64_t difference = second - first, sizes = second_.size - first_.size;
    require(difference % sizes == 0);
    const int64_t slope = difference / sizes;
    return Expression(first - slope * first_.size) + Expression(slope) * symbol_;
  }

  std::vector<Expression> expressions(const std::vector<int64_t>& first, const std::vector<int64_t>& second) const {
    require(first.size() == second.size());
    std::vector<Expression> result;
    for (size_t index = 0; index < first.size(); ++index) result.push_back(expression(first[index], second[index]));
    return result;
  }

  SymbolicType type_of(ValueId first, ValueId second) const {
    const TensorType &a = first_.graph.type(first), &b = second_.graph.type(second);
    require(a.dtype == b.dtype && a.layout.is_plain() && b.layout.is_plain());
    return {a.dtype, expressions(a.shape.dims(), b.shape.dims())};
  }

  SymbolicAttribute attribute(const AttributeValue& first, const AttributeValue& second) const {
    if (first == second) return first;
    if (const auto* a = std::get_if<int64_t>(&first), *b = std::get_if<int64_t>(&second); a != nullptr && b != nullptr)
      return expression(*a, *b);
    using List = std::vector<int64_t>;
    const auto *a = std::get_if<List>(&first), *b = std::get_if<List>(&second);
    require(a != nullptr && b != nullptr);
    return expressions(*a, *b);
  }

  void map(ValueId first, ValueId second, ValueId result) {
    result_.rename(result, first_.graph.value(first).name);
    mapped_[first.index] = {second, result};
  }
  /// The value that stands for both.
  ValueId matched(ValueId first, ValueId second) const {
    const auto found = mapped_.find(first.index);
    require(found != mapped_.end() && found->second.second == second);
    return found->second.result;
  }

  void add_input(const GraphInput& first, const GraphInput& second) {
    require(first.name == second.name && first.kind == second.kind);
    map(first.value, second.value, result_.add_input(first.kind, first.name, type_of(first.value, second.value)));
  }

  void add_node(const Node& first, const Node& second) {
    require(first.op == second.op && first.inputs.size() == second.inputs.size() &&
            first.outputs.size() == second.outputs.size() &&
            first.attributes.values().size() == second.attributes.values().size());
    std::vector<ValueId> operands;
    for (size_t index = 0; index < first.inputs.size(); ++index)
      operands.push_back(matched(first.inputs[index], second.inputs[index]));
    SymbolicAttributes attributes;
    for (const auto& [name, value] : first.attributes.values()) {
      require(second.attributes.has(name));
      const AttributeValue& other = second.attributes.values().at(name);
      if (value != other || !is_default(*first.op, name, value)) attributes.emplace(name, attribute(value, other));
    }
    std::vector<SymbolicType> types;
    for (size_t index = 0; index < first.outputs.size(); ++index)
      types.push_back(type_of(first.outputs[index], second.outputs[index]));
    const std::string& name = first_.graph.value(first.outputs[0]).name;
    const std::vector<ValueId> outputs = result_.add_node(first.op->name, operands, attributes, name, types);
    for (size_t index = 0; index < outputs.size(); ++index)
      map(first.outputs[index], second.outputs[index], outputs[index]);
  }

  struct Match {
    ValueId second, result;
  };

  const SizedGraph first_, second_;
  const Expression symbol_;
  SymbolicGraph result_;
  std::unordered_map<int32_t, Match> mapped_;  // by the value of the first graph
};

}  // namespace

std::optional<SymbolicGraph> generalize(const SizedGraph& first, const SizedGraph& second, const std::string& symbol) {
  check(first.size != second.size, "a graph is generalized from two sizes");
  try {
    return Generalizer(first, second, symbol).run();
  } catch (const NoCommonForm&) {
    return std::nullopt;
  } catch (const Error& error) {
    // The rule of an op cannot follow the symbol, or finds another size than both graphs have.
    if (error.kind() == ErrorKind::internal) throw;
    return std::nullopt;
  }
}

}  // namespace weft
