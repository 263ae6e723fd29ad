// A checkpoint that is read one tensor at a time: those that several ranks wrote in parts are put together.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/run/checkpoint/manifest.h"
#include "weft/run/checkpoint/tensor_files.h"
#include "weft/tensor/safetensors.h"

namespace weft::run {

class CheckpointReader {
 public:
  /// Checks the manifest and the sizes and checksums of all files that it reads from. Error(data) or Error(io) says
  /// what is damaged, or which part is missing. With `with_optimizer` = false it leaves out the optimiser's slots.
  explicit CheckpointReader(const std::filesystem::path& directory, bool with_optimizer = true);

  const Manifest& manifest() const { return manifest_; }
  /// Of the states, sorted.
  std::vector<std::string> names() const;
  /// Whole. Error(data) where the parts are not those of the manifest.
  TensorType type(const std::string& name) const;
  Tensor read(const std::string& name);

 private:
  void open(TensorFile file);
  const TensorPlace& place(const std::string& name) const;
  /// Those of the files of parts that have the parts of a tensor, in their order.
  std::vector<int> files_with(const step::StateSharding& sharding) const;

  std::filesystem::path directory_;
  Manifest manifest_;
  std::map<TensorFile, std::unique_ptr<SafetensorsReader>> whole_;
  std::map<TensorFile, std::vector<std::unique_ptr<SafetensorsReader>>> parts_;  // by part, or by rank
  std::map<std::string, TensorPlace> places_;                                    // by state
};

/// The manifest of a checkpoint whose files have the sizes and checksums that it says.
Manifest checked_manifest(const std::filesystem::path& directory, bool with_optimizer);

}  // namespace weft::run
