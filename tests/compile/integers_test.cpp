// Integers between convolutions, whose layouts are blocked: what is compiled and planned gives what the reference gives
// node by node.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/any_dtype.h"
#include "weft/compile/compile.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/text.h"
#include "weft/library/check_op.h"
#include "weft/ops/all.h"
#include "weft/runtime/executor.h"
#include "weft/runtime/interpret.h"

namespace weft {
namespace {

void expect_same_as_reference(const std::string& text) {
  const OpRegistry registry = ops::make_registry();
  const Graph graph = parse_graph(text, registry);
  std::map<std::string, Tensor> inputs;
  for (const GraphInput& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    inputs.emplace(input.name, is_floating(type.dtype) ? draw_tensor(type, {-1, 1}, hash_name(input.name))
                                                       : any_dtype::draw_bits(type, hash_name(input.name)));
  }
  const auto expected = evaluate_graph(graph, inputs, CpuBackend(1, reference_kernels()));
  const CpuBackend backend(2);
  const CompiledStep step = compile(graph, backend, {});
  Executor executor(step.graph, step.plan, backend);
  for (const auto& [name, tensor] : inputs) executor.bind_batch(name, tensor.data());
  for (int run = 0; run < 2; ++run) executor.run();
  for (const auto& [name, tensor] : expected) {
    const Tensor given = executor.output(name);
    ASSERT_EQ(given.type(), tensor.type());
    if (is_floating(tensor.dtype()))
      EXPECT_EQ(difference(given, tensor, 1e-4, 1e-3), "") << name << print_graph(step.graph);
    else
      EXPECT_EQ(std::memcmp(given.data(), tensor.data(), static_cast<size_t>(tensor.bytes())), 0)
          << name << print_graph(step.graph);
  }
}

// Of signs: no rounding of a convolution changes them.
TEST(IntegersBetweenConvolutions, AreQuantisedAndBack) {
  expect_same_as_reference(R"(graph "g" {
  batch %image "image" : f32[2,16,6,6]
  batch %first "first" : f32[16,16,3,3]
  batch %second "second" : f32[16,16,3,3]
  batch %offset "offset" : i8[16,1,1]
  %conv = conv2d(%image, %first) {padding=[1,1]} : f32[2,16,6,6]
  %positive = relu(%conv) : f32[2,16,6,6]
  %signs = sign(%positive) : f32[2,16,6,6]
  %narrow = cast(%signs) {dtype="i8"} : i8[2,16,6,6]
  %shifted = add(%narrow, %offset) : i8[2,16,6,6]
  %packed = cast(%shifted) {dtype="i4"} : i4[2,16,6,6]
  %twice = add(%packed, %packed) : i4[2,16,6,6]
  %mask = greater(%shifted, %offset) : bool[2,16,6,6]
  %back = cast(%twice) : f32[2,16,6,6]
  %chosen = where(%mask, %back, %image) : f32[2,16,6,6]
  %y = conv2d(%chosen, %second) {padding=[1,1]} : f32[2,16,6,6]
  output "y" %y
  output "twice" %twice
  output "mask" %mask
})");
}

TEST(IntegersBetweenConvolutions, ChooseBlockedImages) {
  expect_same_as_reference(R"(graph "g" {
  batch %image "image" : f32[2,16,6,6]
  batch %first "first" : f32[32,16,3,3]
  batch %mask "mask" : bool[2,32,6,6]
  %a = conv2d(%image, %first) {padding=[1,1]} : f32[2,32,6,6]
  %b = relu(%a) : f32[2,32,6,6]
  %y = where(%mask, %a, %b) : f32[2,32,6,6]
  %z = max_pool2d(%y) {kernel=[2,2], stride=[2,2]} : f32[2,32,3,3]
  output "z" %z
})");
}

TEST(IntegersBetweenConvolutions, ComputeShapes) {
  expect_same_as_reference(R"(graph "g" {
  batch %shape "shape" : i64[4]
  batch %at "at" : u8[3]
  %where_at = cast(%at) {dtype="i64"} : i64[3]
  %four = constant() {shape=[], value=4.0, dtype="i64"} : i64[]
  %index = modulo(%where_at, %four) : i64[3]
  %taken = take(%shape, %index) : i64[3]
  %product = multiply(%taken, %four) : i64[3]
  %joined = concat(%product, %shape) {axis=0} : i64[7]
  %is_small = greater(%four, %joined) : bool[7]
  %not_small = logical_not(%is_small) : bool[7]
  output "joined" %joined
  output "not_small" %not_small
})");
}

}  // namespace
}  // namespace weft
