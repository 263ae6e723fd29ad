// Shapes, layouts of elements, and types.
#include <algorithm>
#include <limits>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

/// An attribute in older versions, an operand in newer ones; nullopt where neither is there.
std::optional<std::vector<int64_t>> attribute_or_input(NodeContext& node, const std::string& name, int input) {
  if (node.has_attribute(name)) return node.integers(name);
  if (node.has(input)) return node.known_integers(input);
  return std::nullopt;
}

std::vector<ValueId> convert_reshape(NodeContext& node) {
  auto shape = attribute_or_input(node, "shape", 1);
  if (!shape) node.fail("has no shape");
  const bool allows_zero = node.integer("allowzero", 0) != 0;
  require_sizes(node, "dimensions", *shape);
  int64_t known = 1;
  int unknown = -1;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    int64_t& size = (*shape)[axis];
    if (size == 0 && !allows_zero) {
      if (static_cast<int>(axis) >= node.rank(0)) node.fail("copies a dimension that its operand has not");
      size = node.shape(0)[static_cast<int>(axis)];
    }
    if (size == -1 && unknown >= 0) node.fail("leaves two dimensions open");
    if (size == -1) unknown = static_cast<int>(axis);
    if (size < -1) node.fail(fmt::format("has the dimension {}", size));
    if (size >= 0 && __builtin_mul_overflow(known, size, &known)) node.fail("has a shape beyond any memory");
  }
  if (unknown >= 0) {
    if (known == 0) node.fail("leaves a dimension open beside one of 0");
    (*shape)[static_cast<size_t>(unknown)] = node.shape(0).elements() / known;
  }
  return {ops::reshape(node.graph(), node.value(0), *shape, node.hint())};
}

std::vector<ValueId> convert_flatten(NodeContext& node) {
  int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += node.rank(0);
  if (axis < 0 || axis > node.rank(0)) node.fail("has an axis that its operand has not");
  return {flattened(node.graph(), node.value(0), axis, node.hint())};
}

std::vector<ValueId> convert_squeeze(NodeContext& node) {
  auto axes = attribute_or_input(node, "axes", 1);
  if (!axes) {
    axes.emplace();
    for (int axis = 0; axis < node.rank(0); ++axis)
      if (node.shape(0)[axis] == 1) axes->push_back(axis);
  }
  *axes = resolve_axes(node, *axes, node.rank(0));
  for (const int64_t axis : *axes)
    if (node.shape(0)[static_cast<int>(axis)] != 1)
      node.fail(fmt::format("removes axis {} of {}, which is not 1", axis, to_string(node.shape(0))));
  return {squeeze(node.graph(), node.value(0), *axes, node.hint())};
}

std::vector<ValueId> convert_unsqueeze(NodeContext& node) {
  auto axes = attribute_or_input(node, "axes", 1);
  if (!axes) node.fail("has no axes");
  *axes = resolve_axes(node, *axes, node.rank(0) + static_cast<int64_t>(axes->size()));
  return {unsqueeze(node.graph(), node.value(0), *axes, node.hint())};
}

std::vector<ValueId> convert_transpose(NodeContext& node) {
  std::vector<int64_t> permutation = all_axes(node.rank(0));
  std::reverse(permutation.begin(), permutation.end());
  permutation = node.integers("perm", permutation);
  return {ops::transpose(node.graph(), node.value(0), permutation, node.hint())};
}

std::vector<ValueId> convert_concat(NodeContext& node) {
  std::vector<ValueId> parts;
  for (int input = 0; input < node.input_count(); ++input) parts.push_back(node.value(input));
  const int64_t axis = resolve_axis(node, node.integer("axis", 1), node.rank(0));
  if (parts.size() == 1) return parts;
  return {ops::concat(node.graph(), parts, axis, node.hint())};
}

std::vector<ValueId> convert_split(NodeContext& node) {
  const int64_t axis = resolve_axis(node, node.integer("axis", 0), node.rank(0));
  const int64_t size = node.shape(0)[static_cast<int>(axis)];
  auto sizes = attribute_or_input(node, "split", 1);
  if (!sizes) {
    const int64_t parts = node.integer("num_outputs", node.output_count());
    if (parts < 1 || parts != node.output_count())
      node.fail(fmt::format("splits into {} parts, but has {} outputs", parts, node.output_count()));
    const int64_t part = (size + parts - 1) / parts;
    sizes.emplace(static_cast<size_t>(parts), part);
    sizes->back() = size - part * (parts - 1);
  }
  require_sizes(node, "parts", *sizes);
  for (const int64_t part : *sizes)
    if (part < 0) node.fail(fmt::format("splits {} elements into a part of {}", size, part));
  return ops::split_sizes(node.graph(), node.value(0), *sizes, axis, node.hint());
}

