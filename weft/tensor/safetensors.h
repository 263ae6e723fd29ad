// Reads and writes safetensors files: 8 bytes little-endian header length, a JSON header, raw tensors.
// Format: https://github.com/huggingface/safetensors. Tensors are written plain (row-major), sorted by name. The format
// has no packed types: Error(usage) where one is to be written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weft/base/files.h"
#include "weft/tensor/tensor.h"

namespace weft {

struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Error(io) for a missing file; Error(data), naming path and place, for anything that is not a whole safetensors file.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

/// What the header alone says: the tensors' shapes, whose bytes are neither read nor checked.
struct SafetensorsHeader {
  std::map<std::string, Shape> shapes;
  std::map<std::string, std::string> metadata;
};
/// Errors as of read_safetensors(), where the header shows them.
SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);

/// A file whose tensors are read one at a time, when they are asked for.
class SafetensorsReader {
 public:
  /// Reads and checks the header. Errors as of read_safetensors().
  explicit SafetensorsReader(std::filesystem::path path);

  const std::map<std::string, TensorType>& types() const { return types_; }
  /// Error(usage) where there is none of that name; Error(io) where the file cannot be read any more.
  Tensor read(const std::string& name);

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::map<std::string, TensorType> types_;
  std::map<std::string, uint64_t> begins_;  // of each tensor, in the file
};

struct SafetensorsEntry {
  std::string name;
  TensorType type;  // plain
};

/// Writes one tensor after the other, asking for each when its turn comes, so that no second copy of all is needed.
/// The caller commits the file.
void write_safetensors(AtomicFile& out, const std::vector<SafetensorsEntry>& entries,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<Tensor(const std::string& name)>& tensor_of);

/// Whole or absent: written to a temporary name, synced, renamed.
void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file);

}  // namespace weft
