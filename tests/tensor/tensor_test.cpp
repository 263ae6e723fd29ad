#include "weft/tensor/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

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

/// Pages that have memory behind them.
int64_t resident_pages(std::byte* memory, int64_t bytes) {
  std::vector<unsigned char> pages(static_cast<size_t>(bytes / sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(mincore(memory, static_cast<size_t>(bytes), pages.data()), 0);
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
}

TEST(Tensor, LargeOnesTakeMemoryOnlyWhereTheyAreTouched) {
#if !defined(__linux__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "they come from the C library here";
#endif
  constexpr int64_t kBytes = (64 << 20) + 4096 * 3;
  const std::shared_ptr<std::byte> memory = allocate_aligned(kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % (2 << 20), 0u);
  EXPECT_EQ(resident_pages(memory.get(), kBytes), 0);
  EXPECT_EQ(memory.get()[kBytes - 1], std::byte{0});
  memory.get()[kBytes - 1] = std::byte{1};
  const int64_t touched = resident_pages(memory.get(), kBytes);
  EXPECT_GE(touched, 1);
  EXPECT_LE(touched, (2 << 20) / 4096) << "one large page at most";
}

TEST(Tensor, BytesCountLayoutPadding) {
  EXPECT_EQ(TensorType({DType::bf16, Shape{1, 3, 2, 2}, parse_layout("aBcd16b", 4)}).bytes(), 16 * 4 * 2);
  EXPECT_EQ(align_up(1), 64);
  EXPECT_EQ(align_up(64), 64);
}

}  // namespace
}  // namespace weft
