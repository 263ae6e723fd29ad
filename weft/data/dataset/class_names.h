// How classes are named, and the order of those whose names come from the data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::data {

/// By value where all are numbers, else as texts; whether they are numbers. With `decimal_comma`, "1,5" is one.
bool sort_classes(std::vector<std::string>& names, bool decimal_comma);

/// "class 3" where there are fewer names.
std::string class_name(const std::vector<std::string>& names, int64_t index);

}  // namespace weft::data
