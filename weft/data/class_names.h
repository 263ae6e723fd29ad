// The order of classes whose names come from the data.
#pragma once

#include <string>
#include <vector>

namespace weft::data {

/// By value where all are numbers, else as texts; whether they are numbers. With `decimal_comma`, "1,5" is one.
bool sort_classes(std::vector<std::string>& names, bool decimal_comma);

}  // namespace weft::data
