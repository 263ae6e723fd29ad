// Looking elements up by indices, and the indices of elements.
#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

/// Negative indices count from the end.
ValueId from_the_front(Graph& graph, ValueId indices, int64_t size) {
  const DType dtype = graph.type(indices).dtype;
  const ValueId wide = dtype == DType::i64 ? indices : ops::cast(graph, indices, DType::i64);
  const ValueId zero = ops::constant(graph, DType::i64, Shape{}, int64_t{0});
  const ValueId is_negative = as_boolean(graph, ops::less(graph, wide, zero));
  const ValueId moved = ops::add(graph, wide, ops::constant(graph, DType::i64, Shape{}, size));
  return ops::where(graph, is_negative, moved, wide);
}

/// The same of the operand, now where it is known.
ValueId indices_of(NodeContext& node, int input, int64_t size) {
  const Tensor* known = node.find_known(input);
  if (known == nullptr) return from_the_front(node.graph(), node.value(input), size);
  auto numbers = integers_of(*known);
  for (int64_t& index : numbers) {
    if (index < -size || index >= size) node.fail(fmt::format("has the index {} of an axis of {}", index, size));
    if (index < 0) index += size;
  }
  Tensor tensor(DType::i64, known->shape());
  std::copy(numbers.begin(), numbers.end(), tensor.data_as<int64_t>());
  return ops::constant_tensor(node.graph(), Constant(tensor));
}

std::vector<ValueId> convert_gather(NodeContext& node) {
  const int64_t axis = resolve_axis(node, node.integer("axis", 0), node.rank(0));
  const ValueId indices = indices_of(node, 1, node.shape(0)[static_cast<int>(axis)]);
  return {ops::take(node.graph(), node.value(0), indices, axis, node.hint())};
}

std::vector<ValueId> convert_gather_elements(NodeContext& node) {
  Graph& graph = node.graph();
  const int64_t axis = resolve_axis(node, node.integer("axis", 0), node.rank(0));
  ValueId x = node.value(0);
  // Of the other axes only as much as the indices have.
  std::vector<int64_t> ends = node.shape(1).dims();
  if (node.rank(1) != node.rank(0)) node.fail("wants indices of its operand's rank");
  ends[static_cast<size_t>(axis)] = node.shape(0)[static_cast<int>(axis)];
  if (ends != node.shape(0).dims()) x = ops::slice(graph, x, std::vector<int64_t>(ends.size(), 0), ends);
  const ValueId indices = indices_of(node, 1, node.shape(0)[static_cast<int>(axis)]);
  return {ops::gather(graph, x, indices, axis, node.hint())};
}

std::vector<ValueId> convert_one_hot(NodeContext& node) {
  Graph& graph = node.graph();
  const int64_t depth = node.known_integer(1);
  const int rank = node.rank(0);
  const int64_t axis = resolve_axis(node, node.integer("axis", -1), rank + 1);
  ValueId indices = node.value(0);
  if (node.dtype(0) != DType::i64) indices = ops::cast(graph, indices, DType::i64);
  indices = unsqueeze(graph, from_the_front(graph, indices, depth), {axis});
  std::vector<int64_t> shape(static_cast<size_t>(rank) + 1, 1);
  shape[static_cast<size_t>(axis)] = depth;
  const ValueId classes = ops::reshape(graph, ops::iota(graph, DType::i64, depth), shape);
  const ValueId is_hot = as_boolean(graph, ops::equal(graph, indices, classes));
  const ValueId off = ops::reshape(graph, ops::slice(graph, node.value(2), {0}, {1}), std::vector<int64_t>{});
  const ValueId on = ops::reshape(graph, ops::slice(graph, node.value(2), {1}, {2}), std::vector<int64_t>{});
  return {ops::where(graph, is_hot, on, off, node.hint())};
}

