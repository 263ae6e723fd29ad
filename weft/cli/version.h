// The version that `weft --version` prints; CMakeLists.txt states the same.
#pragma once

namespace weft::cli {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace weft::cli
