// The file that keeps times of ops within steps from one program to the next: machine_file.h says of which machine and
// version of weft they are.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "weft/device/op_times.h"

namespace weft {

std::string print_op_times(const OpTimes& times, const std::string& machine);
/// Error(data), what is wrong with the text alone, where it is damaged or of another machine or version.
OpTimes parse_op_times(std::string_view text, const std::string& machine);

class OpTimesFile {
 public:
  using Note = std::function<void(const std::string& line)>;
  /// A file in `directory`, which need not exist, for this machine: DeviceKind::describe_machine. `ranks`: of
  /// OpTimes::ranks.
  OpTimesFile(const std::filesystem::path& directory, std::string machine, int64_t ranks = 1);

  const std::filesystem::path& file() const { return file_; }
  /// Empty where there is no file, and, after a line to `note`, where it cannot be used.
  OpTimes read(const Note& note) const;
  /// Adds to what the file holds by now, whole or not at all; the rates are those of `times`, the overhead is the
  /// least of both. A file that cannot be used is replaced. Error(io).
  void add(const OpTimes& times) const;

 private:
  const std::string machine_;
  const std::filesystem::path file_;
};

/// Of a file that a user names. Error(data) naming the file, what is wrong and the next step, where it is of another
/// machine or version, or damaged.
OpTimes read_op_times(const std::filesystem::path& file, const std::string& machine);

}  // namespace weft
