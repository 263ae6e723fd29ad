#include "weft/interchange/safetensors/parameters.h"

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/tensor/safetensors.h"

namespace weft {

namespace {

Tensor as_f32(Tensor tensor, const std::string& path, const std::string& name) {
  if (tensor.dtype() == DType::f32) return tensor;
  if (!is_floating(tensor.dtype()))
    fail(ErrorKind::data, "'{}': '{}' is {}, a parameter must be floating-point", path, name, name_of(tensor.dtype()));
  Tensor result(DType::f32, tensor.shape());
  float* target = result.data_as<float>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.dtype() == DType::f64) target[i] = static_cast<float>(tensor.data_as<double>()[i]);
    if (tensor.dtype() == DType::bf16) target[i] = bf16_to_f32(tensor.data_as<uint16_t>()[i]);
    if (tensor.dtype() == DType::f16) target[i] = f16_to_f32(tensor.data_as<uint16_t>()[i]);
  }
  return result;
}

}  // namespace

ImportedParameters import_parameters(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted) {
  SafetensorsFile file = read_safetensors(path);
  const std::string shown = path.string();
  ImportedParameters imported;
  for (const WantedParameter& parameter : wanted) {
    const auto found = file.tensors.find(parameter.name);
    if (found == file.tensors.end()) {
      std::vector<std::string> names;
      for (const auto& [name, tensor] : file.tensors) names.push_back(name);
      fail(ErrorKind::data, "'{}' has no tensor '{}'{}", shown, parameter.name, suggestion(parameter.name, names));
    }
    if (found->second.shape() != parameter.shape)
      fail(ErrorKind::data, "'{}': '{}' is {}, the model wants {}; was it saved from another model?", shown,
           parameter.name, to_string(found->second.shape()), to_string(parameter.shape));
    imported.tensors[parameter.name] = as_f32(std::move(found->second), shown, parameter.name);
    file.tensors.erase(found);
  }
  for (const auto& [name, tensor] : file.tensors) imported.unused.push_back(name);
  return imported;
}

}  // namespace weft
