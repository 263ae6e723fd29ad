#include "weft/tensor/dtype.h"

#include <array>

namespace weft {

namespace {
struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
  bool floating;
};
constexpr std::array<Row, 7> kTable{{{DType::f32, "f32", 4, true},
                                     {DType::f64, "f64", 8, true},
                                     {DType::bf16, "bf16", 2, true},
                                     {DType::f16, "f16", 2, true},
                                     {DType::i64, "i64", 8, false},
                                     {DType::i32, "i32", 4, false},
                                     {DType::u8, "u8", 1, false}}};
const Row& row(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }
}  // namespace

int64_t size_of(DType dtype) { return row(dtype).bytes; }
std::string_view name_of(DType dtype) { return row(dtype).name; }
bool is_floating(DType dtype) { return row(dtype).floating; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& candidate : kTable)
    if (candidate.name == name) return candidate.dtype;
  return std::nullopt;
}

}  // namespace weft
