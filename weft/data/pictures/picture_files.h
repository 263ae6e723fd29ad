// Which files of a folder are pictures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft::data {

/// By its extension: .jpg, .jpeg, .png, .ppm or .pgm, in small or capital letters.
bool is_picture(const std::filesystem::path& path);

/// A folder's content sorted by name, bytewise: the same on every file system. Hidden entries are left out. Error(io)
/// beginning with [`kind`].
std::vector<std::filesystem::path> sorted_entries(const std::string& kind, const std::filesystem::path& folder);

}  // namespace weft::data
