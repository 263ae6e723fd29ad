// Settings by the keys of a recipe: in files, on the command line and from code.
#include <algorithm>
#include <cctype>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/spec/recipe_keys.h"
#include "weft/spec/run_spec.h"
#include "weft/spec/usual_names.h"

namespace weft::spec {

namespace {

RecipeKey find_key(const RunSpec& spec, const std::string& name, const std::string& where, const Entries& entries) {
  std::vector<std::string> names, groups;
  for (const auto& [group, parameters] : spec.optimizer.groups) groups.push_back(group);
  for (RecipeKey& key : recipe_keys(entries, groups)) {
    if (key.name == name) return std::move(key);
    names.push_back(key.name);
  }
  if (const std::string usual = key_of_usual_name(name, names); !usual.empty())
    fail(ErrorKind::usage, "{}: unknown key '{}'; it is called '{}' here", where, name, usual);
  fail(ErrorKind::usage, "{}: unknown key '{}'{}", where, name, key_suggestion(name, names));
}

/// Makes the group that the key names, so that its keys are known.
void make_group(RunSpec& spec, const std::string& key, const std::string& where) {
  if (!key.starts_with(kGroups)) return;
  const size_t point = key.rfind('.');
  const std::string name = point < kGroups.size() ? "" : key.substr(kGroups.size(), point - kGroups.size());
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), fits))
    fail(ErrorKind::usage,
         "{}: '{}' names no group of parameters; write optimizer.groups.NAME.KEY with a NAME of letters, digits, _ and "
         "-, such as optimizer.groups.head.match",
         where, key);
  spec.optimizer.groups.try_emplace(name);
}

/// "onnx:net.onnx": the model, and the file that it is made of.
std::string without_file(RunSpec& spec, const std::string& model) {
  constexpr std::string_view kOnnx = "onnx:";
  if (!model.starts_with(kOnnx)) return model;
  spec.model.options["file"] = model.substr(kOnnx.size());
  return "onnx";
}

void put_checked(RunSpec& spec, const RecipeKey& key, const KeyValue& value, const std::string& where) {
  KeyValue checked = checked_value(key, value, where);
  if (auto* model = std::get_if<std::string>(&checked); model != nullptr && key.name == "model.name")
    *model = without_file(spec, *model);
  put_value(key.place(spec), checked);
  if (key.measured) key.measured(spec) = std::holds_alternative<std::string>(value);  // which can be "auto" only
}

bool is_model_option(const std::string& key) { return key.starts_with("model.") && key != "model.name"; }

}  // namespace

void set_field(RunSpec& spec, const std::string& name, const KeyValue& value, const std::string& where,
               const Entries& entries) {
  if (is_model_option(name)) {
    const auto* text = std::get_if<std::string>(&value);
    spec.model.options[name.substr(6)] = text != nullptr ? *text : shown(value);
    return;
  }
  make_group(spec, name, where);
  const RecipeKey key = find_key(spec, name == "model" ? "model.name" : name, where, entries);
  put_checked(spec, key, value, where);
}

void require_section(RunSpec& spec, const std::string& section, const std::string& where, const Entries& entries) {
  if (section == "optimizer.groups") return;
  make_group(spec, section + ".match", where);
  std::vector<std::string> sections;
  for (const BoundKey& key : bind_keys(spec, entries)) {
    const std::string known = section_of(key.name);
    if (known == section) return;
    if (!known.empty() && (sections.empty() || sections.back() != known)) sections.push_back(known);
  }
  fail(ErrorKind::usage, "{}: there is no section [{}]{}", where, section, suggestion(section, sections));
}

void set_from_text(RunSpec& spec, const std::string& assignment, const Entries& entries) {
  const std::string where = fmt::format("--set {}", assignment);
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(ErrorKind::usage, "{}: wants KEY=VALUE, such as optimizer.learning_rate=0.1", where);
  const std::string name = assignment.substr(0, equals);
  std::string text = assignment.substr(equals + 1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (is_model_option(name)) return set_field(spec, name, text, where, entries);
  make_group(spec, name, where);
  const RecipeKey key = find_key(spec, name == "model" ? "model.name" : name, where, entries);
  put_checked(spec, key, read_value(key, text), where);
}

}  // namespace weft::spec
