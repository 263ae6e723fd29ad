#include "weft/deploy/inference_graph.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/constant_node.h"
#include "weft/passes/clean/eliminate_dead_code.h"

namespace weft::deploy {

namespace {

class Inliner {
 public:
  Inliner(const Graph& graph, const std::map<std::string, Constant>& values)
      : graph_(graph), values_(values), result_(graph.registry(), graph.name()), mapped_(graph.values().size()) {
    const auto users = find_users(graph);
    for (const GraphInput& input : graph.inputs())
      if (!users[static_cast<size_t>(input.value.index)].empty()) read_.push_back(&input);
    for (const GraphOutput& output : graph.outputs())
      if (graph.producer(output.value) == nullptr)
        fail(ErrorKind::usage, "the output '{}' of '{}' is an input of it; there is nothing to compute", output.name,
             graph.name());
  }

  Graph run(const std::vector<std::string>& order) {
    const auto place = [&](const GraphInput* input) {
      return std::find(order.begin(), order.end(), input->name) - order.begin();
    };
    std::stable_sort(read_.begin(), read_.end(),
                     [&](const GraphInput* a, const GraphInput* b) { return place(a) < place(b); });
    for (const GraphInput* input : read_)
      if (input->kind == InputKind::batch) {
        map(input->value, result_.add_input(InputKind::batch, input->name, graph_.type(input->value)));
        result_.rename(mapped(input->value), graph_.value(input->value).name);
      }
    for (const GraphInput* input : read_)
      if (input->kind != InputKind::batch) map(input->value, add_constant(*input));
    for (size_t index = 0; index < graph_.nodes().size(); ++index) copy(NodeId{static_cast<int32_t>(index)});
    for (const GraphOutput& output : graph_.outputs()) result_.add_output(output.name, mapped(output.value));
    return std::move(result_);
  }

 private:
  ValueId mapped(ValueId value) const { return mapped_[static_cast<size_t>(value.index)]; }
  void map(ValueId from, ValueId to) { mapped_[static_cast<size_t>(from.index)] = to; }

  ValueId add_constant(const GraphInput& input) {
    const auto found = values_.find(input.name);
    if (found == values_.end() || input.kind == InputKind::scalar)
      fail(ErrorKind::usage, "the {} '{}' of '{}' has no value that could be kept", name_of(input.kind), input.name,
           graph_.name());
    if (found->second->type() != graph_.type(input.value))
      fail(ErrorKind::shape, "'{}' is {}, its value {}", input.name, to_string(graph_.type(input.value)),
           to_string(found->second->type()));
    return result_.add(kConstantTensor, {}, {{kConstantData, found->second}}, graph_.value(input.value).name);
  }

  void copy(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) operands.push_back(mapped(input));
    const std::vector<ValueId> outputs =
        result_.add_node(node.op->name, operands, node.attributes, graph_.node_name(id));
    for (size_t index = 0; index < outputs.size(); ++index) {
      result_.rename(outputs[index], graph_.value(node.outputs[index]).name);
      map(node.outputs[index], outputs[index]);
    }
  }

  const Graph& graph_;
  const std::map<std::string, Constant>& values_;
  Graph result_;
  std::vector<ValueId> mapped_;
  std::vector<const GraphInput*> read_;
};

}  // namespace

Graph with_constants(const Graph& graph, const std::map<std::string, Constant>& values,
                     const std::vector<std::string>& inputs) {
  const Graph alive = passes::eliminate_dead_code(graph);
  return Inliner(alive, values).run(inputs);
}

}  // namespace weft::deploy
