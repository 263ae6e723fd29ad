// Parameters that come from other programs as safetensors files, matched to a graph by PyTorch's names.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "weft/tensor/safetensors.h"
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

/// What of a file is wanted.
struct MatchedParameters {
  std::vector<NamedShape> taken;     // under the names that were wanted, in their order
  std::string prefix;                // what came before every name in the file, such as "module."
  std::vector<std::string> missing;  // wanted, but not there, or there in another shape
  bool has_other_classes = false;    // a head is there for another number of classes
  std::vector<NamedShape> left;      // there in another shape than wanted
  std::vector<NamedShape> unused;    // in the file, but not asked for
};

struct ImportedParameters : MatchedParameters {
  std::map<std::string, Tensor> tensors;  // f32, plain, under the names that were wanted
};

enum class Match {
  all,   // every tensor that is wanted is there in its shape, but for heads
  some,  // tensors may be absent or of another shape
};

/// Error(data) that says how to convert a file of torch.save.
void refuse_torch_files(const std::filesystem::path& path);

/// The parameters of a file that are read one at a time.
class ParameterReader {
 public:
  /// Finds each wanted tensor. A prefix that wrappers put before all names is found and left away, as are PyTorch's
  /// counters of batches (num_batches_tracked). A head may be absent as a whole, or there for another number of
  /// classes. Error(data) naming the file where another tensor is absent (with the nearest name there is), of another
  /// shape, unless `match` allows it, or of integers, where none is found at all, and where the file is one of
  /// torch.save.
  ParameterReader(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted,
                  Match match = Match::all);

  const MatchedParameters& matched() const { return matched_; }
  /// One of those that are taken, by the name that was wanted; f64, bf16 and f16 become f32.
  Tensor read(const std::string& name);

 private:
  SafetensorsReader file_;
  MatchedParameters matched_;
};

/// All that a ParameterReader takes, with its errors.
ImportedParameters import_parameters(const std::filesystem::path& path, const std::vector<WantedParameter>& wanted,
                                     Match match = Match::all);

}  // namespace weft
