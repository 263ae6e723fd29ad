#include "weft/graph/rewrite.h"

#include "weft/base/error.h"

namespace weft {

Rewriter::Rewriter(const Graph& source)
    : source_(source), result_(source.registry(), source.name()), mapped_(source.values().size()) {
  for (const GraphInput& input : source.inputs()) {
    replace(input.value, result_.add_input(input.kind, input.name, source.type(input.value)));
    result_.copy_sharding(map(input.value), source, input.value);
  }
}

std::vector<ValueId> Rewriter::map(const std::vector<ValueId>& old_values) const {
  std::vector<ValueId> mapped;
  for (const ValueId value : old_values) mapped.push_back(map(value));
  return mapped;
}

void Rewriter::copy(NodeId id) {
  const Node& node = source_.node(id);
  const std::vector<ValueId> outputs =
      result_.add_node(node.op->name, map(node.inputs), node.attributes, source_.node_name(id));
  for (size_t index = 0; index < outputs.size(); ++index) {
    result_.set_layout(outputs[index], source_.type(node.outputs[index]).layout);
    replace(node.outputs[index], outputs[index]);
    result_.copy_sharding(outputs[index], source_, node.outputs[index]);
  }
}

Graph Rewriter::finish() {
  for (const GraphOutput& output : source_.outputs()) {
    check(is_mapped(output.value), "a pass dropped a graph output");
    result_.add_output(output.name, map(output.value));
  }
  for (const StateUpdate& update : source_.updates()) {
    check(is_mapped(update.value), "a pass dropped a state update");
    result_.add_update(update.state, map(update.value));
  }
  return std::move(result_);
}

}  // namespace weft
