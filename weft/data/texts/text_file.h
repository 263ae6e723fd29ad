// Files of text as editors write them: UTF-8, with or without a byte order mark, gzip or not.
#pragma once

#include <string>

namespace weft::data {

/// The whole text, without a byte order mark. Error(io) for a missing file; Error(data) for UTF-16 and for what holds
/// zero bytes, as no text does. That it is UTF-8 is for the caller to check: require_utf8().
std::string read_text_file(const std::string& path);

}  // namespace weft::data
