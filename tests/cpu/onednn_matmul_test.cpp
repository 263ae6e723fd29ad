#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

#include "tests/cpu/onednn_support.h"

namespace weft {
namespace {

using namespace testing_support;

struct MatmulCase {
  const char* label;
  Shape a, b, output;  // a and b untransposed, [.., M, K] and [.., K, N]
  friend void PrintTo(const MatmulCase& matmul, std::ostream* out) { *out << matmul.label; }
};

/// Element (row, column) of matrix number `batch` of `output`'s batch dimensions, of a broadcast operand.
float element(const Tensor& tensor, bool transposed, const std::vector<int64_t>& batch, int64_t row, int64_t column) {
  const int rank = tensor.shape().rank();
  std::vector<int64_t> index(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank - 2; ++axis) {
    const int64_t at = batch[batch.size() - static_cast<size_t>(rank - 2 - axis)];
    index[static_cast<size_t>(axis)] = tensor.shape()[axis] == 1 ? 0 : at;
  }
  index[static_cast<size_t>(rank) - 2] = transposed ? column : row;
  index[static_cast<size_t>(rank) - 1] = transposed ? row : column;
  return tensor.data_as<float>()[storage_offset(tensor.shape(), {}, index)];
}

Tensor product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Shape& shape,
               int64_t depth) {
  Tensor result(DType::f32, shape);
  for (int64_t at = 0; at < result.elements(); ++at) {
    std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
    int64_t rest = at;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      index[static_cast<size_t>(axis)] = rest % shape[axis];
      rest /= shape[axis];
    }
    const int64_t column = index.back(), row = index[index.size() - 2];
    const std::vector<int64_t> batch(index.begin(), index.end() - 2);
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += static_cast<double>(element(a, transpose_a, batch, row, k)) * element(b, transpose_b, batch, k, column);
    result.data_as<float>()[at] = static_cast<float>(sum);
  }
  return result;
}

Shape stored(Shape shape, bool transposed) {
  if (transposed) std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
  return shape;
}

class OneDnnMatmul : public testing::TestWithParam<std::tuple<MatmulCase, bool, bool>> {};

TEST_P(OneDnnMatmul, EqualsItsDefinition) {
  const auto& [matmul, transpose_a, transpose_b] = GetParam();
  const Tensor a = random_tensor(stored(matmul.a, transpose_a), 1), b = random_tensor(stored(matmul.b, transpose_b), 2);
  const Tensor expected = product(a, transpose_a, b, transpose_b, matmul.output, matmul.a[matmul.a.rank() - 1]);
  const auto signature = make_signature("matmul", {a.type(), b.type()}, expected.type(),
                                        {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  std::string why_not;
  const auto kernel = make_onednn_kernel(signature.node, 2, &why_not);
  ASSERT_NE(kernel, nullptr) << why_not;
  EXPECT_LT(relative_error(run_onednn_kernel(*kernel, signature.node, {a, b}), expected), 2e-5) << kernel->name();
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, OneDnnMatmul,
    testing::Combine(testing::Values(MatmulCase{"matrices", {7, 33}, {33, 10}, {7, 10}},
                                     MatmulCase{"one_row", {1, 64}, {64, 48}, {1, 48}},
                                     MatmulCase{"one_column", {5, 64}, {64, 1}, {5, 1}},
                                     MatmulCase{"batches", {3, 2, 5, 8}, {3, 2, 8, 6}, {3, 2, 5, 6}},
                                     MatmulCase{"shared_right", {3, 2, 5, 8}, {8, 6}, {3, 2, 5, 6}},
                                     MatmulCase{"shared_right_of_equal_rank", {3, 5, 8}, {1, 8, 6}, {3, 5, 6}},
                                     MatmulCase{"shared_left", {5, 8}, {3, 8, 6}, {3, 5, 6}},
                                     MatmulCase{"both_broadcast", {3, 1, 5, 8}, {2, 8, 6}, {3, 2, 5, 6}}),
                     testing::Bool(), testing::Bool()),
    [](const auto& instance) {
      return std::string(std::get<0>(instance.param).label) + (std::get<1>(instance.param) ? "_T" : "_N") +
             (std::get<2>(instance.param) ? "T" : "N");
    });

TEST(OneDnnMatmulOperands, BlockedOperandIsDeclinedWithAReason) {
  TensorType a{DType::f32, {32, 32}, parse_layout("Ab16a", 2)};
  const auto signature = make_signature("matmul", {a, {DType::f32, {32, 32}, {}}}, {DType::f32, {32, 32}, {}},
                                        {{"transpose_a", false}, {"transpose_b", false}});
  std::string why_not;
  EXPECT_EQ(make_onednn_kernel(signature.node, 2, &why_not), nullptr);
  EXPECT_NE(why_not.find("Ab16a"), why_not.npos) << why_not;
}

class OneDnnReorder : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(OneDnnReorder, EqualsTheGenericCopyWithZeroPadding) {
  const Tensor plain = random_tensor({5, 19, 3, 4}, 7);
  const Tensor source = plain.with_layout(parse_layout(std::get<0>(GetParam()), 4));
  const Tensor expected = plain.with_layout(parse_layout(std::get<1>(GetParam()), 4));
  const auto signature = make_signature("reorder", {source.type()}, expected.type());
  const auto kernel = make_onednn_kernel(signature.node);
  ASSERT_NE(kernel, nullptr);
  Tensor target(expected.type());
  std::fill_n(target.data_as<float>(), target.bytes() / 4, NAN);
  const auto workspace = allocate_aligned(kernel->workspace_bytes());
  const void* in[] = {source.data()};
  void* out[] = {target.data()};
  kernel->run({in, out, workspace.get()});
  std::fill_n(target.data_as<float>(), target.bytes() / 4, NAN);
  kernel->run({in, out, workspace.get()});
  EXPECT_EQ(std::memcmp(target.data(), expected.data(), static_cast<size_t>(expected.bytes())), 0) << kernel->name();
}

INSTANTIATE_TEST_SUITE_P(Layouts, OneDnnReorder,
                         testing::Combine(testing::Values("", "acdb", "aBcd8b", "aBcd16b", "ABcd16b16a"),
                                          testing::Values("", "acdb", "aBcd8b", "aBcd16b", "BAcd16a16b", "Acdb16a")));

TEST(OneDnnReorderTypes, SixtyFourBitIntegersAreDeclined) {
  const auto signature = make_signature("reorder", {{DType::i64, {4, 4}, {}}}, {DType::i64, {4, 4}, {}});
  EXPECT_EQ(make_onednn_kernel(signature.node), nullptr);
}

}  // namespace
}  // namespace weft
