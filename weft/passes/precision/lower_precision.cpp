#include "weft/passes/precision/lower_precision.h"

#include <map>
#include <utility>

#include "weft/passes/precision/precision_plan.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, const PrecisionPolicy& policy)
      : graph_(graph), dtype_(policy.dtype), plan_(plan_precision(graph, policy)), rewriter_(graph) {}

  Graph run() {
    for (size_t index = 0; index < graph_.nodes().size(); ++index) emit(node_at(index));
    Graph& result = rewriter_.result();
    for (const GraphOutput& output : graph_.outputs()) result.add_output(output.name, unchanged(output.value));
    for (const StateUpdate& update : graph_.updates()) result.add_update(update.state, unchanged(update.value));
    return std::move(result);
  }

 private:
  bool is_constant(ValueId value) const {
    const Node* producer = graph_.producer(value);
    return producer != nullptr && producer->op->name == "constant" && graph_.type(value).dtype == DType::f32;
  }

  void emit(NodeId id) {
    const Node& node = graph_.node(id);
    if (is_constant(node.outputs[0])) return;  // made where it is read, in the types in which it is
    const bool narrow = plan_.is_narrow[index_of(id)];
    std::vector<ValueId> operands;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      const bool lowers = narrow && takes_narrow(*node.op, k, graph_.type(input));
      operands.push_back(lowers ? in_dtype(input, dtype_) : unchanged(input));
    }
    Attributes attributes = node.attributes;
    if (plan_.has_wide_result[index_of(id)]) attributes.set("result_dtype", std::string("f32"));
    copy_with(rewriter_, id, operands, attributes);
  }

  /// The value in the type that it has in the source.
  ValueId unchanged(ValueId value) { return in_dtype(value, graph_.type(value).dtype); }

  /// The value of the result that stands for `value` in this type: itself, an earlier copy, or a new cast.
  ValueId in_dtype(ValueId value, DType dtype) {
    const bool constant = is_constant(value);
    if (!constant && rewriter_.result().type(rewriter_.map(value)).dtype == dtype) return rewriter_.map(value);
    const auto [copy, is_new] = copies_.try_emplace({value, dtype});
    if (!is_new) return copy->second;
    Graph& result = rewriter_.result();
    const std::string& name = graph_.value(value).name;
    const std::string suffixed = name + "." + std::string(name_of(dtype));
    if (constant) {
      const TensorType& type = graph_.type(value);
      copy->second =
          add_constant(result, {dtype, type.shape, type.layout}, graph_.producer(value)->attributes.real("value"),
                       dtype == type.dtype ? name : suffixed);
      result.set_layout(copy->second, type.layout);
    } else {
      const ValueId source = rewriter_.map(value);
      copy->second = result.add("cast", {source}, {{"dtype", std::string(name_of(dtype))}}, suffixed);
      result.set_layout(copy->second, result.type(source).layout);
    }
    return copy->second;
  }

  const Graph& graph_;
  const DType dtype_;
  const PrecisionPlan plan_;
  Rewriter rewriter_;
  std::map<std::pair<ValueId, DType>, ValueId> copies_;  // by value of the source and type
};

}  // namespace

Graph lower_precision(const Graph& graph, const PrecisionPolicy& policy) {
  return policy.dtype == DType::f32 ? graph : Lowering(graph, policy).run();
}

}  // namespace weft::passes
