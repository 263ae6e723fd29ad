// Shape rules over named symbols (graph/symbolic_graph.h), for ops whose results follow from equality, sums and
// products of dimensions. What a rule has to know of types and attributes it asks the op's ordinary rule, with shapes
// that stand for the symbolic ones.
#include <algorithm>
#include <optional>

#include "weft/graph/symbolic_rule.h"
#include "weft/ops/all.h"
#include "weft/ops/elementwise.h"

namespace weft::ops {

namespace symbolic_rules {

namespace {

using Dims = std::vector<Expression>;
using Types = std::vector<SymbolicType>;

/// NumPy's rule. Two dimensions fit where they are equal whatever the symbols are, or where one is 1.
Dims broadcast(const SymbolicContext& context, const Dims& a, const Dims& b) {
  const Expression one = 1;
  const size_t rank = std::max(a.size(), b.size());
  Dims result(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    const Expression& in_a = axis + a.size() < rank ? one : a[axis + a.size() - rank];
    const Expression& in_b = axis + b.size() < rank ? one : b[axis + b.size() - rank];
    if (in_a != in_b && in_a != one && in_b != one)
      context.fail("[" + to_string(a) + "] and [" + to_string(b) + "] do not broadcast: nothing says that " +
                   to_string(in_a) + " is " + to_string(in_b));
    result[axis] = in_a == one ? in_b : in_a;
  }
  return result;
}

/// Shapes of the operands' ranks, of ones.
std::vector<Shape> ones(const SymbolicContext& context) {
  std::vector<Shape> shapes;
  for (const SymbolicType& type : context.inputs)
    shapes.emplace_back(std::vector<int64_t>(static_cast<size_t>(type.rank()), 1));
  return shapes;
}

/// Ops of one tensor whose result has its shape: softmax, cast, running sums.
Types infer_same(const SymbolicContext& context) {
  return {{context.infer_with(ones(context)).front().dtype, context.dims(0)}};
}

Types infer_reshape(const SymbolicContext& context) {
  Dims dims = context.integers("shape");
  const Expression elements = context.inputs[0].elements();
  const auto open = std::find(dims.begin(), dims.end(), Expression(-1));
  if (open != dims.end()) {
    *open = 1;
    Expression others = 1;
    for (const Expression& dim : dims) others = others * dim;
    const auto rest = elements.divided_by(others);
    if (!rest)
      context.fail("the open dimension is " + to_string(elements) + " over " + to_string(others) +
                   ", which is no sum of products; write it");
    *open = *rest;
  }
  SymbolicType result{context.inputs[0].dtype, dims};
  if (result.elements() != elements)
    context.fail(context.describe(0) + " has " + to_string(elements) + " elements, shape=[" + to_string(dims) +
                 "] has " + to_string(result.elements()));
  return {result};
}

Types infer_transpose(const SymbolicContext& context) {
  Dims dims;
  std::vector<bool> seen(context.dims(0).size(), false);
  for (const Expression& axis : context.integers("permutation")) {
    const int64_t at = axis.constant().value_or(-1);
    if (at < 0 || at >= context.inputs[0].rank() || seen[static_cast<size_t>(at)])
      context.fail("permutation must name each axis of " + context.describe(0) + " once");
    seen[static_cast<size_t>(at)] = true;
    dims.push_back(context.dims(0)[static_cast<size_t>(at)]);
  }
  if (dims.size() != seen.size()) context.fail("permutation must name each axis of " + context.describe(0) + " once");
  return {{context.inputs[0].dtype, dims}};
}

Types infer_broadcast_to(const SymbolicContext& context) {
  const Dims to = context.integers("shape");
  if (broadcast(context, context.dims(0), to) != to)
    context.fail(context.describe(0) + " does not broadcast to shape=[" + to_string(to) + "]");
  return {{context.inputs[0].dtype, to}};
}

Types infer_concat(const SymbolicContext& context) {
  const auto axis = static_cast<size_t>(context.axis(0, "axis"));
  Dims joined = context.dims(0);
  for (size_t input = 1; input < context.inputs.size(); ++input) {
    Dims dims = context.inputs[input].dims;
    if (dims.size() != joined.size() || context.inputs[input].dtype != context.inputs[0].dtype)
      context.fail(context.describe(0) + " and " + context.describe(static_cast<int>(input)) +
                   " differ in rank or type");
    joined[axis] = joined[axis] + dims[axis];
    dims[axis] = context.dims(0)[axis];
    if (dims != context.dims(0))
      context.fail(context.describe(0) + " and " + context.describe(static_cast<int>(input)) +
                   " must be equal in every axis but " + std::to_string(axis));
  }
  return {{context.inputs[0].dtype, joined}};
}

/// The lists of two attributes, one entry per axis of the operand.
std::pair<Dims, Dims> per_axis(const SymbolicContext& context, const char* first, const char* second) {
  std::pair<Dims, Dims> lists{context.integers(first), context.integers(second)};
  for (const Dims* list : {&lists.first, &lists.second})
    if (list->size() != context.dims(0).size())
      context.fail(std::string(first) + " and " + second + " want one entry per axis of " + context.describe(0));
  return lists;
}

Types infer_slice(const SymbolicContext& context) {
  const auto [starts, ends] = per_axis(context, "starts", "ends");
  Dims dims;
  for (size_t axis = 0; axis < starts.size(); ++axis) dims.push_back(ends[axis] - starts[axis]);
  return {{context.inputs[0].dtype, dims}};
}

/// Where a step is not 1 the range must be a number: nothing divides an expression and rounds.
Types infer_strided_slice(const SymbolicContext& context) {
  const auto [starts, ends] = per_axis(context, "starts", "ends");
  const Dims steps = context.integers("steps");
  if (steps.size() != starts.size()) context.fail("steps wants one entry per axis of " + context.describe(0));
  Dims dims;
  for (size_t axis = 0; axis < starts.size(); ++axis) {
    const std::optional<int64_t> step = steps[axis].constant(), range = (ends[axis] - starts[axis]).constant();
    if (step == 1)
      dims.push_back(ends[axis] - starts[axis]);
    else if (!step || !range || *step == 0)
      context.fail("axis " + std::to_string(axis) + ": a step that is not 1 wants start, end and step as numbers");
    else
      dims.emplace_back(*range == 0 ? 0 : (*range - (*step > 0 ? 1 : -1)) / *step + 1);
  }
  return {{context.inputs[0].dtype, dims}};
}

Types infer_pad(const SymbolicContext& context) {
  const auto [low, high] = per_axis(context, "low", "high");
  Dims dims = context.dims(0);
  for (size_t axis = 0; axis < low.size(); ++axis) dims[axis] = dims[axis] + low[axis] + high[axis];
  return {{context.inputs[0].dtype, dims}};
}

Types infer_matmul(const SymbolicContext& context) {
  Dims a = context.dims(0), b = context.dims(1);
  if (a.size() < 2 || b.size() < 2) context.fail("wants operands of 2 dimensions or more");
  if (std::get<bool>(context.plain("transpose_a"))) std::swap(a.end()[-1], a.end()[-2]);
  if (std::get<bool>(context.plain("transpose_b"))) std::swap(b.end()[-1], b.end()[-2]);
  if (a.end()[-1] != b.end()[-2])
    context.fail(context.describe(0) + " and " + context.describe(1) + " do not multiply: nothing says that " +
                 to_string(a.end()[-1]) + " is " + to_string(b.end()[-2]));
  Dims dims = broadcast(context, {a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  dims.insert(dims.end(), {a.end()[-2], b.end()[-1]});
  return {{context.infer_with(ones(context)).front().dtype, dims}};
}

Types infer_reduction(const SymbolicContext& context) {
  const int rank = context.inputs[0].rank();
  std::vector<bool> is_reduced(static_cast<size_t>(rank), false);
  const Dims axes = context.integers("axes");
  for (const Expression& axis : axes) {
    const int64_t at = axis.constant().value_or(rank);
    if (at < -rank || at >= rank) context.fail("axis " + to_string(axis) + " is not an axis of " + context.describe(0));
    is_reduced[static_cast<size_t>(at < 0 ? at + rank : at)] = true;
  }
  if (axes.empty()) is_reduced.assign(is_reduced.size(), true);
  const bool keeps = std::get<bool>(context.plain("keep_dims"));
  Dims dims;
  for (size_t axis = 0; axis < is_reduced.size(); ++axis) {
    if (!is_reduced[axis]) dims.push_back(context.dims(0)[axis]);
    if (is_reduced[axis] && keeps) dims.push_back(1);
  }
  return {{context.infer_with(ones(context)).front().dtype, dims}};
}

Types infer_argmax(const SymbolicContext& context) {
  Dims dims = context.dims(0);
  const auto axis = dims.begin() + context.axis(0, "axis");
  if (std::get<bool>(context.plain("keep_dims")))
    *axis = 1;
  else
    dims.erase(axis);
  return {{DType::i32, dims}};
}

Types infer_one_hot(const SymbolicContext& context) {
  Dims dims = context.dims(0);
  dims.push_back(context.integer("classes"));
  return {{DType::f32, dims}};
}

Types infer_embedding(const SymbolicContext& context) {
  if (context.inputs[0].rank() != 2) context.fail("table wants 2 dimensions, got " + context.describe(0));
  Dims dims = context.dims(1);
  dims.push_back(context.dims(0)[1]);
  return {{context.infer_with(ones(context)).front().dtype, dims}};
}

Types infer_take(const SymbolicContext& context) {
  const Dims& x = context.dims(0);
  const int axis = context.axis(0, "axis");
  Dims dims(x.begin(), x.begin() + axis);
  dims.insert(dims.end(), context.dims(1).begin(), context.dims(1).end());
  dims.insert(dims.end(), x.begin() + axis + 1, x.end());
  return {{context.infer_with(ones(context)).front().dtype, dims}};
}

Types infer_top_k(const SymbolicContext& context) {
  Dims dims = context.dims(0);
  dims[static_cast<size_t>(context.axis(0, "axis"))] = context.integer("k");
  return {{context.inputs[0].dtype, dims}, {DType::i64, dims}};
}

/// How many indices name a slice must be a number.
Types infer_gather_nd(const SymbolicContext& context) {
  const Dims &data = context.dims(0), &indices = context.dims(1);
  const int64_t length = indices.empty() ? 0 : indices.back().constant().value_or(0);
  const int64_t batch_dims = context.integer("batch_dims").constant().value_or(-1);
  if (length < 1 || batch_dims < 0 || batch_dims + length > static_cast<int64_t>(data.size()) ||
      batch_dims >= static_cast<int64_t>(indices.size()))
    context.fail(context.describe(1) + " holds no vectors of indices that name slices of " + context.describe(0));
  if (!std::equal(data.begin(), data.begin() + batch_dims, indices.begin()))
    context.fail(context.describe(0) + " and " + context.describe(1) + " differ in their batches");
  Dims dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + batch_dims + length, data.end());
  return {{context.inputs[0].dtype, dims}};
}

/// The data's shape, whatever is put into it.
Types infer_scatter(const SymbolicContext& context) { return {{context.inputs[0].dtype, context.dims(0)}}; }

Types infer_constant(const SymbolicContext& context) {
  const AttributeValue dtype = context.plain("dtype");
  const auto parsed = parse_dtype(std::get<std::string>(dtype));
  if (!parsed) context.fail("dtype " + to_string(dtype) + " is not known");
  return {{*parsed, context.integers("shape")}};
}

/// Ops that treat each sample alone: the first dimension of the first operand is that of the first result. All other
/// dimensions must be numbers.
Types infer_per_sample(const SymbolicContext& context) {
  std::vector<Shape> shapes;
  for (size_t input = 0; input < context.inputs.size(); ++input) {
    std::vector<int64_t> dims;
    for (size_t axis = 0; axis < context.inputs[input].dims.size(); ++axis) {
      const auto known = context.inputs[input].dims[axis].constant();
      if (!known && (input > 0 || axis > 0))
        context.fail("has a rule for symbols in the first dimension only; that of " +
                     context.describe(static_cast<int>(input)) + " has " + to_string(context.inputs[input].dims[axis]) +
                     " in another");
      dims.push_back(known.value_or(1));
    }
    shapes.emplace_back(std::move(dims));
  }
  Types results;
  for (const TensorType& type : context.infer_with(shapes)) results.push_back(symbolic(type));
  results.front().dims.front() = context.dims(0).front();
  return results;
}

Types infer_layer_norm(const SymbolicContext& context) {
  const Dims& x = context.dims(0);
  if (x.empty()) context.fail("wants at least one dimension");
  for (const int input : {1, 2})
    if (context.dims(input) != Dims{x.back()})
      context.fail(context.describe(input) + " is not one number for each of the last dimension of " +
                   context.describe(0));
  const Dims rows(x.begin(), x.end() - 1);
  const std::vector<TensorType> known = context.infer_with(ones(context));
  return {{known[0].dtype, x}, {known[1].dtype, rows}, {known[2].dtype, rows}};
}

void add_rules(OpRegistry& registry) {
  std::vector<std::string> elementwise;
  for (const auto& [name, op] : registry.all())
    if (op.layout_rule == LayoutRule::elementwise && op.outputs.size() == 1 && op.name != "fused_elementwise")
      elementwise.push_back(name);
  for (const std::string& name : elementwise) registry.set_symbolic_rule(name, infer_symbolic_elementwise);
  for (const char* name : {"softmax", "log_softmax", "cast", "cumulative_sum", "reorder", "causal_mask"})
    registry.set_symbolic_rule(name, infer_same);
  for (const char* name : {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"})
    registry.set_symbolic_rule(name, infer_reduction);
  for (const char* name :
       {"conv2d", "max_pool2d", "avg_pool2d", "batch_norm_inference", "resize", "adaptive_avg_pool2d"})
    registry.set_symbolic_rule(name, infer_per_sample);
  registry.set_symbolic_rule("reshape", infer_reshape);
  registry.set_symbolic_rule("transpose", infer_transpose);
  registry.set_symbolic_rule("broadcast_to", infer_broadcast_to);
  registry.set_symbolic_rule("concat", infer_concat);
  registry.set_symbolic_rule("slice", infer_slice);
  registry.set_symbolic_rule("strided_slice", infer_strided_slice);
  registry.set_symbolic_rule("pad", infer_pad);
  registry.set_symbolic_rule("matmul", infer_matmul);
  registry.set_symbolic_rule("argmax", infer_argmax);
  registry.set_symbolic_rule("one_hot", infer_one_hot);
  registry.set_symbolic_rule("embedding", infer_embedding);
  registry.set_symbolic_rule("take", infer_take);
  registry.set_symbolic_rule("top_k", infer_top_k);
  registry.set_symbolic_rule("gather_nd", infer_gather_nd);
  for (const char* name : {"scatter_elements", "scatter_nd"}) registry.set_symbolic_rule(name, infer_scatter);
  registry.set_symbolic_rule("constant", infer_constant);
  registry.set_symbolic_rule("layer_norm", infer_layer_norm);
}

}  // namespace

}  // namespace symbolic_rules

std::vector<SymbolicType> infer_symbolic_elementwise(const SymbolicContext& context) {
  std::vector<Expression> dims;
  for (size_t input = 0; input < context.inputs.size(); ++input)
    dims = symbolic_rules::broadcast(context, dims, context.inputs[input].dims);
  const DType dtype = context.infer_with(std::vector<Shape>(context.inputs.size())).front().dtype;
  return {{dtype, dims}};
}

void add_symbolic_rules(OpRegistry& registry) { symbolic_rules::add_rules(registry); }

}  // namespace weft::ops
