// Casts and changes of layout of convolution weights, a tile of 16x16 at a time: the same bits as one by one.
#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;

TensorType weights(DType dtype, const Shape& shape, const std::string& layout) {
  return {dtype, shape, parse_layout(layout, 4)};
}

std::unique_ptr<Kernel> make_tiles(const NodeSignature& node, int threads, std::string& why_not) {
  KernelTable table;
  native::add_weight_tiles(table, detect_isa());
  return table.candidates(node.op->name).front().make(node, {threads}, why_not);
}

struct TilePair {
  std::string op;
  DType from_dtype;
  std::string from;
  DType to_dtype;
  std::string to;
};
const std::vector<TilePair> kPairs = {
    {"cast", DType::f32, "ABcd16b16a", DType::bf16, "ABcd8b16a2b"},
    {"cast", DType::f32, "BAcd16a16b", DType::bf16, "ABcd8a16b2a"},
    {"reorder", DType::bf16, "ABcd8b16a2b", DType::bf16, "ABcd8a16b2a"},
    {"reorder", DType::bf16, "ABcd8b16a2b", DType::bf16, "BAcd8a16b2a"},
    {"reorder", DType::bf16, "BAcd8a16b2a", DType::bf16, "ABcd8b16a2b"},
};

Attributes attributes_of(const TilePair& pair) {
  return pair.op == "cast" ? Attributes{{"dtype", "bf16"}} : Attributes{};
}

class NativeWeightTiles : public testing::Test {
  void SetUp() override {
    if (detect_isa() != Isa::avx512) GTEST_SKIP() << "this CPU has no AVX-512";
  }
};

TEST_F(NativeWeightTiles, EveryNumberArrivesAtItsPlaceRoundedAsByTheReference) {
  for (const TilePair& pair : kPairs)
    for (const Shape& shape : {Shape{32, 64, 3, 3}, Shape{256, 512, 1, 1}, Shape{20, 40, 2, 3}})
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(fmt::format("{} {} {} to {}, {} threads", pair.op, to_string(shape), pair.from, pair.to, threads));
        Case c;
        c.op = pair.op;
        c.inputs = {weights(pair.from_dtype, shape, pair.from)};
        c.outputs = {weights(pair.to_dtype, shape, pair.to)};
        c.attributes = attributes_of(pair);
        const std::vector<Tensor> inputs = plain_inputs(c);
        const Tensor expected = run_reference(c, inputs)[0].with_layout(c.outputs[0].layout);
        std::string why_not;
        const BareNode node(c);
        const auto kernel = make_tiles(node.signature, threads, why_not);
        ASSERT_NE(kernel, nullptr) << why_not;
        const Tensor got = run_kernel(*kernel, node.signature, {inputs[0].with_layout(c.inputs[0].layout)})[0];
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), static_cast<size_t>(expected.bytes())), 0);
      }
}

TEST_F(NativeWeightTiles, LeavesOtherLayoutsToOthers) {
  std::string why_not;
  for (const auto& [from, to] : {std::pair{"ABcd16b16a", "ABcd16b16a"},
                                 {"ABcd16b16a", "ABcd16a16b"},
                                 {"", "ABcd16b16a"},
                                 {"ABcd8b8a", "ABcd8a8b"}}) {
    Case c;
    c.op = "reorder";
    c.inputs = {weights(DType::f32, {32, 32, 3, 3}, from)};
    c.outputs = {weights(DType::f32, {32, 32, 3, 3}, to)};
    EXPECT_EQ(make_tiles(BareNode(c).signature, 1, why_not), nullptr) << from << " to " << to;
  }
}

}  // namespace
}  // namespace weft
