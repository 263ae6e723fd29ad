// One tensor between ONNX's file format and weft's own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "weft/onnx/file/model.h"

namespace weft::onnx_format {
class Tensor;
}

namespace weft::onnx {

/// ONNX's number of a type (TensorProto.DataType), and back; nullopt for the types that weft has not.
std::optional<DType> dtype_of(int32_t data_type);
int32_t data_type_of(DType dtype);
inline constexpr int32_t kStrings = 8;
/// "float8e4m3fn", for messages.
std::string name_of_data_type(int32_t data_type);

/// `folder` is where external data lie; empty: there may be none. Error(data) names the tensor and what is wrong with
/// it; Error(io) where external data cannot be read. Error(usage) for a type that weft has not.
HostValue decode(const onnx_format::Tensor& tensor, const std::filesystem::path& folder);

/// With its name; the data are in the file itself.
void encode(const HostValue& value, const std::string& name, onnx_format::Tensor& tensor);

}  // namespace weft::onnx
