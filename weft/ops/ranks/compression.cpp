// What gradients are made smaller by before ranks exchange them (step/compression.h). None has a gradient: they stand
// behind the gradients, and selecting or keeping signs has no derivative worth the name.
#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

constexpr int64_t kSignsPerWord = 32;

OpDef orthogonalise_op() {
  OpDef op;
  op.name = "orthogonalise";
  op.summary =
      "Orthonormal columns that span those of x, one after the other (modified Gram-Schmidt); others in the place of "
      "those that depend on earlier ones.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::f32);
    context.require_rank(0, 2);
    if (context.shape(0)[1] > context.shape(0)[0])
      context.fail(fmt::format("{} has more columns than rows: they cannot be orthogonal", context.describe(0)));
    return {f32(context.shape(0))};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) {
    return 2 * inputs[0].elements() * inputs[0].shape[1];
  };
  op.examples = {{"four columns", {f32({17, 4})}}, {"one column", {f32({5, 1})}}, {"square", {f32({3, 3})}}};
  return op;
}

OpDef top_k_select_op() {
  OpDef op;
  op.name = "top_k_select";
  op.summary =
      "The k elements of largest magnitude, in the order of their places, of equal ones the first; their places; and x "
      "without them.";
  op.inputs = {"x"};
  op.outputs = {"values", "indices", "rest"};
  op.attributes = {required_attribute("k", int64_t{1}, "how many are selected")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::f32);
    const int64_t k = context.attributes.integer("k"), elements = context.shape(0).elements();
    if (k < 1 || k > elements)
      context.fail(fmt::format("cannot select {} of the {} elements of {}", k, elements, context.describe(0)));
    if (elements > INT32_MAX) context.fail(fmt::format("{} has more places than i32 counts", context.describe(0)));
    return {f32({k}), i32({k}), f32(context.shape(0))};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 3 * inputs[0].elements(); };
  op.examples = {{"three of a matrix", {f32({5, 7})}, {{"k", int64_t{3}}}},
                 {"all", {f32({4})}, {{"k", int64_t{4}}}},
                 {"a hundredth", {f32({3000})}, {{"k", int64_t{30}}}},
                 {"equal magnitudes", {f32({40})}, {{"k", int64_t{7}}}, {{1, 1}}}};
  return op;
}

int64_t require_block(const InferContext& context) {
  const int64_t block = context.attributes.integer("block");
  if (block < kSignsPerWord || block % kSignsPerWord != 0)
    context.fail(fmt::format("block {} is no multiple of {}", block, kSignsPerWord));
  return block;
}

AttributeSpec block_attribute() {
  return attribute("block", int64_t{1024}, "elements that share two magnitudes, a multiple of 32");
}

int64_t parts_of(int64_t elements, int64_t size) { return (elements + size - 1) / size; }

OpDef pack_signs_op() {
  OpDef op;
  op.name = "pack_signs";
  op.summary =
      "One bit per element, set where it is negative; per block the mean of those that are not and of those that are; "
      "and by how much x differs from what these say.";
  op.inputs = {"x"};
  op.outputs = {"signs", "means", "rest"};
  op.attributes = {block_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::f32);
    const int64_t block = require_block(context), elements = context.shape(0).elements();
    return {i32({parts_of(elements, kSignsPerWord)}), f32({parts_of(elements, block), 2}), f32(context.shape(0))};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 3 * inputs[0].elements(); };
  op.examples = {{"matrix", {f32({5, 17})}, {{"block", int64_t{32}}}},
                 {"one block", {f32({70})}},
                 {"scalar", {f32({})}},
                 {"several blocks", {f32({3000})}}};
  return op;
}

OpDef unpack_signs_op() {
  OpDef op;
  op.name = "unpack_signs";
  op.summary = "The mean over the ranks of what pack_signs made of a tensor on each of them.";
  op.inputs = {"signs", "means"};
  op.outputs = {"y"};
  op.attributes = {required_attribute("shape", std::vector<int64_t>{5, 17}, "of the tensor"),
                   required_attribute("ranks", int64_t{2}, "whose signs and means follow each other"),
                   block_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::i32);
    context.require_dtype(1, DType::f32);
    const Shape shape(context.attributes.integers("shape"));
    const int64_t block = require_block(context), ranks = context.attributes.integer("ranks");
    if (ranks < 1) context.fail(fmt::format("takes the mean over at least one rank, got {}", ranks));
    if (!has_bounded_size(shape) || ranks > kMostElements / std::max<int64_t>(1, shape.elements()))
      context.fail(fmt::format("{} ranks of {} are more than any memory holds", ranks, to_string(shape)));
    const Shape signs{ranks * parts_of(shape.elements(), kSignsPerWord)};
    const Shape means{ranks * parts_of(shape.elements(), block), 2};
    if (context.shape(0) != signs || context.shape(1) != means)
      context.fail(fmt::format("{} ranks of {} give signs {} and means {}, got {} and {}", ranks, to_string(shape),
                               to_string(signs), to_string(means), context.describe(0), context.describe(1)));
    return {f32(shape)};
  };
  op.flops = [](const auto&, const auto& outputs, const Attributes& attributes) {
    return outputs[0].elements() * attributes.integer("ranks");
  };
  const OpExample::Range any{-2e9, 2e9};
  op.examples = {
      {"two ranks",
       {i32({6}), f32({6, 2})},
       {{"shape", std::vector<int64_t>{5, 17}}, {"ranks", int64_t{2}}, {"block", int64_t{32}}},
       {any}},
      {"one rank", {i32({3}), f32({1, 2})}, {{"shape", std::vector<int64_t>{70}}, {"ranks", int64_t{1}}}, {any}},
      {"three ranks of several blocks",
       {i32({282}), f32({9, 2})},
       {{"shape", std::vector<int64_t>{3000}}, {"ranks", int64_t{3}}},
       {any}}};
  return op;
}

}  // namespace

void add_compression_ops(OpRegistry& registry) {
  registry.add(orthogonalise_op());
  registry.add(top_k_select_op());
  registry.add(pack_signs_op());
  registry.add(unpack_signs_op());
}

}  // namespace weft::ops