std::vector<ValueId> convert_slice(NodeContext& node) {
  const int rank = node.rank(0);
  const auto starts = attribute_or_input(node, "starts", 1), ends = attribute_or_input(node, "ends", 2);
  if (!starts || !ends || starts->size() != ends->size()) node.fail("wants as many starts as ends");
  auto axes = attribute_or_input(node, "axes", 3).value_or(all_axes(static_cast<int64_t>(starts->size())));
  const auto steps = node.has(4) ? node.known_integers(4) : std::vector<int64_t>(starts->size(), 1);
  if (axes.size() != starts->size() || steps.size() != starts->size())
    node.fail("wants as many axes and steps as starts");
  axes = resolve_axes(node, axes, rank);
  std::vector<int64_t> from(static_cast<size_t>(rank), 0), to(node.shape(0).dims()), by(static_cast<size_t>(rank), 1);
  for (size_t index = 0; index < axes.size(); ++index) {
    const auto axis = static_cast<size_t>(axes[index]);
    // Limits of i64 would overflow where the size is added to them.
    constexpr int64_t kFar = std::numeric_limits<int32_t>::max();
    from[axis] = std::clamp((*starts)[index], -kFar, kFar);
    to[axis] = std::clamp((*ends)[index], -kFar, kFar);
    by[axis] = std::clamp(steps[index], -kFar, kFar);
  }
  return {ops::strided_slice(node.graph(), node.value(0), from, to, by, node.hint())};
}

std::vector<ValueId> convert_expand(NodeContext& node) {
  const Shape target = broadcast_shape(node, node.shape(0), Shape(node.known_integers(1)));
  return {ops::broadcast_to(node.graph(), node.value(0), target, node.hint())};
}

std::vector<ValueId> convert_tile(NodeContext& node) {
  Graph& graph = node.graph();
  const auto repeats = node.known_integers(1);
  const Shape shape = node.shape(0);
  if (static_cast<int>(repeats.size()) != shape.rank()) node.fail("wants a repeat per axis");
  require_sizes(node, "repeats", repeats);
  // Each axis gets one before it that is broadcast.
  std::vector<int64_t> apart, wide, whole;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t times = repeats[static_cast<size_t>(axis)];
    if (times < 0) node.fail(fmt::format("repeats an axis {} times", times));
    apart.insert(apart.end(), {1, shape[axis]});
    wide.insert(wide.end(), {times, shape[axis]});
    whole.push_back(times * shape[axis]);
  }
  const ValueId repeated = ops::broadcast_to(graph, ops::reshape(graph, node.value(0), apart), Shape(wide));
  return {ops::reshape(graph, repeated, whole, node.hint())};
}

/// The index that an axis of `size`, padded before its beginning and behind its end, has at `position`.
int64_t source_of(const std::string& mode, int64_t position, int64_t size) {
  if (position >= 0 && position < size) return position;
  if (mode == "edge") return std::clamp<int64_t>(position, 0, size - 1);
  if (mode == "wrap") return ((position % size) + size) % size;
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);  // reflect
  const int64_t within = ((position % period) + period) % period;
  return within < size ? within : period - within;
}

