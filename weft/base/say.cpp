#include "weft/base/say.h"

#include <fmt/format.h>

#include <cstdio>

namespace weft {

void say(const std::string& line) { std::fputs(fmt::format("weft: {}\n", line).c_str(), stderr); }

}  // namespace weft
