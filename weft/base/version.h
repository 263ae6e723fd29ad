// Which weft this is.
#pragma once

#include <string_view>

namespace weft {

/// "0.1.0", as CMakeLists.txt has it.
std::string_view version();

}  // namespace weft
