// Regions of images: RoiAlign and MaxRoiPool.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"
#include "weft/onnx/operators/sampling.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

/// What the attributes of RoiAlign say.
struct Align {
  int64_t height, width, ratio;
  double scale;
  bool is_shifted;  // by half a pixel
  bool takes_largest;

  explicit Align(const NodeAttributes& node)
      : height(node.integer("output_height", 1)),
        width(node.integer("output_width", 1)),
        ratio(node.integer("sampling_ratio", 0)),
        scale(node.real("spatial_scale", 1)),
        // Before version 16 there was no shift.
        is_shifted(node.opset() >= 16 && node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"),
        takes_largest(node.text("mode", "avg") == "max") {
    constexpr int64_t kMost = 1 << 12;
    if (height < 1 || width < 1 || height > kMost || width > kMost || ratio < 0 || ratio > kMost)
      node.fail(fmt::format("wants an output and a sampling_ratio of reasonable size, got {}x{} and {}", height, width,
                            ratio));
  }
};

void check_regions(const NodeAttributes& node, const Shape& x, const Shape& regions, int64_t columns) {
  if (x.rank() != 4 || regions.rank() != 2 || regions[1] != columns)
    node.fail(fmt::format("wants images [N,C,H,W] and regions [R,{}], got {} and {}", columns, to_string(x),
                          to_string(regions)));
  if (x[2] == 0 || x[3] == 0) node.fail("reads images without elements");
}

/// Column `at` of the regions, in elements of the image: f32 [R,1].
ValueId edge(Graph& graph, ValueId regions, int64_t at, const Align& align) {
  const ValueId column = ops::slice(graph, regions, {0, at}, {graph.shape(regions)[0], at + 1});
  return ops::add_scalar(graph, ops::multiply_scalar(graph, column, align.scale), align.is_shifted ? -0.5 : 0);
}

/// How far each sample lies from a region's edge, in bins: [1, height * width * ratio * ratio], the samples of a bin
/// side by side.
Tensor bins(const Align& align, bool is_row) {
  const int64_t inner = align.ratio * align.ratio;
  Tensor result(DType::f32, Shape{1, align.height * align.width * inner});
  for (int64_t index = 0; index < result.elements(); ++index) {
    const int64_t bin = index / inner, within = index % inner;
    const int64_t at = is_row ? bin / align.width : bin % align.width;
    const int64_t part = is_row ? within / align.ratio : within % align.ratio;
    result.data_as<float>()[index] = static_cast<float>(static_cast<double>(at) + (static_cast<double>(part) + 0.5) /
                                                                                      static_cast<double>(align.ratio));
  }
  return result;
}

/// He et al. 2017: as many samples per bin as the attribute says.
std::vector<ValueId> convert_roi_align(NodeContext& node) {
  const Align align(node);
  // How many samples a bin has depends on the size of its region.
  if (align.ratio == 0) throw NeedsHost{};
  Graph& graph = node.graph();
  const Shape shape = node.shape(0);
  check_regions(node, shape, node.shape(1), 4);
  const int64_t count = node.shape(1)[0], inner = align.ratio * align.ratio;
  const int64_t samples = align.height * align.width * inner;
  require_small(node, "samples", {count, samples, shape[1]});
  const auto as_reals = [&](ValueId x) {
    return graph.type(x).dtype == DType::f32 ? x : ops::cast(graph, x, DType::f32);
  };
  const ValueId regions = as_reals(node.value(1));
  std::vector<AxisNeighbours> neighbours;
  ValueId inside{};
  for (const bool is_row : {true, false}) {
    const auto size = static_cast<double>(shape[is_row ? 2 : 3]);
    const ValueId start = edge(graph, regions, is_row ? 1 : 0, align),
                  end = edge(graph, regions, is_row ? 3 : 2, align);
    ValueId extent = ops::subtract(graph, end, start);
    if (!align.is_shifted) extent = ops::maximum(graph, extent, scalar_like(graph, extent, 1));
    const ValueId bin =
        ops::multiply_scalar(graph, extent, 1 / static_cast<double>(is_row ? align.height : align.width));
    const ValueId steps = ops::constant_tensor(graph, Constant(bins(align, is_row)));
    const ValueId positions = ops::add(graph, ops::multiply(graph, bin, steps), start);
    const ValueId is_here =
        ops::multiply(graph, ops::greater_equal(graph, positions, scalar_like(graph, positions, -1)),
                      ops::less_equal(graph, positions, scalar_like(graph, positions, size)));
    inside = inside.valid() ? ops::multiply(graph, inside, is_here) : is_here;
    neighbours.push_back(linear_neighbours(graph, positions, shape[is_row ? 2 : 3]));
  }
  ValueId images = ops::transpose(graph, as_reals(node.value(0)), {0, 2, 3, 1});
  images = ops::reshape(graph, images, {shape[0] * shape[2] * shape[3], shape[1]});
  ValueId first = node.dtype(2) == DType::i64 ? node.value(2) : ops::cast(graph, node.value(2), DType::i64);
  first = ops::multiply(graph, ops::reshape(graph, first, {count, 1}),
                        ops::constant(graph, DType::i64, Shape{}, shape[2] * shape[3]));
  ValueId result{};
  for_each_neighbour(graph, {shape[2], shape[3]}, neighbours, [&](ValueId places, ValueId weights) {
    const ValueId flat = ops::add(graph, places, first);
    const ValueId found = ops::gather_nd(graph, images, ops::reshape(graph, flat, {count, samples, 1}));
    weights = ops::multiply(graph, weights, inside);
    const ValueId part = ops::multiply(graph, found, ops::reshape(graph, weights, {count, samples, 1}));
    // The largest is that of the weighted neighbours, as ONNX has it.
    result = !result.valid()       ? part
             : align.takes_largest ? ops::maximum(graph, result, part)
                                   : ops::add(graph, result, part);
  });
  result = ops::reshape(graph, result, {count, align.height * align.width, inner, shape[1]});
  result = align.takes_largest ? ops::reduce_max(graph, result, {2}) : ops::reduce_mean(graph, result, {2});
  result = ops::reshape(graph, ops::transpose(graph, result, {0, 2, 1}), {count, shape[1], align.height, align.width},
                        node.hint());
  return {node.dtype(0) == DType::f32 ? result : ops::cast(graph, result, node.dtype(0))};
}

/// One image's channel, between its elements.
struct Plane {
  const double* numbers;
  int64_t height, width;

