// Lines for the user beside a program's output.
#pragma once

#include <string>

namespace weft {

/// "weft: LINE" on stderr. What is only said never fails: that nobody can read it is no reason to stop.
void say(const std::string& line);

}  // namespace weft
