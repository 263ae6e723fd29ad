// clang-format off
#include <cstdint>

#include "weft/base/toml.h"  // before the reader: it mends toml++
// clang-format on

#include "weft/machines/section_reader.h"

namespace weft::machines {

toml::table parse_machine_file(std::string_view text, const std::string& path) {
  try {
    return parse_toml(text, path);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::data, "'{}', line {}: {}", path, static_cast<int64_t>(error.source().begin.line),
         std::string(error.description()));
  }
}

const toml::table* section_of(const toml::table& file, const char* name, const std::string& path) {
  const toml::node* const node = file.get(name);
  if (node == nullptr) return nullptr;
  if (node->as_table() == nullptr)
    fail(ErrorKind::data, "'{}', line {}: '{}' has to be a section; write [{}] and its keys below", path,
         static_cast<int64_t>(node->source().begin.line), name, name);
  return node->as_table();
}

}  // namespace weft::machines
