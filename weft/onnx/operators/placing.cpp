// What puts elements back where a window took them from: Col2Im and MaxUnpool.
#include <algorithm>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

ValueId zeros(Graph& graph, DType dtype, const Shape& shape) {
  Tensor zero(dtype, Shape{1});
  std::fill_n(static_cast<std::byte*>(zero.data()), zero.bytes(), std::byte{0});
  const ValueId one = ops::reshape(graph, ops::constant_tensor(graph, Constant(zero)), std::vector<int64_t>{});
  return ops::broadcast_to(graph, one, shape);
}

/// The blocks that Col2Im reads, and the padded image that it adds them to.
struct Blocks {
  std::vector<int64_t> image, block, strides, dilations, before, padded, counts;

  int64_t elements() const { return product(block); }
  int64_t positions() const { return product(counts); }
  static int64_t product(const std::vector<int64_t>& sizes) {
    int64_t result = 1;
    for (const int64_t size : sizes) result *= size;
    return result;
  }
};

Blocks find_blocks(NodeContext& node) {
  Blocks blocks;
  blocks.image = node.known_integers(1);
  blocks.block = node.known_integers(2);
  const size_t axes = blocks.image.size();
  const std::vector<int64_t> ones(axes, 1);
  blocks.strides = node.integers("strides", ones);
  blocks.dilations = node.integers("dilations", ones);
  const auto pads = node.integers("pads", std::vector<int64_t>(2 * axes, 0));
  if (axes == 0 || blocks.block.size() != axes || blocks.strides.size() != axes || blocks.dilations.size() != axes ||
      pads.size() != 2 * axes)
    node.fail(fmt::format("wants a block, strides, dilations and pads of {} axes", axes));
  for (const auto& [what, numbers] : {std::pair("image_shape", &blocks.image),
                                      {"block_shape", &blocks.block},
                                      {"strides", &blocks.strides},
                                      {"dilations", &blocks.dilations}}) {
    require_sizes(node, what, *numbers);
    for (const int64_t number : *numbers)
      if (number < 1) node.fail(fmt::format("has {} of {}, but wants 1 or more", what, number));
  }
  require_sizes(node, "pads", pads);
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t before = pads[axis], after = pads[axes + axis];
    if (before < 0 || after < 0) node.fail("has negative pads");
    const int64_t padded = blocks.image[axis] + before + after;
    const int64_t room = padded - ((blocks.block[axis] - 1) * blocks.dilations[axis] + 1);
    if (room < 0) node.fail("has a block larger than its padded image");
    blocks.before.push_back(before);
    blocks.padded.push_back(padded);
    blocks.counts.push_back(room / blocks.strides[axis] + 1);
  }
  require_small(node, "an image", blocks.padded);
  require_small(node, "a block", blocks.block);
  require_small(node, "blocks", {blocks.elements(), blocks.positions()});
  return blocks;
}

/// Where each element of each block lies in the padded image: i64 [elements * positions, 1].
Tensor places_of(const Blocks& blocks) {
  const int64_t positions = blocks.positions();
  Tensor result(DType::i64, Shape{blocks.elements() * positions, 1});
  for (int64_t index = 0; index < result.elements(); ++index) {
    int64_t in_block = index / positions, position = index % positions, place = 0, stride = 1;
    for (size_t axis = blocks.image.size(); axis-- > 0;) {
      place += stride * (in_block % blocks.block[axis] * blocks.dilations[axis] +
                         position % blocks.counts[axis] * blocks.strides[axis]);
      stride *= blocks.padded[axis];
      in_block /= blocks.block[axis];
      position /= blocks.counts[axis];
    }
    result.data_as<int64_t>()[index] = place;
  }
  return result;
}

