// How weft's own code throws: errors (exception.h) with formatted messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "weft/base/exception.h"

namespace weft {

/// Throws Error with a message in fmt syntax: fail(ErrorKind::data, "'{}' is empty", path).
template <typename... Arguments>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw Error(kind, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// For invariants of weft itself; a message for users belongs into fail().
inline void check(bool condition, const char* what) {
  if (!condition) fail(ErrorKind::internal, "internal error: {}; please report this with the command you ran", what);
}

}  // namespace weft
