// Parameters that come from other programs as safetensors files, matched to a graph by PyTorch's names.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

struct WantedParameter {
  std::string name;
  Shape shape;
  bool is_head = false;  // may be there for another number of classes, and is left out then
};

struct ImportedParameters {
  std::map<std::string, Tensor> tensors;  // f32, plain, under the names that were wanted
  std::string prefix;                     // what came before every name in the file, such as "module."
  std::vector<std::string> left_out;      // heads for another number of classes: the names that were wanted
  std::vector<std::string> unused;        // in the file under that prefix, but not asked for
};

/// Finds each wanted tensor; f64, bf16 and f16 become f32. A prefix that wrappers put before all names is found and
/// left away, as are PyTorch's counters of batches (num_batches_tracked). Error(data) naming the file where a tensor is
/// absent (with the nearest name there is) or of another shape, and where the file is one of torch.save.
ImportedParameters import_parameters(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted);

}  // namespace weft
