// What weft throws: errors as users see them, one clear message and a kind that decides the exit code.
// Message form: "[op] 'name': what is wrong (with shapes); the next step".
#pragma once

#include <stdexcept>
#include <string>

namespace weft {

enum class ErrorKind {
  usage,          // the command line, a recipe key, an unknown name
  shape,          // tensors that do not fit together
  data,           // content of a file that is not what it should be
  io,             // the system refused: missing file, full disk, no permission
  numeric,        // NaN or infinity where a number is needed
  communication,  // another rank is gone, stopped, unreachable or does something else
  internal,       // weft broke its own rule: a bug
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  /// 2 for usage errors, 1 for the rest, as Unix tools do.
  int exit_code() const { return kind_ == ErrorKind::usage ? 2 : 1; }

 private:
  ErrorKind kind_;
};

}  // namespace weft