/// [N, C * elements, positions] -> [N,C,..]: what lies upon another is added up.
std::vector<ValueId> convert_col2im(NodeContext& node) {
  Graph& graph = node.graph();
  const Shape shape = node.shape(0);
  const Blocks blocks = find_blocks(node);
  if (shape.rank() != 3 || shape[1] % blocks.elements() != 0 || shape[2] != blocks.positions())
    node.fail(
        fmt::format("wants [N, channels * {}, {}], got {}", blocks.elements(), blocks.positions(), to_string(shape)));
  const int64_t channels = shape[1] / blocks.elements(), rows = shape[0] * channels;
  const int64_t padded = Blocks::product(blocks.padded);
  ValueId updates = ops::reshape(graph, node.value(0), {rows, blocks.elements() * blocks.positions()});
  updates = ops::transpose(graph, updates, {1, 0});
  const ValueId places = ops::constant_tensor(graph, Constant(places_of(blocks)));
  const ValueId empty = zeros(graph, node.dtype(0), Shape{padded, rows});
  ValueId result = ops::transpose(graph, ops::scatter_nd(graph, empty, places, updates, "add"), {1, 0});
  std::vector<int64_t> sizes = {shape[0], channels}, starts = {0, 0}, ends = {shape[0], channels};
  for (size_t axis = 0; axis < blocks.image.size(); ++axis) {
    sizes.push_back(blocks.padded[axis]);
    starts.push_back(blocks.before[axis]);
    ends.push_back(blocks.before[axis] + blocks.image[axis]);
  }
  return {ops::slice(graph, ops::reshape(graph, result, sizes), starts, ends, node.hint())};
}

/// Places count in the whole result, as MaxPool's second output does. A larger output_shape has zeros behind.
std::vector<ValueId> convert_max_unpool(NodeContext& node) {
  Graph& graph = node.graph();
  const Shape shape = node.shape(0);
  const auto kernel = node.integers("kernel_shape");
  const size_t axes = kernel.size();
  const auto strides = node.integers("strides", std::vector<int64_t>(axes, 1));
  const auto pads = node.integers("pads", std::vector<int64_t>(2 * axes, 0));
  if (shape.rank() != static_cast<int>(axes) + 2 || strides.size() != axes || pads.size() != 2 * axes)
    node.fail(fmt::format("wants a kernel, strides and pads of {} axes", shape.rank() - 2));
  if (node.shape(1) != shape) node.fail("wants a place per element, got " + to_string(node.shape(1)));
  for (const auto& [what, numbers] : {std::pair("kernel_shape", &kernel), {"strides", &strides}, {"pads", &pads}})
    require_sizes(node, what, *numbers);
  std::vector<int64_t> sizes = {shape[0], shape[1]};
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t size =
        (shape[static_cast<int>(axis) + 2] - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axes + axis];
    if (size < 1) node.fail(fmt::format("would have an axis of {} elements", size));
    sizes.push_back(size);
  }
  require_small(node, "a result", sizes);
  const int64_t count = shape.elements();
  ValueId places = node.dtype(1) == DType::i64 ? node.value(1) : ops::cast(graph, node.value(1), DType::i64);
  places = ops::reshape(graph, places, {count, 1});
  const ValueId empty = zeros(graph, node.dtype(0), Shape{Blocks::product(sizes)});
  ValueId result = ops::scatter_nd(graph, empty, places, ops::reshape(graph, node.value(0), {count}));
  result = ops::reshape(graph, result, sizes, node.hint());
  if (!node.has(2)) return {result};
  const auto wanted = node.known_integers(2);
  std::vector<int64_t> low(sizes.size(), 0), high;
  if (wanted.size() != sizes.size()) node.fail(fmt::format("wants an output_shape of {} numbers", sizes.size()));
  require_small(node, "a result", wanted);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (wanted[axis] < sizes[axis])
      node.fail(fmt::format("has an output_shape of {} where its window makes {}", wanted[axis], sizes[axis]));
    high.push_back(wanted[axis] - sizes[axis]);
  }
  return {ops::pad(graph, result, low, high, 0, node.hint())};
}

}  // namespace

void add_placing(OperatorTable& table) {
  table.add("convolution", "Col2Im", convert_col2im);
  table.add("pooling", "MaxUnpool", convert_max_unpool);
}

}  // namespace weft::onnx
