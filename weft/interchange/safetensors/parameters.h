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

/// A tensor of a file, by its name there.
struct NamedShape {
  std::string name;
  Shape shape;
};

struct ImportedParameters {
  std::map<std::string, Tensor> tensors;  // f32, plain, under the names that were wanted
  std::string prefix;                     // what came before every name in the file, such as "module."
  std::vector<std::string> missing;       // wanted, but not there, or there in another shape
  bool has_other_classes = false;         // a head is there for another number of classes
  std::vector<NamedShape> left;           // there in another shape than wanted
  std::vector<NamedShape> unused;         // in the file, but not asked for
};

enum class Match {
  all,   // every tensor that is wanted is there in its shape, but for heads
  some,  // tensors may be absent or of another shape
};

/// Error(data) that says how to convert a file of torch.save.
void refuse_torch_files(const std::filesystem::path& path);

/// Finds each wanted tensor; f64, bf16 and f16 become f32. A prefix that wrappers put before all names is found and
/// left away, as are PyTorch's counters of batches (num_batches_tracked). A head may be absent as a whole, or there for
/// another number of classes. Error(data) naming the file where another tensor is absent (with the nearest name there
/// is) or of another shape, unless `match` allows it, where none is found at all, and where the file is one of
/// torch.save.
ImportedParameters import_parameters(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted,
                                     Match match = Match::all);

}  // namespace weft
