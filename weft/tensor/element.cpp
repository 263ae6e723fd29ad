#include "weft/tensor/element.h"

#include <cmath>
#include <limits>

#include "weft/tensor/tensor.h"

namespace weft {

namespace {

template <typename Integer>
Integer to_integer(double value) {
  if (std::isnan(value)) return 0;
  // 2^63 as a double is one above the largest int64: the comparison has to include it.
  if (value >= static_cast<double>(std::numeric_limits<Integer>::max())) return std::numeric_limits<Integer>::max();
  if (value <= static_cast<double>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(value);
}

}  // namespace

double load_element(DType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(static_cast<const float*>(data)[index]);
    case DType::f64:
      return static_cast<const double*>(data)[index];
    case DType::bf16:
      return static_cast<double>(bf16_to_f32(static_cast<const uint16_t*>(data)[index]));
    case DType::f16:
      return static_cast<double>(f16_to_f32(static_cast<const uint16_t*>(data)[index]));
    case DType::i64:
      return static_cast<double>(static_cast<const int64_t*>(data)[index]);
    case DType::i32:
      return static_cast<double>(static_cast<const int32_t*>(data)[index]);
    case DType::u8:
      return static_cast<double>(static_cast<const uint8_t*>(data)[index]);
  }
  return 0;
}

void store_element(DType dtype, void* data, int64_t index, double value) {
  switch (dtype) {
    case DType::f32:
      static_cast<float*>(data)[index] = static_cast<float>(value);
      break;
    case DType::f64:
      static_cast<double*>(data)[index] = value;
      break;
    case DType::bf16:
      static_cast<uint16_t*>(data)[index] = f32_to_bf16(static_cast<float>(value));
      break;
    case DType::f16:
      static_cast<uint16_t*>(data)[index] = f32_to_f16(static_cast<float>(value));
      break;
    case DType::i64:
      static_cast<int64_t*>(data)[index] = to_integer<int64_t>(value);
      break;
    case DType::i32:
      static_cast<int32_t*>(data)[index] = to_integer<int32_t>(value);
      break;
    case DType::u8:
      static_cast<uint8_t*>(data)[index] = to_integer<uint8_t>(value);
      break;
  }
}

}  // namespace weft
