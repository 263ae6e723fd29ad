#include <gtest/gtest.h>

#include <limits>

#include "tests/support/files_for_tests.h"
#include "weft/base/error.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/shape.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

TEST(DType, NamesParseBack) {
  ASSERT_EQ(all_dtypes().size(), 17u);
  for (const DType dtype : all_dtypes()) {
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
    EXPECT_NE(dtype_names().find(name_of(dtype)), std::string_view::npos);
  }
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
}

TEST(DType, SizesAreInBytes) {
  EXPECT_EQ(unpacked_size(DType::f64), 8);
  EXPECT_EQ(unpacked_size(DType::bf16), 2);
  EXPECT_EQ(unpacked_size(DType::u8), 1);
}

TEST(DType, SizesOfPackedTypesAreRoundedUpToBytes) {
  EXPECT_EQ(byte_size(DType::i4, 0), 0);
  EXPECT_EQ(byte_size(DType::i4, 1), 1);
  EXPECT_EQ(byte_size(DType::u4, 7), 4);
  EXPECT_EQ(byte_size(DType::u2, 4), 1);
  EXPECT_EQ(byte_size(DType::i2, 5), 2);
  EXPECT_EQ(byte_size(DType::f64, 3), 24);
  EXPECT_EQ((TensorType{DType::i4, {3, 3}, {}}.bytes()), 5);
}

TEST(DType, PackedElementsHaveNoSize) {
  try {
    unpacked_size(DType::u4);
    FAIL() << "a nibble has a size";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("an element of u4 has no size of its own"), std::string::npos);
  }
}

TEST(DType, IntegersAndSignsAreKnown) {
  EXPECT_TRUE(is_integer(DType::u64) && !is_signed(DType::u64));
  EXPECT_TRUE(is_integer(DType::i2) && is_signed(DType::i2) && is_packed(DType::i2));
  EXPECT_FALSE(is_integer(DType::boolean) || is_signed(DType::boolean) || is_packed(DType::boolean));
  EXPECT_TRUE(is_signed(DType::bf16) && !is_integer(DType::bf16));
}

TEST(DType, FloatingOnesAreKnown) {
  EXPECT_TRUE(is_floating(DType::bf16));
  EXPECT_FALSE(is_floating(DType::i32));
}

TEST(Shape, ElementsAreTheProduct) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape{}.elements(), 1);  // a scalar
  EXPECT_EQ(Shape({5, 0}).elements(), 0);
}

TEST(Shape, PrintsAsATuple) {
  EXPECT_EQ(to_string(Shape{128, 1, 28, 28}), "(128,1,28,28)");
  EXPECT_EQ(to_string(Shape{}), "()");
}

TEST(Shape, RowMajorStrides) {
  EXPECT_EQ(row_major_strides(Shape{2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_TRUE(row_major_strides(Shape{}).empty());
}

TEST(TensorType, TextParsesBack) {
  for (const char* text : {"f32[]", "i32[7]", "bf16[64,3,32,32]", "f32[64,17,8,8]@aBcd16b", "f32[2,3,4,5]@acdb"})
    EXPECT_EQ(to_string(parse_tensor_type(text)), text);
}

TEST(Shape, SizesAreBoundedFarFromOverflow) {
  constexpr int64_t power = int64_t{1} << 24, largest = std::numeric_limits<int64_t>::max();
  for (const Shape& shape : {Shape{}, Shape{power, power}, Shape{kMostElements, 0, 1}, Shape{0, 0}})
    EXPECT_TRUE(has_bounded_size(shape)) << to_string(shape);
  for (const Shape& shape : {Shape{power, power + 1}, Shape{0, largest, 2}, Shape{largest, largest}, Shape{2, -1}})
    EXPECT_FALSE(has_bounded_size(shape)) << to_string(shape);
}

TEST(TensorType, PaddingCounts) {
  const Shape shape{int64_t{1} << 36, 1};
  EXPECT_TRUE(has_bounded_size(TensorType{DType::f32, shape, {}}));
  EXPECT_FALSE(has_bounded_size(TensorType{DType::f32, shape, parse_layout("aB8192b", 2)}));
}

TEST(TensorType, MoreElementsThanMemoryAreAnError) {
  for (const char* text : {"f32[4294967296,4294967296]", "f32[9223372036854775807]", "u8[0,9223372036854775807,3]"})
    expect_error([&] { parse_tensor_type(text); }, ErrorKind::data, {text, "more elements than any memory holds"});
}

TEST(TensorType, MalformedTextIsAnError) {
  for (const char* text :
       {"", "f32", "f32[", "f33[1]", "f32[1,]", "f32[-1]", "f32[x]", "f32[1 2]", "f32[2]abc", "f32[2]@ba"})
    expect_error([&] { parse_tensor_type(text); }, ErrorKind::data, {"'"});
}

}  // namespace
}  // namespace weft