std::vector<ValueId> convert_pad(NodeContext& node) {
  Graph& graph = node.graph();
  const std::string mode = node.text("mode", "constant");
  const auto pads = node.opset() < 2    ? std::optional(node.integers("paddings"))
                    : node.opset() < 11 ? std::optional(node.integers("pads"))
                                        : attribute_or_input(node, "pads", 1);
  const auto axes = node.has(3) ? resolve_axes(node, node.known_integers(3), node.rank(0)) : all_axes(node.rank(0));
  if (!pads || pads->size() != 2 * axes.size()) node.fail("wants two pads per axis");
  require_sizes(node, "pads", *pads);
  const auto rank = static_cast<size_t>(node.rank(0));
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t index = 0; index < axes.size(); ++index) {
    low[static_cast<size_t>(axes[index])] = (*pads)[index];
    high[static_cast<size_t>(axes[index])] = (*pads)[index + axes.size()];
  }
  ValueId result = node.value(0);
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    node.fail("has the unknown mode '" + mode + "'");
  if (mode != "constant") {
    for (size_t axis = 0; axis < rank; ++axis) {
      if (low[axis] == 0 && high[axis] == 0) continue;
      const int64_t size = graph.shape(result)[static_cast<int>(axis)];
      if (size == 0) node.fail("cannot repeat what an empty axis holds");
      require_small(node, "an axis", {size + low[axis] + high[axis]});
      std::vector<int64_t> indices;
      for (int64_t position = -low[axis]; position < size + high[axis]; ++position)
        indices.push_back(source_of(mode, position, size));
      result =
          ops::take(graph, result, ops::constant_integers(graph, indices), static_cast<int64_t>(axis), node.hint());
    }
    return {result};
  }
  // What is negative cuts off.
  std::vector<int64_t> starts(rank, 0), ends = node.shape(0).dims();
  for (size_t axis = 0; axis < rank; ++axis) {
    starts[axis] = std::max<int64_t>(0, -low[axis]);
    ends[axis] -= std::max<int64_t>(0, -high[axis]);
    low[axis] = std::max<int64_t>(0, low[axis]);
    high[axis] = std::max<int64_t>(0, high[axis]);
  }
  if (!all_are(starts, 0) || ends != node.shape(0).dims()) result = ops::slice(graph, result, starts, ends);
  if (all_are(low, 0) && all_are(high, 0)) return {result};
  AttributeValue fill = 0.0;
  if (node.opset() < 11)
    fill = node.real("value", 0);
  else if (node.has(2) && is_floating(node.dtype(0)))
    fill = node.known_real(2);
  else if (node.has(2))
    fill = node.known_integer(2);
  return {graph.add("pad", {result}, {{"low", low}, {"high", high}, {"value", fill}}, node.hint())};
}

std::vector<ValueId> convert_identity(NodeContext& node) { return {node.value(0)}; }

std::vector<HostValue> run_identity(const HostContext& node) { return {node.input(0)}; }

ValueId cast_to(NodeContext& node, DType dtype) {
  if (node.dtype(0) == dtype) return node.value(0);
  // ONNX wraps around where weft's cast of a real takes the nearest limit.
  if (is_packed(dtype) && is_floating(node.dtype(0)))
    return ops::cast(node.graph(), ops::cast(node.graph(), node.value(0), DType::i32), dtype, node.hint());
  return ops::cast(node.graph(), node.value(0), dtype, node.hint());
}

/// Of the shape, from axis to axis.
std::vector<ValueId> convert_shape(NodeContext& node) {
  const auto rank = static_cast<int64_t>(node.rank(0));
  const auto bound = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t start = bound(node.integer("start", 0)), end = bound(node.integer("end", rank));
  std::vector<int64_t> sizes;
  for (int64_t axis = start; axis < end; ++axis) sizes.push_back(node.shape(0)[static_cast<int>(axis)]);
  return {ops::constant_integers(node.graph(), sizes, node.hint())};
}

std::vector<ValueId> convert_size(NodeContext& node) {
  return {ops::constant(node.graph(), DType::i64, Shape{}, node.shape(0).elements(), node.hint())};
}

std::vector<ValueId> convert_depth_to_space(NodeContext& node) {
  Graph& graph = node.graph();
  const Shape shape = node.shape(0);
  const int64_t block = node.integer("blocksize");
  if (shape.rank() != 4 || block < 1 || block > shape[1] || shape[1] % (block * block) != 0)
    node.fail("wants images whose channels fit blocks of " + std::to_string(block));
  const int64_t channels = shape[1] / (block * block);
  const bool is_crd = node.text("mode", "DCR") == "CRD";
  const auto apart = is_crd ? std::vector<int64_t>{shape[0], channels, block, block, shape[2], shape[3]}
                            : std::vector<int64_t>{shape[0], block, block, channels, shape[2], shape[3]};
  const auto order = is_crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2};
  const ValueId moved = ops::transpose(graph, ops::reshape(graph, node.value(0), apart), order);
  return {ops::reshape(graph, moved, {shape[0], channels, shape[2] * block, shape[3] * block}, node.hint())};
}

