// Element types and their spelling in graphs, plans and safetensors files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weft {

/// The types of fewer than 8 bits are packed: several elements share a byte, the first in its lowest bits, and the bits
/// behind the last one are 0 (as ONNX packs int4). A boolean takes a byte, 0 or 1.
enum class DType : uint8_t { f32, f64, bf16, f16, i64, i32, u8, boolean, i8, i16, u16, u32, u64, i4, u4, i2, u2 };

/// In the order of the enumeration.
std::span<const DType> all_dtypes();

/// What so many elements one after the other take. Sizes are asked with a count, since a packed element has none.
int64_t byte_size(DType dtype, int64_t elements);
/// Bytes of one element of a type that is not packed; Error(internal) for one that is.
int64_t unpacked_size(DType dtype);
/// 2 to 64; 8 for a boolean.
int bits_of(DType dtype);

/// "f32"
std::string_view name_of(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
/// "f32, f64, ..., u2", for messages and help.
std::string_view dtype_names();

bool is_floating(DType dtype);
/// Whole numbers; a boolean is none.
bool is_integer(DType dtype);
/// True for integers that can be negative, and for floating types.
bool is_signed(DType dtype);
inline bool is_packed(DType dtype) { return dtype >= DType::i4; }

}  // namespace weft
