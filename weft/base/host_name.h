// What this machine calls itself.
#pragma once

#include <string>

namespace weft {

/// "localhost" where it has no name.
std::string host_name();

}  // namespace weft
