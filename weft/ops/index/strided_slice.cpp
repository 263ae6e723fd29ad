// Slices that take every so many elements of an axis, forwards or backwards, as NumPy and ONNX write them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

using Dims = std::vector<int64_t>;

/// How many elements a walk from start to, not with, end takes; `step` is not 0.
int64_t steps_between(int64_t start, int64_t end, int64_t step) {
  if (step > 0) return start < end ? (end - start - 1) / step + 1 : 0;
  return end < start ? (start - end - 1) / -step + 1 : 0;
}

std::vector<AttributeSpec> walk_attributes() {
  return {required_attribute("starts", Dims{}, "first index per axis"),
          required_attribute("ends", Dims{},
                             "per axis the index that ends the walk and is not part of it; -1 lies "
                             "before the first"),
          required_attribute("steps", Dims{}, "per axis from one index to the next; negative: backwards")};
}

/// What is left of `shape`. Error(shape) for walks that leave it.
Shape walked(const InferContext& context, Shape shape) {
  const Dims &starts = context.attributes.integers("starts"), &ends = context.attributes.integers("ends"),
             &steps = context.attributes.integers("steps");
  const auto rank = static_cast<size_t>(shape.rank());
  if (starts.size() != rank || ends.size() != rank || steps.size() != rank)
    context.fail(fmt::format("starts, ends and steps want one entry per axis of {}, {}, got {}, {} and {}",
                             to_string(shape), rank, starts.size(), ends.size(), steps.size()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int64_t start = starts[at], end = ends[at], step = steps[at], size = shape[axis];
    if (step == 0 || step < -kMostElements || step > kMostElements)
      context.fail(fmt::format("axis {}: a step of {} leads nowhere; give 1, 2, ... or -1, -2, ...", axis, step));
    if (step > 0 && (start < 0 || start > end || end > size))
      context.fail(fmt::format("axis {}: [{},{}) is no range within {}; give 0 <= start <= end <= {}", axis, start, end,
                               to_string(shape), size));
    if (step < 0 && (end < -1 || end > start || start >= size))
      context.fail(fmt::format("axis {}: from {} back to {} is no range within {}; give -1 <= end <= start <= {}", axis,
                               start, end, to_string(shape), size - 1));
    shape[axis] = steps_between(start, end, step);
  }
  return shape;
}

OpDef strided_slice_op() {
  OpDef op;
  op.name = "strided_slice";
  op.summary = "Every so many elements of each axis, from starts to, not with, ends, forwards or backwards.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = walk_attributes();
  op.precision = PrecisionRule::follow;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    return {{context.dtype(0), walked(context, context.shape(0)), {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Attributes attributes = attributes_of(context);
    return {context.graph.add("strided_slice_backward", {context.output_gradients[0]},
                              {{"starts", attributes.integers("starts")},
                               {"ends", attributes.integers("ends")},
                               {"steps", attributes.integers("steps")},
                               {"shape", context.graph.shape(context.inputs[0]).dims()}})};
  };
  op.examples = {
      {"every second of a vector", {f32({7})}, {{"starts", Dims{0}}, {"ends", Dims{7}}, {"steps", Dims{2}}}, {}},
      {"a rest that is no whole step", {f32({8})}, {{"starts", Dims{1}}, {"ends", Dims{8}}, {"steps", Dims{3}}}, {}},
      {"a vector reversed", {f32({5})}, {{"starts", Dims{4}}, {"ends", Dims{-1}}, {"steps", Dims{-1}}}, {}},
      {"rows and columns", {f32({5, 6})}, {{"starts", Dims{0, 5}}, {"ends", Dims{5, 0}}, {"steps", Dims{2, -2}}}, {}},
      {"image halved",
       {f32({2, 3, 4, 5})},
       {{"starts", Dims{0, 0, 0, 0}}, {"ends", Dims{2, 3, 4, 5}}, {"steps", Dims{1, 1, 2, 2}}},
       {}},
      {"a step beyond the end",
       {f32({4, 3})},
       {{"starts", Dims{1, 0}}, {"ends", Dims{4, 3}}, {"steps", Dims{9, 1}}},
       {}},
      {"nothing", {f32({2, 3})}, {{"starts", Dims{0, 1}}, {"ends", Dims{2, 1}}, {"steps", Dims{1, 2}}}, {}},
  };
  return op;
}

OpDef strided_slice_backward_op() {
  OpDef op;
  op.name = "strided_slice_backward";
  op.summary = "The elements of a strided slice at the places that it took them from, zeros everywhere else.";
  op.inputs = {"output_gradient"};
  op.outputs = {"input_gradient"};
  op.attributes = walk_attributes();
  op.attributes.push_back(required_attribute("shape", Dims{}, "of what was sliced"));
  op.precision = PrecisionRule::follow;
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const Shape whole(context.attributes.integers("shape"));
    if (!has_bounded_size(whole))
      context.fail(fmt::format("shape=[{}] is no shape of a tensor", fmt::join(whole.dims(), ",")));
    if (const Shape part = walked(context, whole); part != context.shape(0))
      context.fail(fmt::format("the slice of {} is {}, {} is another shape", to_string(whole), to_string(part),
                               context.describe(0)));
    return {{context.dtype(0), whole, {}}};
  };
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Attributes attributes = attributes_of(context);
    return {context.graph.add("strided_slice", {context.output_gradients[0]},
                              {{"starts", attributes.integers("starts")},
                               {"ends", attributes.integers("ends")},
                               {"steps", attributes.integers("steps")}})};
  };
  op.examples = {
      {"every second of a vector",
       {f32({4})},
       {{"starts", Dims{0}}, {"ends", Dims{7}}, {"steps", Dims{2}}, {"shape", Dims{7}}},
       {}},
      {"rows and columns",
       {f32({3, 3})},
       {{"starts", Dims{0, 5}}, {"ends", Dims{5, 0}}, {"steps", Dims{2, -2}}, {"shape", Dims{5, 6}}},
       {}},
      {"image halved",
       {f32({2, 3, 2, 3})},
       {{"starts", Dims{0, 0, 0, 0}},
        {"ends", Dims{2, 3, 4, 5}},
        {"steps", Dims{1, 1, 2, 2}},
        {"shape", Dims{2, 3, 4, 5}}},
       {}},
      {"nothing",
       {f32({2, 0})},
       {{"starts", Dims{0, 1}}, {"ends", Dims{2, 1}}, {"steps", Dims{1, 2}}, {"shape", Dims{2, 3}}},
       {}},
  };
  return op;
}

}  // namespace

