// One tensor between ONNX's file format and weft's own.
#pragma once

#include <filesystem>
#include <map>
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

/// Data of one model's tensors that lie in other files of its folder. What two tensors have in common is read once; in
/// all no more is read of a file than it has, so that small files do not fill the memory.
class ExternalData {
 public:
  /// Empty: there may be none.
  explicit ExternalData(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

  /// Error(data) names the tensor and what is wrong; Error(io) where the file cannot be read.
  Tensor read(const onnx_format::Tensor& tensor, const TensorType& type);

 private:
  const std::filesystem::path folder_;
  std::map<std::string, Tensor> parts_;           // by file, place and type
  std::map<std::string, int64_t> bytes_of_file_;  // that were read
};

/// Error(data) names the tensor and what is wrong with it; Error(io) where external data cannot be read. Error(usage)
/// for a type that weft has not.
HostValue decode(const onnx_format::Tensor& tensor, ExternalData& external);

/// With its name; the data are in the file itself.
void encode(const HostValue& value, const std::string& name, onnx_format::Tensor& tensor);

}  // namespace weft::onnx
