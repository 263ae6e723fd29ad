// Tensors as NumPy's files: .npy, of version 1 to 3 (numpy.lib.format).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "weft/tensor/tensor.h"

namespace weft {

/// Numbers in either order of bytes, rows or columns first. Error(io) where the file cannot be read, Error(data) where
/// it is damaged or holds what weft has no type for; both name it.
Tensor read_npy(const std::filesystem::path& path);
/// The same of a file's content; `name` is for messages.
Tensor parse_npy(std::string_view content, const std::string& name);
/// Replaces the file whole or not at all. bf16 becomes f32, and packed integers bytes: NumPy has no such types.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace weft
