// Reads ONNX files (and the tensors that ONNX's own tests hold) as plain data.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "weft/onnx/file/model.h"

namespace weft::onnx {

/// Error(io) where the file cannot be read, Error(data) where it is no ONNX model or is damaged, with the path.
/// External data are read from the model's own folder only.
Model read_model(const std::filesystem::path& path);
/// The same of a file's content. Names in messages begin with `path`; `folder` holds external data, empty: there are
/// none.
Model parse_model(std::string_view content, const std::string& path, const std::filesystem::path& folder);

/// A file with one value: a tensor, or, as the type says that the model states, a sequence or an optional value.
HostValue read_value(const std::filesystem::path& path, ValueInfo::Kind kind = ValueInfo::Kind::tensor);

}  // namespace weft::onnx