std::vector<ValueId> convert_arg(NodeContext& node, bool is_max) {
  Graph& graph = node.graph();
  const int64_t axis = resolve_axis(node, node.integer("axis", 0), node.rank(0));
  const bool keeps = node.integer("keepdims", 1) != 0;
  const bool takes_last = node.integer("select_last_index", 0) != 0;
  ValueId x = node.value(0);
  const int64_t size = node.shape(0)[static_cast<int>(axis)];
  if (takes_last) {
    const auto rank = static_cast<size_t>(node.rank(0));
    std::vector<int64_t> starts(rank, 0), ends = node.shape(0).dims(), steps(rank, 1);
    starts[static_cast<size_t>(axis)] = size - 1;
    ends[static_cast<size_t>(axis)] = -size - 1;
    steps[static_cast<size_t>(axis)] = -1;
    x = ops::strided_slice(graph, x, starts, ends, steps);
  }
  const ValueId found = is_max ? ops::argmax(graph, x, axis, keeps) : ops::argmin(graph, x, axis, keeps);
  const ValueId wide = ops::cast(graph, found, DType::i64, node.hint());
  if (!takes_last) return {wide};
  return {ops::subtract(graph, ops::constant(graph, DType::i64, Shape{}, size - 1), wide, node.hint())};
}

std::vector<ValueId> convert_cumulative_sum(NodeContext& node) {
  const int64_t axis = resolve_axis(node, node.known_integer(1), node.rank(0));
  return {ops::cumulative_sum(node.graph(), node.value(0), axis, node.integer("reverse", 0) != 0,
                              node.integer("exclusive", 0) != 0, node.hint())};
}

std::vector<ValueId> convert_top_k(NodeContext& node) {
  const int64_t axis = resolve_axis(node, node.integer("axis", -1), node.rank(0));
  const int64_t k = node.opset() >= 10 ? node.known_integer(1) : node.integer("k");
  const auto found = ops::top_k(node.graph(), node.value(0), k, axis, node.integer("largest", 1) != 0, node.hint());
  return {found.values, found.indices};
}

/// "none", "add", "mul", "max" or "min" as weft's ops call it.
std::string reduction_of(NodeContext& node) {
  const std::string reduction = node.text("reduction", "none");
  if (reduction == "mul") return "multiply";
  if (reduction == "max") return "maximum";
  if (reduction == "min") return "minimum";
  if (reduction != "none" && reduction != "add") node.fail("has the unknown reduction '" + reduction + "'");
  return reduction;
}

std::vector<ValueId> convert_scatter_elements(NodeContext& node) {
  const int64_t axis = resolve_axis(node, node.integer("axis", 0), node.rank(0));
  return {ops::scatter_elements(node.graph(), node.value(0), node.value(1), node.value(2), axis, reduction_of(node),
                                node.hint())};
}

std::vector<ValueId> convert_gather_nd(NodeContext& node) {
  return {ops::gather_nd(node.graph(), node.value(0), node.value(1), node.integer("batch_dims", 0), node.hint())};
}

std::vector<ValueId> convert_scatter_nd(NodeContext& node) {
  return {
      ops::scatter_nd(node.graph(), node.value(0), node.value(1), node.value(2), reduction_of(node), 0, node.hint())};
}

}  // namespace

void add_indexing(OperatorTable& table) {
  const std::string family = "indexing";
  table.add(family, "Gather", convert_gather);
  table.add(family, "GatherElements", convert_gather_elements);
  table.add(family, "OneHot", convert_one_hot);
  table.add(family, "ArgMax", [](NodeContext& node) { return convert_arg(node, true); });
  table.add(family, "ArgMin", [](NodeContext& node) { return convert_arg(node, false); });
  table.add(family, "CumSum", convert_cumulative_sum);
  table.add(family, "TopK", convert_top_k);
  table.add(family, "Scatter", convert_scatter_elements);
  table.add(family, "ScatterElements", convert_scatter_elements);
  table.add(family, "GatherND", convert_gather_nd);
  table.add(family, "ScatterND", convert_scatter_nd);
}

}  // namespace weft::onnx