  /// The four weighted neighbours; zeros outside.
  std::array<double, 4> neighbours(double y, double x) const {
    if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return {};
    y = std::clamp(y, 0.0, static_cast<double>(height - 1));
    x = std::clamp(x, 0.0, static_cast<double>(width - 1));
    const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
    const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
    const double down = y - static_cast<double>(top), across = x - static_cast<double>(left);
    return {(1 - down) * (1 - across) * numbers[top * width + left], (1 - down) * across * numbers[top * width + right],
            down * (1 - across) * numbers[bottom * width + left], down * across * numbers[bottom * width + right]};
  }
};

int64_t image_of(const HostContext& node, double batch, int64_t images) {
  const auto index = static_cast<int64_t>(batch);
  if (!(batch >= 0) || index >= images) node.fail(fmt::format("has a region of image {} of {}", batch, images));
  return index;
}

/// The same with as many samples per bin as the region has elements there.
std::vector<HostValue> run_roi_align(const HostContext& node) {
  const Align align(node);
  const Tensor &x = node.tensor(0), &regions = node.tensor(1);
  check_regions(node, x.shape(), regions.shape(), 4);
  const auto numbers = reals_of(x), edges = reals_of(regions), batches = reals_of(node.tensor(2));
  const int64_t count = regions.shape()[0], channels = x.shape()[1], height = x.shape()[2], width = x.shape()[3];
  if (static_cast<int64_t>(batches.size()) != count) node.fail("wants the image of each region");
  Tensor result(x.dtype(), Shape{count, channels, align.height, align.width});
  int64_t at = 0;
  for (int64_t region = 0; region < count; ++region) {
    const int64_t image = image_of(node, batches[static_cast<size_t>(region)], x.shape()[0]);
    std::array<double, 4> place{};
    for (size_t each = 0; each < 4; ++each)
      place[each] = edges[static_cast<size_t>(region) * 4 + each] * align.scale - (align.is_shifted ? 0.5 : 0);
    const auto extent = [&](size_t axis) {
      const double size = place[axis + 2] - place[axis];
      if (!(std::abs(size) < 0x1p14)) node.fail(fmt::format("has a region of size {}", size));
      return align.is_shifted ? size : std::max(size, 1.0);
    };
    const double bin_h = extent(1) / static_cast<double>(align.height),
                 bin_w = extent(0) / static_cast<double>(align.width);
    const auto rows = align.ratio > 0 ? align.ratio : static_cast<int64_t>(std::ceil(bin_h));
    const auto columns = align.ratio > 0 ? align.ratio : static_cast<int64_t>(std::ceil(bin_w));
    for (int64_t channel = 0; channel < channels; ++channel) {
      const Plane plane{&numbers[static_cast<size_t>((image * channels + channel) * height * width)], height, width};
      for (int64_t bin = 0; bin < align.height * align.width; ++bin, ++at) {
        double sum = 0, largest = -std::numeric_limits<double>::infinity();
        for (int64_t sample = 0; sample < rows * columns; ++sample) {
          const auto down = static_cast<double>(bin / align.width) +
                            (static_cast<double>(sample / columns) + 0.5) / static_cast<double>(rows);
          const auto across = static_cast<double>(bin % align.width) +
                              (static_cast<double>(sample % columns) + 0.5) / static_cast<double>(columns);
          for (const double part : plane.neighbours(place[1] + down * bin_h, place[0] + across * bin_w)) {
            sum += part;
            largest = std::max(largest, part);
          }
        }
        const bool is_empty = rows * columns < 1;
        const double value = align.takes_largest ? largest : sum / static_cast<double>(rows * columns);
        store_element(x.dtype(), result.data(), at, is_empty ? 0 : value);
      }
    }
  }
  return {result};
}

/// Girshick 2015: the largest element of each bin, whose edges are rounded to whole elements.
std::vector<HostValue> run_max_roi_pool(const HostContext& node) {
  const Tensor &x = node.tensor(0), &regions = node.tensor(1);
  check_regions(node, x.shape(), regions.shape(), 5);
  const auto pooled = node.integers("pooled_shape");
  constexpr int64_t kMost = 1 << 12;
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1 || pooled[0] > kMost || pooled[1] > kMost)
    node.fail("wants a pooled_shape of two numbers");
  const double scale = node.real("spatial_scale", 1);
  const auto numbers = reals_of(x), edges = reals_of(regions);
  const int64_t count = regions.shape()[0], channels = x.shape()[1], height = x.shape()[2], width = x.shape()[3];
  Tensor result(x.dtype(), Shape{count, channels, pooled[0], pooled[1]});
  const auto clamped = [](double value, int64_t size) {
    return static_cast<int64_t>(std::clamp(value, 0.0, static_cast<double>(size)));
  };
  int64_t at = 0;
  for (int64_t region = 0; region < count; ++region) {
    const double* row = &edges[static_cast<size_t>(region * 5)];
    const int64_t image = image_of(node, row[0], x.shape()[0]);
    const double left = std::round(row[1] * scale), top = std::round(row[2] * scale);
    const double bin_w = std::max(std::round(row[3] * scale) - left + 1, 1.0) / static_cast<double>(pooled[1]);
    const double bin_h = std::max(std::round(row[4] * scale) - top + 1, 1.0) / static_cast<double>(pooled[0]);
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t bin = 0; bin < pooled[0] * pooled[1]; ++bin, ++at) {
        const auto down = static_cast<double>(bin / pooled[1]), across = static_cast<double>(bin % pooled[1]);
        const int64_t first_y = clamped(top + std::floor(down * bin_h), height),
                      end_y = clamped(top + std::ceil((down + 1) * bin_h), height);
        const int64_t first_x = clamped(left + std::floor(across * bin_w), width),
                      end_x = clamped(left + std::ceil((across + 1) * bin_w), width);
        double largest = -std::numeric_limits<double>::infinity();
        for (int64_t y = first_y; y < end_y; ++y)
          for (int64_t each = first_x; each < end_x; ++each)
            largest = std::max(
                largest, numbers[static_cast<size_t>(((image * channels + channel) * height + y) * width + each)]);
        store_element(x.dtype(), result.data(), at, end_y <= first_y || end_x <= first_x ? 0 : largest);
      }
  }
  return {result};
}

}  // namespace

void add_regions(OperatorTable& table) {
  table.add("image", "RoiAlign", convert_roi_align, run_roi_align);
  table.add_on_host("pooling", "MaxRoiPool", run_max_roi_pool);
}

}  // namespace weft::onnx
