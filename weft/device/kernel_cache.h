// The file that keeps the times of kernels from one program to the next: one line of JSON that says of which machine
// they are, and one for each kind of node.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "weft/device/kernel_times.h"

namespace weft {

std::string print_kernel_times(const KernelTimes& times, const std::string& machine);
/// Error(data), what is wrong with the text alone, where it is damaged or of another machine.
KernelTimes parse_kernel_times(std::string_view text, const std::string& machine);

class KernelCache {
 public:
  using Note = std::function<void(const std::string& line)>;
  /// A file in `directory`, which need not exist, for this machine: DeviceKind::describe_machine.
  KernelCache(const std::filesystem::path& directory, std::string machine);
  /// $WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else $HOME/.cache/weft. Error(usage) where none of them is set.
  static std::filesystem::path standard_directory();

  const std::filesystem::path& file() const { return file_; }
  /// Nothing where there is no file, nor, after a line to `note`, where it cannot be used.
  KernelTimes read(const Note& note) const;
  /// Adds to what the file holds by now, whole or not at all; several programs may do so at a time. A file that cannot
  /// be used is replaced. Error(io).
  void add(const KernelTimes& times) const;

 private:
  const std::string machine_;
  const std::filesystem::path file_;
};

}  // namespace weft
