#include "weft/tensor/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/error_of.h"
#include "tests/support/files_for_tests.h"

namespace weft {
namespace {

using testing::HasSubstr;

class NpyFiles : public FilesTest {};

/// As numpy.save writes it.
std::string npy(const std::string& header, const std::string& data) {
  std::string text = header;
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text + data;
}

TEST_F(NpyFiles, EveryTypeThatNumPyHasComesBack) {
  for (const DType dtype : all_dtypes()) {
    if (is_packed(dtype) || dtype == DType::bf16) continue;
    Tensor tensor(dtype, Shape{2, 3});
    std::memset(tensor.data(), dtype == DType::boolean ? 1 : 5, static_cast<size_t>(tensor.bytes()));
    write_npy(path("a.npy"), tensor);
    const Tensor back = read_npy(path("a.npy"));
    ASSERT_EQ(back.type(), tensor.type());
    EXPECT_EQ(std::memcmp(back.data(), tensor.data(), static_cast<size_t>(tensor.bytes())), 0) << name_of(dtype);
  }
}

TEST_F(NpyFiles, ScalarsAndVectorsKeepTheirShape) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{0, 3}}) {
    write_npy(path("a.npy"), Tensor(DType::f32, shape));
    EXPECT_EQ(read_npy(path("a.npy")).shape(), shape);
  }
}

TEST_F(NpyFiles, WhatNumPyHasNoTypeForIsWidened) {
  Tensor tensor(DType::bf16, Shape{1});
  *tensor.data_as<uint16_t>() = f32_to_bf16(1.5F);
  write_npy(path("a.npy"), tensor);
  const Tensor back = read_npy(path("a.npy"));
  EXPECT_EQ(back.dtype(), DType::f32);
  EXPECT_EQ(*back.data_as<float>(), 1.5F);
}

TEST(Npy, ColumnsFirstBecomeRowsFirst) {
  const Tensor tensor =
      parse_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", {1, 4, 2, 5, 3, 6}), "a");
  for (int index = 0; index < 6; ++index) EXPECT_EQ(tensor.data_as<uint8_t>()[index], index + 1);
}

TEST(Npy, TheOtherOrderOfBytesIsTurned) {
  const Tensor tensor = parse_npy(npy("{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }", {0, 0, 1, 2}), "a");
  EXPECT_EQ(*tensor.data_as<int32_t>(), 258);
}

TEST(Npy, DamagedFilesAreSaid) {
  EXPECT_THAT(test::error_of([] { parse_npy("", "a"); }), HasSubstr("'a' is no file of NumPy (.npy), or is damaged"));
  EXPECT_THAT(test::error_of([] { parse_npy(npy("{'shape': (1,)}", ""), "a"); }), HasSubstr("is no file of NumPy"));
  EXPECT_THAT(
      test::error_of([] { parse_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "1234"), "a"); }),
      HasSubstr("'a' has 4 bytes of numbers, but f32[3] wants 12"));
  EXPECT_THAT(test::error_of(
                  [] { parse_npy(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678"), "a"); }),
              HasSubstr("NumPy's type 'c8'"));
  EXPECT_THAT(test::error_of([] {
                parse_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", ""),
                          "a");
              }),
              HasSubstr("impossible shape"));
}

TEST(Npy, EveryTruncationIsAnError) {
  const std::string whole = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678");
  EXPECT_EQ(test::error_of([&] { parse_npy(whole, "a"); }), "no error");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(test::error_of([&] { parse_npy(whole.substr(0, length), "a"); }), "no error") << length;
}

}  // namespace
}  // namespace weft
