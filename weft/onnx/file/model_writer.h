// Writes models as ONNX files.
#pragma once

#include <filesystem>
#include <string>

#include "weft/onnx/file/model.h"

namespace weft::onnx {

/// Replaces the file whole or not at all. What has more than 2 GiB, which no ONNX file may have, gets its tensors
/// beside it as PATH.data, which is written first. Error(io) names what could not be written.
void write_model(const std::filesystem::path& path, const Model& model);
/// The same as a file's content, with all tensors in it.
std::string print_model(const Model& model);

}  // namespace weft::onnx
