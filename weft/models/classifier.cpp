#include "weft/models/classifier.h"

#include <vector>

#include "weft/ops/ops.h"

namespace weft::models {
namespace {

/// The means along one axis: windows are rectangles, so that rows and columns can be averaged one after the other.
ValueId pool_axis(Graph& graph, ValueId x, int axis, int64_t size, const std::string& name) {
  const Shape shape = graph.shape(x);
  const int64_t length = shape[axis];
  std::vector<ValueId> means;
  for (int64_t i = 0; i < size; ++i) {
    std::vector<int64_t> starts(static_cast<size_t>(shape.rank()), 0), ends = shape.dims();
    starts[static_cast<size_t>(axis)] = i * length / size;
    ends[static_cast<size_t>(axis)] = ((i + 1) * length + size - 1) / size;
    means.push_back(ops::reduce_mean(graph, ops::slice(graph, x, starts, ends), {axis}, true));
  }
  return ops::concat(graph, means, axis, name);
}

}  // namespace

ValueId adaptive_avg_pool(Graph& graph, ValueId x, int64_t size, const std::string& name) {
  const int64_t height = graph.shape(x)[2], width = graph.shape(x)[3];
  if (height == size && width == size) return x;
  if (height % size == 0 && width % size == 0) {
    const ops::Pair window{height / size, width / size};
    return ops::avg_pool2d(graph, x, {.kernel = window, .stride = window}, name);
  }
  return pool_axis(graph, pool_axis(graph, x, 2, size, name + ".rows"), 3, size, name);
}

}  // namespace weft::models
