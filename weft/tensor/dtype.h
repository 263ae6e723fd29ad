// Element types and their spelling in graphs, plans and safetensors files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class DType : uint8_t { f32, f64, bf16, f16, i64, i32, u8 };

/// Bytes per element.
int64_t size_of(DType dtype);
/// "f32"
std::string_view name_of(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
bool is_floating(DType dtype);

}  // namespace weft