void add_strided_slice_ops(OpRegistry& registry) {
  registry.add(of_work(work::kCopies, strided_slice_op()));
  registry.add(of_work(work::kCopies, strided_slice_backward_op()));
}

ValueId strided_slice(Graph& graph, ValueId x, Dims starts, Dims ends, Dims steps, const std::string& name) {
  const Shape& shape = graph.shape(x);
  const auto rank = static_cast<size_t>(shape.rank());
  if (starts.size() == rank && ends.size() == rank && steps.size() == rank)
    for (size_t axis = 0; axis < rank; ++axis) {
      // NumPy's rule: below zero counts from the end, and what lies outside is cut to what lies inside.
      const int64_t size = shape.dims()[axis], low = steps[axis] < 0 ? -1 : 0, high = size + low;
      for (int64_t* bound : {&starts[axis], &ends[axis]})
        *bound = *bound < 0 ? std::max(*bound + size, low) : std::min(*bound, high);
      if (steps_between(starts[axis], ends[axis], steps[axis] == 0 ? 1 : steps[axis]) == 0) ends[axis] = starts[axis];
    }
  if (std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; }) && steps.size() == rank)
    return slice(graph, x, std::move(starts), std::move(ends), name);
  return graph.add("strided_slice", {x},
                   {{"starts", std::move(starts)}, {"ends", std::move(ends)}, {"steps", std::move(steps)}}, name);
}

}  // namespace weft::ops
