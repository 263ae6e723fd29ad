#include "weft/spec/recipe.h"

#include <cmath>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/parse_number.h"
#include "weft/base/rng.h"
#include "weft/base/toml.h"
#include "weft/data/texts/utf8.h"
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

namespace {

/// TOML is UTF-8, the names of files need not be. A byte that is no UTF-8 is written as the code point kFirst + byte,
/// of a plane that is for private use; a code point that happens to be one of those, as the stand-ins of its four
/// bytes. (The idea is that of Python's surrogateescape, but TOML allows no surrogates.)
constexpr uint32_t kFirstStandIn = 0x10fe00;

bool is_stand_in(uint32_t code_point) { return code_point >= kFirstStandIn && code_point <= kFirstStandIn + 0xff; }

std::string without_stand_ins(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t point = data::next_code_point(text, at, "");
    if (is_stand_in(point))
      out += static_cast<char>(point - kFirstStandIn);
    else
      out += text.substr(begin, at - begin);
  }
  return out;
}

/// How many bytes from `at` on are one code point that stands for itself; 0 for a byte that needs a stand-in.
size_t code_point_bytes(const std::string& text, size_t at) try {
  const size_t begin = at;
  return is_stand_in(data::next_code_point(text, at, "")) ? 0 : at - begin;
} catch (const Error&) {
  return 0;
}

KeyValue value_of(const toml::node& node, const std::string& key, const std::string& where) {
  if (const auto* text = node.as_string()) return without_stand_ins(text->get());
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* real = node.as_floating_point()) return real->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  const toml::array* array = node.as_array();
  std::vector<double> numbers;
  for (size_t index = 0; array != nullptr && index < array->size(); ++index)
    if (const auto number = array->get(index)->value<double>()) numbers.push_back(*number);
  if (array == nullptr || numbers.size() != array->size())
    fail(ErrorKind::usage, "{}: {} wants a text, a number, true or false, or a list of numbers", where, key);
  return numbers;
}

void apply_table(RunSpec& spec, const toml::table& table, const std::string& prefix, const std::string& name,
                 const Entries& entries) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      if (inner->empty()) require_section(spec, path, fmt::format("{}:{}", name, key.source().begin.line), entries);
      apply_table(spec, *inner, path + ".", name, entries);
      continue;
    }
    const std::string where = fmt::format("{}:{}", name, key.source().begin.line);
    set_field(spec, path, value_of(node, path, where), where, entries);
  }
}

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const size_t bytes = std::max<size_t>(1, code_point_bytes(text, at));
    if (code_point_bytes(text, at) == 0)
      out += fmt::format("\\U{:08x}", kFirstStandIn + byte);
    else if (byte == '"' || byte == '\\')
      out += {'\\', text[at]};
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04x}", byte);
    else
      out += text.substr(at, bytes);
    at += bytes;
  }
  return out + '"';
}

/// The shortest text that reads back to the same bits, with a point or exponent, as TOML wants for reals.
std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string literal(const KeyValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return toml_text(*text);
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* list = std::get_if<std::vector<double>>(&value)) {
    std::string text;
    for (const double number : *list) text += (text.empty() ? "" : ", ") + real_text(number);
    return "[" + text + "]";
  }
  return real_text(std::get<double>(value));
}

namespace {

/// Comment lines of at most 110 columns, broken between words. Of control characters TOML's comments allow none.
std::string wrapped_comment(const std::string& text) {
  constexpr size_t kColumns = 110;
  std::string out, line = "#";
  std::string printable = data::printable_utf8(text);
  for (char& c : printable)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = c == '\n' ? ' ' : '?';
  std::istringstream words(printable);
  for (std::string word; words >> word;) {
    if (line.size() > 1 && line.size() + 1 + word.size() > kColumns) {
      out += line + '\n';
      line = "#";
    }
    line += ' ' + word;
  }
  return out + line + '\n';
}

}  // namespace

void apply_recipe(RunSpec& spec, std::string_view text, const std::string& name, const Entries& entries) {
  toml::table table;
  try {
    table = parse_toml(text, name);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::usage, "{}:{}: is no TOML: {}", name, error.source().begin.line, error.description());
  }
  apply_table(spec, table, "", name, entries);
}

void apply_recipe_file(RunSpec& spec, const std::filesystem::path& path, const Entries& entries) {
  apply_recipe(spec, read_text(path), path.string(), entries);
}

