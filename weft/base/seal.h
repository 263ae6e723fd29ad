// Checksums in the files that weft writes for itself and reads back: a changed one is refused, and never taken for
// another truth. What people edit has none.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace weft {

/// Adds "checksum" to a JSON object: the hash of all its other members, whatever the order and spaces between them.
void add_seal(nlohmann::ordered_json& root);
void add_seal(nlohmann::json& root);
/// Whether the object carries a checksum: files of weft 0.1 had none. Error(data) beginning with `name` where it is not
/// that of the other members.
bool check_seal(const nlohmann::json& root, const std::string& name);

/// `text`, lines of TOML, with a last line "# checksum: HASH" of all lines before it.
std::string with_seal(const std::string& text);
/// The lines before it.
std::string_view without_seal(std::string_view text);
/// The same as check_seal() for such a text.
bool check_text_seal(std::string_view text, const std::string& name);

}  // namespace weft
