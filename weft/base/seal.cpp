#include "weft/base/seal.h"

#include <nlohmann/json.hpp>
#include <span>

#include "weft/base/error.h"
#include "weft/base/hash128.h"

namespace weft {

namespace {

constexpr const char* kKey = "checksum";
constexpr std::string_view kLine = "# checksum: ";

std::string hash_of(std::string_view text) { return to_string(hash128(std::as_bytes(std::span(text)))); }

/// Of the members but the checksum, in the order of their names.
std::string hash_of_members(nlohmann::json root) {
  root.erase(kKey);
  return hash_of(root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// As a reader will find them: with stand-ins for bytes that are no UTF-8.
template <typename Json>
void seal_members(Json& root) {
  root[kKey] = hash_of_members(nlohmann::json::parse(root.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

[[noreturn]] void fail_changed(const std::string& name, const char* next_step) {
  fail(ErrorKind::data, "'{}' is damaged: its content is not what weft wrote there, by its checksum; {}", name,
       next_step);
}

}  // namespace

void add_seal(nlohmann::json& root) { seal_members(root); }
void add_seal(nlohmann::ordered_json& root) { seal_members(root); }

bool check_seal(const nlohmann::json& root, const std::string& name) {
  if (!root.is_object() || !root.contains(kKey)) return false;
  if (root[kKey] != hash_of_members(root)) fail_changed(name, "put the original back");
  return true;
}

std::string with_seal(const std::string& text) { return text + std::string(kLine) + hash_of(text) + "\n"; }

std::string_view without_seal(std::string_view text) {
  const size_t at = text.rfind(kLine);
  return at == text.npos || (at > 0 && text[at - 1] != '\n') ? text : text.substr(0, at);
}

bool check_text_seal(std::string_view text, const std::string& name) {
  const size_t at = without_seal(text).size();
  if (at == text.size()) return false;
  std::string_view hash = text.substr(at + kLine.size());
  if (hash.ends_with('\n')) hash.remove_suffix(1);
  if (hash != hash_of(text.substr(0, at)))
    fail_changed(name, "put the original back, or remove its line '# checksum' where you changed it yourself");
  return true;
}

}  // namespace weft
