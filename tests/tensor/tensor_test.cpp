#include "weft/tensor/tensor.h"

#include "tests/support/files_for_tests.h"

namespace weft {
namespace {

TEST(Tensor, BeginsAsAlignedZeros) {
  const Tensor tensor(DType::f32, Shape{3, 5});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % kAlignment, 0u);
  for (int64_t at = 0; at < 15; ++at) EXPECT_EQ(tensor.data_as<float>()[at], 0.0f);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor tensor = Tensor::of(Shape{2}, std::vector<float>{1, 2});
  const Tensor shared = tensor, cloned = tensor.clone();
  tensor.data_as<float>()[0] = 7;
  EXPECT_EQ(shared.data_as<float>()[0], 7);
  EXPECT_EQ(cloned.data_as<float>()[0], 1);
}

TEST(Tensor, OfWantsAsManyValuesAsElements) {
  EXPECT_THROW(Tensor::of(Shape{3}, std::vector<float>{1, 2}), Error);
  EXPECT_THROW(Tensor::of_i32(Shape{1}, std::vector<int32_t>{1, 2}), Error);
}

TEST(Tensor, ASizeThatTheSystemDoesNotHaveIsAnError) {
  expect_error([] { allocate_aligned(int64_t{1} << 60); }, ErrorKind::io, {"no memory for 1152921504606846976 bytes"});
}

TEST(Tensor, BytesCountLayoutPadding) {
  EXPECT_EQ(TensorType({DType::bf16, Shape{1, 3, 2, 2}, parse_layout("aBcd16b", 4)}).bytes(), 16 * 4 * 2);
  EXPECT_EQ(align_up(1), 64);
  EXPECT_EQ(align_up(64), 64);
}

}  // namespace
}  // namespace weft
