// Reductions over axes.
#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

struct Reduction {
  std::vector<int64_t> axes;
  bool keeps_dims = true;
  bool is_nothing = false;
};

Reduction find_reduction(NodeContext& node) {
  Reduction result;
  result.keeps_dims = node.integer("keepdims", 1) != 0;
  std::vector<int64_t> axes = node.integers("axes");
  if (node.has(1)) axes = node.known_integers(1);
  result.is_nothing = axes.empty() && node.integer("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && !result.is_nothing) axes = all_axes(node.rank(0));
  result.axes = resolve_axes(node, axes, node.rank(0));
  return result;
}

using Reduce = ValueId (*)(Graph&, ValueId, std::vector<int64_t>, bool, const std::string&);
using Map = std::function<ValueId(Graph&, ValueId)>;

/// A reduction of what `before` makes of the operand, and `after` of the sum. Maps of reals are computed in reals.
Convert reduction(Reduce reduce, Map before = {}, Map after = {}, bool is_real = false) {
  return [=](NodeContext& node) -> std::vector<ValueId> {
    Graph& graph = node.graph();
    const Reduction what = find_reduction(node);
    const auto compute = [&](ValueId x) {
      if (before) x = before(graph, x);
      // A reduction of nothing, and of a scalar, leaves what the maps make.
      if (!what.axes.empty()) x = reduce(graph, x, what.axes, what.keeps_dims, node.hint());
      return after ? after(graph, x) : x;
    };
    if (is_real) return {computed_in_reals(graph, node.value(0), compute)};
    return {compute(node.value(0))};
  };
}

/// Booleans are ordered: false before true.
Convert extremum(Reduce reduce) {
  return [reduce](NodeContext& node) -> std::vector<ValueId> {
    Graph& graph = node.graph();
    const Reduction what = find_reduction(node);
    if (what.axes.empty()) return {node.value(0)};
    if (node.dtype(0) != DType::boolean) return {reduce(graph, node.value(0), what.axes, what.keeps_dims, node.hint())};
    const ValueId bytes = ops::cast(graph, node.value(0), DType::u8);
    return {ops::cast(graph, reduce(graph, bytes, what.axes, what.keeps_dims, ""), DType::boolean, node.hint())};
  };
}

std::vector<ValueId> convert_log_sum_exp(NodeContext& node) {
  Graph& graph = node.graph();
  const Reduction what = find_reduction(node);
  return {computed_in_reals(graph, node.value(0), [&](ValueId x) {
    if (what.axes.empty()) return x;
    return ops::logsumexp(graph, x, what.axes, what.keeps_dims, node.hint());
  })};
}

}  // namespace

void add_reductions(OperatorTable& table) {
  const std::string family = "reduction";
  const Map log = [](Graph& graph, ValueId x) { return ops::log(graph, x); };
  const Map sqrt = [](Graph& graph, ValueId x) { return ops::sqrt(graph, x); };
  const Map square = [](Graph& graph, ValueId x) { return ops::square(graph, x); };
  const Map absolute = [](Graph& graph, ValueId x) { return ops::absolute(graph, x); };
  table.add(family, "ReduceSum", reduction(ops::reduce_sum));
  table.add(family, "ReduceMean", reduction(ops::reduce_mean, {}, {}, true));
  table.add(family, "ReduceProd", reduction(ops::reduce_prod));
  table.add(family, "ReduceMax", extremum(ops::reduce_max));
  table.add(family, "ReduceMin", extremum(ops::reduce_min));
  table.add(family, "ReduceL1", reduction(ops::reduce_sum, absolute));
  table.add(family, "ReduceL2", reduction(ops::reduce_sum, square, sqrt, true));
  table.add(family, "ReduceSumSquare", reduction(ops::reduce_sum, square));
  table.add(family, "ReduceLogSum", reduction(ops::reduce_sum, {}, log, true));
  table.add(family, "ReduceLogSumExp", convert_log_sum_exp);
}

}  // namespace weft::onnx
