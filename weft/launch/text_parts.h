// Parts of what other programs print.
#pragma once

#include <string>
#include <vector>

namespace weft::launch {

std::vector<std::string> split(const std::string& text, char separator);
/// The last line that is not empty.
std::string last_line(const std::string& text);

}  // namespace weft::launch
