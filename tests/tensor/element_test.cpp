// Elements of every dtype against bits read one by one (tests/support/any_dtype.h) and NumPy's astype.
#include "weft/tensor/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/any_dtype.h"

namespace weft {
namespace {

using any_dtype::bits_at;

TEST(PackedElements, LieLowestBitsFirst) {
  Tensor nibbles(DType::u4, {3});
  for (int64_t i = 0; i < 3; ++i) store_number(DType::u4, nibbles.data(), i, int64_t{i + 1});
  ASSERT_EQ(nibbles.bytes(), 2);
  EXPECT_EQ(nibbles.data_as<uint8_t>()[0], 0x21);  // as ONNX packs int4
  EXPECT_EQ(nibbles.data_as<uint8_t>()[1], 0x03);
  Tensor pairs(DType::i2, {5});
  for (int64_t i = 0; i < 5; ++i) store_number(DType::i2, pairs.data(), i, int64_t{i - 2});
  ASSERT_EQ(pairs.bytes(), 2);
  EXPECT_EQ(pairs.data_as<uint8_t>()[0], 0b01'00'11'10);
  EXPECT_EQ(load_as<int64_t>(DType::i2, pairs.data(), 0), -2);
  EXPECT_EQ(load_as<int64_t>(DType::i2, pairs.data(), 4), -2);  // 2 wraps around
}

TEST(PackedElements, LeaveTheirNeighboursAlone) {
  for (const DType dtype : {DType::i4, DType::u4, DType::i2, DType::u2}) {
    Tensor tensor = any_dtype::draw_bits({dtype, {17}, {}}, 1);
    const Tensor before = tensor.clone();
    store_number(dtype, tensor.data(), 6, int64_t{1});
    for (int64_t i = 0; i < 17; ++i) EXPECT_EQ(bits_at(tensor, i), i == 6 ? 1u : bits_at(before, i));
  }
}

TEST(Elements, OfSixtyFourBitsAreExact) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  int64_t wide = odd;
  EXPECT_EQ(load_as<int64_t>(DType::i64, &wide, 0), odd);
  uint64_t large = ~uint64_t{0} - 1;
  EXPECT_EQ(load_as<uint64_t>(DType::u64, &large, 0), ~uint64_t{0} - 1);
  uint64_t copied = 0;
  convert_element(DType::i64, &wide, 0, DType::u64, &copied, 0);
  EXPECT_EQ(copied, static_cast<uint64_t>(odd));
}

// numpy: np.array([300, -1, 128, 2**40 + 7]).astype(t), float64 through truncation.
TEST(Elements, WrapAsNumPyDoes) {
  const int64_t from[] = {300, -1, 128, (int64_t{1} << 40) + 7};
  const int8_t narrow[] = {44, -1, -128, 7};
  const uint16_t half[] = {300, 65535, 128, 7};
  for (int64_t i = 0; i < 4; ++i) {
    int8_t to_narrow = 0;
    uint16_t to_half = 0;
    convert_element(DType::i64, from, i, DType::i8, &to_narrow, 0);
    convert_element(DType::i64, from, i, DType::u16, &to_half, 0);
    EXPECT_EQ(to_narrow, narrow[i]);
    EXPECT_EQ(to_half, half[i]);
  }
}

TEST(Elements, FromRealsAreTruncatedAndSaturated) {
  const double reals[] = {-1.9, 2.9, 1e30, -1e30, std::numeric_limits<double>::quiet_NaN(), 0x1p63};
  const int64_t wide[] = {-1, 2, INT64_MAX, INT64_MIN, 0, INT64_MAX};
  const int64_t nibbles[] = {-1, 2, 7, -8, 0, 7};
  const uint64_t unsigned_wide[] = {0, 2, UINT64_MAX, 0, 0, uint64_t{1} << 63};
  for (int64_t i = 0; i < 6; ++i) {
    int64_t signed_result = 5;
    uint64_t unsigned_result = 5;
    uint8_t nibble = 0;
    bool holds = false;
    store_number(DType::i64, &signed_result, 0, reals[i]);
    store_number(DType::u64, &unsigned_result, 0, reals[i]);
    store_number(DType::i4, &nibble, 0, reals[i]);
    store_number(DType::boolean, &holds, 0, reals[i]);
    EXPECT_EQ(signed_result, wide[i]) << reals[i];
    EXPECT_EQ(unsigned_result, unsigned_wide[i]) << reals[i];
    EXPECT_EQ(load_as<int64_t>(DType::i4, &nibble, 0), nibbles[i]) << reals[i];
    EXPECT_TRUE(holds) << reals[i];
  }
}

// Through f32 they would be rounded twice: here the first rounding ends half-way between two numbers.
TEST(Elements, AreRoundedToHalvesOnce) {
  const double just_above = 1 + 0x1p-8 + 0x1p-40, halfway = 1 + 0x1p-11 + 0x1p-40;
  uint16_t bits = 0;
  store_number(DType::bf16, &bits, 0, just_above);
  EXPECT_EQ(bits, 0x3f81);
  store_number(DType::f16, &bits, 0, halfway);
  EXPECT_EQ(bits, 0x3c01);
  store_number(DType::bf16, &bits, 0, (int64_t{1} << 40) + (int64_t{1} << 32) + 1);
  EXPECT_EQ(bits, 0x5381);
  store_number(DType::bf16, &bits, 0, -((int64_t{1} << 40) + (int64_t{1} << 32) + 1));
  EXPECT_EQ(bits, 0xd381);
  store_number(DType::f16, &bits, 0, int64_t{65520});
  EXPECT_EQ(bits, 0x7c00);  // infinite
}

TEST(Elements, OfHalvesAreRoundedToNearestEven) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Tensor reals = any_dtype::draw_bits({DType::f64, {4000}, {}}, 2);
    Tensor halves(dtype, {1});
    for (int64_t i = 0; i < reals.elements(); ++i) {
      const long double real = any_dtype::real_at(reals, i);
      convert_element(DType::f64, reals.data(), i, dtype, halves.data(), 0);
      const long double given = any_dtype::real_at(halves, 0), wanted = any_dtype::rounded(dtype, real);
      EXPECT_TRUE(given == wanted || (std::isnan(given) && std::isnan(wanted))) << static_cast<double>(real);
    }
  }
}

}  // namespace
}  // namespace weft
