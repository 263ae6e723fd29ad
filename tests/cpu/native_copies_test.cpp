// Kernels that only move elements: every result is the reference's, bit for bit.
#include "tests/cpu/native_support.h"
#include "weft/cpu/native/movement/strided_copy.h"

namespace weft {
namespace {

using namespace native_test;
using CopyDims = std::vector<int64_t>;

constexpr DType kOnePerSize[] = {DType::u8, DType::bf16, DType::f32, DType::i64};

void expect_same(const std::string& op, const std::vector<TensorType>& inputs, const TensorType& output,
                 const Attributes& attributes) {
  Case c;
  c.op = op;
  c.inputs = inputs;
  c.outputs = {output};
  c.attributes = attributes;
  c.tolerance = 0;
  c.integer_bound = 200;
  expect_matches_reference(c);
}

TEST(NativeCopies, TransposesEveryElementSize) {
  for (const DType dtype : kOnePerSize)
    for (const CopyDims& dims :
         {CopyDims{1, 1}, CopyDims{3, 5}, CopyDims{16, 16}, CopyDims{37, 131}, CopyDims{260, 140}})
      expect_same("transpose", {{dtype, Shape(dims), {}}}, {dtype, {dims[1], dims[0]}, {}},
                  {{"permutation", CopyDims{1, 0}}});
}

TEST(NativeCopies, TransposesAnyPermutation) {
  const CopyDims dims{3, 19, 1, 4, 34};
  for (const CopyDims& permutation : {CopyDims{0, 3, 2, 1, 4}, CopyDims{4, 0, 1, 3, 2}, CopyDims{1, 0, 2, 4, 3},
                                      CopyDims{3, 4, 1, 0, 2}, CopyDims{0, 1, 2, 3, 4}, CopyDims{2, 1, 4, 3, 0}}) {
    Shape out(dims);
    for (size_t axis = 0; axis < dims.size(); ++axis)
      out[static_cast<int>(axis)] = dims[static_cast<size_t>(permutation[axis])];
    expect_same("transpose", {f32(Shape(dims))}, f32(out), {{"permutation", permutation}});
  }
}

TEST(NativeCopies, CollapsesWhatIsWalkedInOneGo) {
  // [2,3,4,5] -> [3,4,2,5]: of four dimensions three are left, the axes of 3 and 4 move together.
  const auto moved = native::collapse({{3, 20, 40}, {4, 5, 10}, {2, 60, 5}, {1, 7, 9}, {5, 1, 1}});
  ASSERT_EQ(moved.size(), 3u);
  EXPECT_EQ(moved[0].size, 12);
  EXPECT_EQ(moved[1].size, 2);
  EXPECT_EQ(moved[2].size, 5);
  EXPECT_TRUE(native::collapse({{1, 3, 3}, {1, 1, 1}}).empty());
}

TEST(NativeCopies, Broadcasts) {
  const std::vector<std::pair<CopyDims, CopyDims>> shapes{
      {{}, {3, 50000}}, {{17}, {5, 17}}, {{3, 1}, {3, 40}}, {{2, 1, 5}, {2, 7, 5}}, {{1, 6, 1, 1}, {2, 6, 3, 3}}};
  for (const DType dtype : kOnePerSize)
    for (const auto& [from, to] : shapes)
      expect_same("broadcast_to", {{dtype, Shape(from), {}}}, {dtype, Shape(to), {}}, {{"shape", to}});
}

TEST(NativeCopies, Slices) {
  for (const DType dtype : kOnePerSize) {
    expect_same("slice", {{dtype, {9, 40, 13}, {}}}, {dtype, {4, 40, 13}, {}},
                {{"starts", CopyDims{3, 0, 0}}, {"ends", CopyDims{7, 40, 13}}});
    expect_same("slice", {{dtype, {9, 40, 13}, {}}}, {dtype, {9, 30, 1}, {}},
                {{"starts", CopyDims{0, 5, 12}}, {"ends", CopyDims{9, 35, 13}}});
  }
}

TEST(NativeCopies, SlicesInSteps) {
  for (const DType dtype : kOnePerSize) {
    const Attributes forwards = {
        {"starts", CopyDims{1, 0, 2}}, {"ends", CopyDims{9, 40, 13}}, {"steps", CopyDims{3, 1, 2}}};
    expect_same("strided_slice", {{dtype, {9, 40, 13}, {}}}, {dtype, {3, 40, 6}, {}}, forwards);
    const Attributes backwards = {
        {"starts", CopyDims{8, 39, 12}}, {"ends", CopyDims{-1, 4, -1}}, {"steps", CopyDims{-2, -7, -1}}};
    expect_same("strided_slice", {{dtype, {9, 40, 13}, {}}}, {dtype, {5, 5, 13}, {}}, backwards);
    Attributes gradient = backwards;
    gradient.set("shape", CopyDims{9, 40, 13});
    expect_same("strided_slice_backward", {{dtype, {5, 5, 13}, {}}}, {dtype, {9, 40, 13}, {}}, gradient);
  }
}

TEST(NativeCopies, Concatenates) {
  for (const DType dtype : kOnePerSize) {
    expect_same("concat", {{dtype, {4, 3, 20}, {}}, {dtype, {4, 1, 20}, {}}, {dtype, {4, 50, 20}, {}}},
                {dtype, {4, 54, 20}, {}}, {{"axis", int64_t{1}}});
    expect_same("concat", {{dtype, {33, 1}, {}}, {dtype, {33, 2}, {}}}, {dtype, {33, 3}, {}}, {{"axis", int64_t{1}}});
  }
}

TEST(NativeCopies, ConcatenatesImagesInOtherLayouts) {
  const Attributes channels{{"axis", int64_t{1}}}, rows{{"axis", int64_t{2}}};
  for (const DType dtype : kOnePerSize) {
    const auto typed = [dtype](Shape shape, const char* layout) {
      return TensorType{dtype, std::move(shape), parse_layout(layout, 4)};
    };
    expect_same("concat", {typed({2, 5, 3, 4}, "acdb"), typed({2, 32, 3, 4}, "acdb"), typed({2, 1, 3, 4}, "acdb")},
                typed({2, 38, 3, 4}, "acdb"), channels);
    expect_same("concat", {typed({2, 16, 3, 4}, "aBcd16b"), typed({2, 48, 3, 4}, "aBcd16b")},
                typed({2, 64, 3, 4}, "aBcd16b"), channels);
    // The last block is filled up, as the result's is.
    expect_same("concat", {typed({2, 16, 3, 4}, "aBcd16b"), typed({2, 7, 3, 4}, "aBcd16b")},
                typed({2, 23, 3, 4}, "aBcd16b"), channels);
    expect_same("concat", {typed({2, 5, 3, 4}, "aBcd8b"), typed({2, 5, 2, 4}, "aBcd8b")}, typed({2, 5, 5, 4}, "aBcd8b"),
                rows);
    expect_same("concat", {typed({32, 16, 3, 3}, "ABcd16b16a"), typed({32, 16, 3, 3}, "ABcd16b16a")},
                typed({32, 32, 3, 3}, "ABcd16b16a"), channels);
    expect_same("concat", {typed({20, 16, 3, 3}, "ABcd4b16a2b"), typed({20, 8, 3, 3}, "ABcd4b16a2b")},
                typed({20, 24, 3, 3}, "ABcd4b16a2b"), channels);
  }
}

TEST(NativeCopies, SlicesImagesInOtherLayouts) {
  const Attributes last{{"starts", CopyDims{0, 16, 0, 0}}, {"ends", CopyDims{2, 37, 3, 4}}};
  for (const DType dtype : kOnePerSize)
    for (const char* layout : {"acdb", "aBcd16b", "aBcd8b"}) {
      const auto typed = [&](Shape shape) { return TensorType{dtype, std::move(shape), parse_layout(layout, 4)}; };
      expect_same("slice", {typed({2, 37, 3, 4})}, typed({2, 21, 3, 4}), last);
      expect_same("slice", {typed({2, 37, 3, 4})}, typed({1, 16, 2, 3}),
                  {{"starts", CopyDims{1, 16, 1, 0}}, {"ends", CopyDims{2, 32, 3, 3}}});
    }
}

TEST(NativeCopies, DeclinesToCutABlock) {
  Case c;
  c.op = "concat";
  c.inputs = {f32({2, 24, 3, 3}, "aBcd16b"), f32({2, 8, 3, 3}, "aBcd16b")};
  c.outputs = {f32({2, 32, 3, 3}, "aBcd16b")};
  c.attributes = {{"axis", int64_t{1}}};
  std::string why_not;
  EXPECT_EQ(make_native(BareNode(c).signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_EQ(why_not, "an operand ends within a block");
  c.op = "slice";
  c.inputs = {f32({2, 32, 3, 3}, "aBcd16b")};
  c.outputs = {f32({2, 16, 3, 3}, "aBcd16b")};
  c.attributes = {{"starts", CopyDims{0, 8, 0, 0}}, {"ends", CopyDims{2, 24, 3, 3}}};
  EXPECT_EQ(make_native(BareNode(c).signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_EQ(why_not, "it cuts a block of f32[2,32,3,3]@aBcd16b");
}

/// What the kernel of an op wants where its operands are as the case says; "none" where it has no wish.
std::string wanted_layout(const Case& c) {
  KernelTable table;
  native::add_kernels(table, Isa::baseline);
  const BareNode node(c);
  const auto choice = table.candidates(c.op).front().layouts(node.signature, KernelOptions{1});
  return choice ? to_string(choice->outputs[0]) : "none";
}

TEST(NativeCopies, ConcatFollowsTheLayoutThatMostElementsHave) {
  Case c;
  c.op = "concat";
  c.attributes = {{"axis", int64_t{1}}};
  c.inputs = {f32({2, 16, 3, 3}), f32({2, 32, 3, 3}, "aBcd16b"), f32({2, 32, 3, 3}, "acdb")};
  c.outputs = {f32({2, 80, 3, 3})};
  EXPECT_EQ(wanted_layout(c), "aBcd16b");
  c.inputs.push_back(f32({2, 32, 3, 3}, "acdb"));
  EXPECT_EQ(wanted_layout(c), "acdb");
  c.inputs.push_back(f32({2, 80, 3, 3}));
  EXPECT_EQ(wanted_layout(c), "none") << "most is row-major";
  c.inputs = {f32({2, 24, 3, 3}), f32({2, 32, 3, 3}, "aBcd16b")};  // the second would begin within a block
  EXPECT_EQ(wanted_layout(c), "none");
}

TEST(NativeCopies, SliceKeepsALayoutOfWhichItCutsNoBlock) {
  Case c;
  c.op = "slice";
  c.inputs = {f32({2, 64, 3, 3}, "aBcd16b")};
  c.outputs = {f32({2, 32, 3, 3})};
  c.attributes = {{"starts", CopyDims{0, 16, 0, 0}}, {"ends", CopyDims{2, 48, 3, 3}}};
  EXPECT_EQ(wanted_layout(c), "aBcd16b");
  c.attributes = {{"starts", CopyDims{0, 8, 0, 0}}, {"ends", CopyDims{2, 40, 3, 3}}};
  EXPECT_EQ(wanted_layout(c), "none");
}

TEST(NativeCopies, Pads) {
  for (const DType dtype : kOnePerSize) {
    expect_same("pad", {{dtype, {2, 3, 28, 30}, {}}}, {dtype, {2, 3, 32, 33}, {}},
                {{"low", CopyDims{0, 0, 2, 1}}, {"high", CopyDims{0, 0, 2, 2}}, {"value", 7.0}});
    expect_same("pad", {{dtype, {4, 5}, {}}}, {dtype, {9, 5}, {}},
                {{"low", CopyDims{3, 0}}, {"high", CopyDims{2, 0}}, {"value", 0.0}});
  }
}

TEST(NativeCopies, FillsConstants) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8})
    for (const CopyDims& dims : {CopyDims{}, CopyDims{3, 5}, CopyDims{300, 301}})
      expect_same("constant", {}, {dtype, Shape(dims), {}}, {{"value", 3.0}});
}

TEST(NativeCopies, CastsBetweenAnyTwoTypes) {
  const DType all[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8};
  for (const DType from : all)
    for (const DType to : all) expect_same("cast", {{from, {3, 71}, {}}}, {to, {3, 71}, {}}, {});
}

TEST(NativeCopies, CastsSpecialNumbersToBf16AsTheReferenceDoes) {
  Case c;
  c.op = "cast";
  c.inputs = {f32({10})};
  c.outputs = {{DType::bf16, {10}, {}}};
  c.prepare = [](std::vector<Tensor>& inputs) {
    // Ties to even in both directions, one above a tie, the largest float, infinities, NaN with low bits only, zeros.
    const uint32_t bits[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff, 0x7f800000,
                             0xff800000, 0x7f800001, 0xffffffff, 0x80000000, 0x00000001};
    std::memcpy(inputs[0].data(), bits, sizeof bits);
  };
  expect_matches_reference(c);
}

TEST(NativeCopies, DeclinesBlockedLayouts) {
  Case c;
  c.op = "transpose";
  c.inputs = {f32({2, 16, 3, 3}, "aBcd16b")};
  c.outputs = {f32({16, 2, 3, 3})};
  c.attributes = {{"permutation", CopyDims{1, 0, 2, 3}}};
  const BareNode node(c);
  std::string why_not;
  EXPECT_EQ(make_native(node.signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_EQ(why_not, "input 0 is f32[2,16,3,3]@aBcd16b, not plain");
}

}  // namespace
}  // namespace weft