namespace {

/// Without quotes where a text is a number, and the key takes one.
std::string literal_of(const BoundKey& key) {
  if (key.is_left_open) return toml_text("auto");
  const KeyValue value = value_at(key.place);
  const auto* text = std::get_if<std::string>(&value);
  if (key.takes_number && text != nullptr)
    if (const std::optional<double> number = parse_number<double>(*text); number && std::isfinite(*number))
      return real_text(*number);
  return spec::literal(value);
}

}  // namespace

std::string print_recipe(const RunSpec& spec, const Entries& entries) {
  RunSpec copy = spec;
  std::string top, tables, section;
  for (const BoundKey& key : bind_keys(copy, entries)) {
    if (key.is_quiet && !key.is_left_open && value_at(key.place) == key.value) continue;
    const std::string table = section_of(key.name);
    const std::string line = name_in_section(key.name) + " = " + literal_of(key);
    std::string& target = table.empty() ? top : tables;
    if (!table.empty() && table != section) {
      target += fmt::format("\n[{}]\n", table);
      section = table;
    }
    target += fmt::format("{:<32} # {}\n", line, key.help);
    if (key.name == "model.name")
      for (const auto& [option, value] : spec.model.options)
        target += fmt::format("{} = {}\n", toml_text(option), toml_text(value));
  }
  return top + tables;
}

std::string print_recipe(const RunSpec& spec, const std::string& heading, const std::vector<CommentedKey>& keys,
                         const Entries& entries) {
  RunSpec copy = spec;
  const std::vector<BoundKey> known = bind_keys(copy, entries);
  const auto value_of_key = [&](const std::string& key) {
    for (const BoundKey& one : known)
      if (one.name == key) return literal_of(one);
    check(key.starts_with("model."), "a key of a recipe");
    return toml_text(spec.model.options.at(key.substr(6)));
  };
  std::string out, section;
  std::istringstream paragraphs(heading);
  for (std::string line; std::getline(paragraphs, line);) out += wrapped_comment(line);
  out += '\n';
  for (const CommentedKey& chosen : keys) {
    const std::string table = section_of(chosen.key);
    if (table != section) out += fmt::format("\n[{}]\n", section = table);
    out += wrapped_comment(chosen.comment);
    out += fmt::format("{} = {}\n", name_in_section(chosen.key), value_of_key(chosen.key));
  }
  return out;
}

std::string spec_hash(const RunSpec& spec, const Entries& entries) {
  RunSpec decisive = spec, defaults;
  decisive.threads = defaults.threads;
  decisive.checkpoint = defaults.checkpoint;
  decisive.loader = defaults.loader;
  decisive.offload = defaults.offload;
  decisive.offload_rate = defaults.offload_rate;
  decisive.cluster = defaults.cluster;
  decisive.cost_profile = defaults.cost_profile;
  decisive.metrics = defaults.metrics;
  decisive.stop = defaults.stop;
  decisive.max_time = defaults.max_time;
  // The run's own copy of the model lies wherever the run directory does.
  if (const auto file = decisive.model.options.find("file"); file != decisive.model.options.end())
    file->second = std::filesystem::path(file->second).filename().string();
  // The measure of those specs that were hashed before it could be auto.
  defaults.schedule.monitor = "test_loss";
  if (decisive.schedule.monitor == "auto" && decisive.schedule.name != "plateau")
    decisive.schedule.monitor = defaults.schedule.monitor;
  // The momentum of those specs that were hashed before it depended on the optimiser.
  defaults.optimizer.momentum = 0.9;
  if (decisive.optimizer.momentum < 0) decisive.optimizer.momentum = defaults.optimizer.momentum;
  for (const auto& [name, group] : spec.optimizer.groups) defaults.optimizer.groups.try_emplace(name);
  add_own_keys(defaults, decisive, entries);
  const std::vector<BoundKey> keys = bind_keys(decisive, entries), default_keys = bind_keys(defaults, entries);
  std::string text;
  for (size_t index = 0; index < keys.size(); ++index) {
    const std::string value = literal(value_at(keys[index].place));
    if (value != literal(value_at(default_keys[index].place)))
      text += fmt::format("{} = {}\n", keys[index].name, value);
  }
  for (const auto& [option, value] : decisive.model.options)
    text += fmt::format("model.{} = {}\n", toml_text(option), toml_text(value));
  return fmt::format("{:016x}", hash_name(text));
}

}  // namespace weft::spec
