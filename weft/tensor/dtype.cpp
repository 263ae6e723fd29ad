#include "weft/tensor/dtype.h"

#include <array>

#include "weft/base/error.h"

namespace weft {

namespace {

enum class Kind : uint8_t { floating, with_sign, without_sign, boolean };

struct Row {
  DType dtype;
  std::string_view name;
  int bits;
  Kind kind;
};
// In the order of the enumeration.
constexpr std::array<Row, 17> kTable{{{DType::f32, "f32", 32, Kind::floating},
                                      {DType::f64, "f64", 64, Kind::floating},
                                      {DType::bf16, "bf16", 16, Kind::floating},
                                      {DType::f16, "f16", 16, Kind::floating},
                                      {DType::i64, "i64", 64, Kind::with_sign},
                                      {DType::i32, "i32", 32, Kind::with_sign},
                                      {DType::u8, "u8", 8, Kind::without_sign},
                                      {DType::boolean, "bool", 8, Kind::boolean},
                                      {DType::i8, "i8", 8, Kind::with_sign},
                                      {DType::i16, "i16", 16, Kind::with_sign},
                                      {DType::u16, "u16", 16, Kind::without_sign},
                                      {DType::u32, "u32", 32, Kind::without_sign},
                                      {DType::u64, "u64", 64, Kind::without_sign},
                                      {DType::i4, "i4", 4, Kind::with_sign},
                                      {DType::u4, "u4", 4, Kind::without_sign},
                                      {DType::i2, "i2", 2, Kind::with_sign},
                                      {DType::u2, "u2", 2, Kind::without_sign}}};

constexpr auto kDTypes = [] {
  std::array<DType, kTable.size()> all{};
  for (size_t index = 0; index < all.size(); ++index) all[index] = kTable[index].dtype;
  return all;
}();
static_assert([] {
  for (size_t index = 0; index < kDTypes.size(); ++index)
    if (static_cast<size_t>(kDTypes[index]) != index) return false;
  return true;
}());

const Row& row(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

}  // namespace

std::span<const DType> all_dtypes() { return kDTypes; }

int64_t byte_size(DType dtype, int64_t elements) {
  const int bits = row(dtype).bits;
  if (bits >= 8) return elements * (bits / 8);
  const int per_byte = 8 / bits;
  return elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
}

int64_t unpacked_size(DType dtype) {
  const int bits = row(dtype).bits;
  if (bits < 8)
    fail(ErrorKind::internal, "internal error: an element of {} has no size of its own; several share a byte",
         name_of(dtype));
  return bits / 8;
}

int bits_of(DType dtype) { return row(dtype).bits; }
std::string_view name_of(DType dtype) { return row(dtype).name; }
bool is_floating(DType dtype) { return row(dtype).kind == Kind::floating; }
bool is_integer(DType dtype) { return row(dtype).kind == Kind::with_sign || row(dtype).kind == Kind::without_sign; }
bool is_signed(DType dtype) { return row(dtype).kind == Kind::floating || row(dtype).kind == Kind::with_sign; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& candidate : kTable)
    if (candidate.name == name) return candidate.dtype;
  return std::nullopt;
}

std::string_view dtype_names() {
  return "f32, f64, bf16, f16, i64, i32, i16, i8, u64, u32, u16, u8, bool, i4, u4, i2 or u2";
}

}  // namespace weft