std::vector<ValueId> convert_space_to_depth(NodeContext& node) {
  Graph& graph = node.graph();
  const Shape shape = node.shape(0);
  const int64_t block = node.integer("blocksize");
  if (shape.rank() != 4 || block < 1 || block > std::max(shape[2], shape[3]) || shape[2] % block != 0 ||
      shape[3] % block != 0)
    node.fail("wants images that fit blocks of " + std::to_string(block));
  const int64_t rows = shape[2] / block, columns = shape[3] / block;
  const ValueId apart = ops::reshape(graph, node.value(0), {shape[0], shape[1], rows, block, columns, block});
  const bool is_crd = node.text("mode", "DCR") == "CRD";
  const auto order = is_crd ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4};
  const ValueId moved = ops::transpose(graph, apart, order);
  return {ops::reshape(graph, moved, {shape[0], shape[1] * block * block, rows, columns}, node.hint())};
}

/// Each axis cut or padded with zeros on both sides, the smaller half before it.
std::vector<ValueId> convert_center_crop_pad(NodeContext& node) {
  Graph& graph = node.graph();
  const auto sizes = node.known_integers(1);
  const auto axes =
      node.has_attribute("axes") ? resolve_axes(node, node.integers("axes"), node.rank(0)) : all_axes(node.rank(0));
  if (axes.size() != sizes.size()) node.fail("wants a size per axis");
  require_sizes(node, "sizes", sizes);
  const auto rank = static_cast<size_t>(node.rank(0));
  std::vector<int64_t> starts(rank, 0), ends = node.shape(0).dims(), low(rank, 0), high(rank, 0);
  for (size_t index = 0; index < axes.size(); ++index) {
    const auto axis = static_cast<size_t>(axes[index]);
    const int64_t have = ends[axis], want = sizes[index];
    if (want < 0) node.fail(fmt::format("has the size {}", want));
    if (want < have) {
      starts[axis] = (have - want) / 2;
      ends[axis] = starts[axis] + want;
    } else {
      low[axis] = (want - have) / 2;
      high[axis] = want - have - low[axis];
    }
  }
  ValueId x = node.value(0);
  if (!all_are(starts, 0) || ends != node.shape(0).dims()) x = ops::slice(graph, x, starts, ends);
  if (all_are(low, 0) && all_are(high, 0)) return {x};
  return {ops::pad(graph, x, low, high, 0, node.hint())};
}

/// Keeps the triangle of the last two axes.
std::vector<ValueId> convert_trilu(NodeContext& node) {
  Graph& graph = node.graph();
  const int rank = node.rank(0);
  if (rank < 2) node.fail("wants matrices");
  const int64_t rows = node.shape(0)[rank - 2], columns = node.shape(0)[rank - 1];
  const int64_t diagonal = node.has(1) ? node.known_integer(1) : 0;
  const bool is_upper = node.integer("upper", 1) != 0;
  Tensor mask(DType::boolean, Shape{rows, columns});
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      mask.data_as<uint8_t>()[row * columns + column] = is_upper ? column - row >= diagonal : column - row <= diagonal;
  const ValueId keeps = ops::constant_tensor(graph, Constant(mask));
  const ValueId x = node.value(0);
  const ValueId zero = ops::constant(graph, node.dtype(0), Shape{}, int64_t{0});
  return {ops::where(graph, keeps, x, zero, node.hint())};
}

}  // namespace

void add_shapes(OperatorTable& table) {
  const std::string family = "shape";
  table.add(family, "Reshape", convert_reshape);
  table.add(family, "Flatten", convert_flatten);
  table.add(family, "Squeeze", convert_squeeze);
  table.add(family, "Unsqueeze", convert_unsqueeze);
  table.add(family, "Transpose", convert_transpose);
  table.add(family, "Concat", convert_concat);
  table.add(family, "Split", convert_split);
  table.add(family, "Slice", convert_slice);
  table.add(family, "Expand", convert_expand);
  table.add(family, "Tile", convert_tile);
  table.add(family, "Pad", convert_pad);
  table.add(family, "Identity", convert_identity, run_identity);
  table.add(family, "Cast",
            [](NodeContext& node) -> std::vector<ValueId> { return {cast_to(node, node.dtype_of("to", DType::f32))}; });
  table.add(family, "CastLike",
            [](NodeContext& node) -> std::vector<ValueId> { return {cast_to(node, node.dtype(1))}; });
  table.add(family, "Shape", convert_shape);
  table.add(family, "Size", convert_size);
  table.add(family, "DepthToSpace", convert_depth_to_space);
  table.add(family, "SpaceToDepth", convert_space_to_depth);
  table.add(family, "Trilu", convert_trilu);
  table.add(family, "CenterCropPad", convert_center_crop_pad);
}

}  // namespace weft::onnx
