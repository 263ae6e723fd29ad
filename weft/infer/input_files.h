// Which files `weft predict` is given: names, folders and patterns.
#pragma once

#include <string>
#include <vector>

namespace weft::infer {

/// Of a folder all pictures in it and below, sorted; of a pattern such as "scans/*.png" that names no file, what it
/// matches. Everything else stays as it is. Error(usage) for a folder without pictures and a pattern without a match.
std::vector<std::string> expand_files(const std::vector<std::string>& files);

}  // namespace weft::infer
