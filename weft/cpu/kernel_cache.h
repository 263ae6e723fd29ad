// The file that keeps the times of kernels from one program to the next: one line of JSON that says of which machine
// they are, and one for each kind of node.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// What one call of a kernel took.
struct KernelTime {
  std::string kernel;
  double seconds = 0;
  friend bool operator==(const KernelTime&, const KernelTime&) = default;
};

/// By signature_key(): all kernels that serve such nodes, the one to take first.
using KernelTimes = std::map<std::string, std::vector<KernelTime>>;

/// Times hold for one processor with its instructions, one oneDNN, one weft and one number of threads: as text.
std::string describe_machine(int threads);

std::string print_kernel_times(const KernelTimes& times, const std::string& machine);
/// Error(data), what is wrong with the text alone, where it is damaged or of another machine.
KernelTimes parse_kernel_times(std::string_view text, const std::string& machine);

class KernelCache {
 public:
  using Note = std::function<void(const std::string& line)>;
  /// A file for these threads on this machine in `directory`, which need not exist.
  KernelCache(const std::filesystem::path& directory, int threads);
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
