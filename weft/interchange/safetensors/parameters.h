// Parameters that come from other programs as safetensors files, matched to a graph by name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

struct ImportedParameters {
  std::map<std::string, Tensor> tensors;  // f32, plain
  std::vector<std::string> unused;        // in the file, but not asked for
};

struct WantedParameter {
  std::string name;
  Shape shape;
};

/// Finds each wanted tensor; f64, bf16 and f16 become f32. Error(data) naming the file where one is absent (with the
/// nearest name there is) or of another shape.
ImportedParameters import_parameters(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted);

}  // namespace weft
