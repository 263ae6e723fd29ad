#include "weft/spec/key_schema.h"

#include <nlohmann/json.hpp>

namespace weft::spec {

namespace {

using nlohmann::ordered_json;

void add_range(ordered_json& type, const Key& key) {
  if (key.low == kAboveZero)
    type["exclusiveMinimum"] = 0;
  else
    type["minimum"] = key.low;
  type["maximum"] = key.high;
}

ordered_json type_of(const Key& key) {
  if (std::holds_alternative<bool>(key.value)) return {{"type", "boolean"}};
  if (std::holds_alternative<std::string>(key.value)) {
    ordered_json type = {{"type", "string"}};
    if (key.takes_number) type["type"] = {"string", "number"};
    if (!key.choices.empty()) type["enum"] = key.choices;
    return type;
  }
  ordered_json number = {{"type", std::holds_alternative<int64_t>(key.value) ? "integer" : "number"}};
  add_range(number, key);
  if (std::holds_alternative<std::vector<double>>(key.value)) return {{"type", "array"}, {"items", number}};
  return number;
}

ordered_json property_of(const Key& key) {
  ordered_json property = {{"description", key.unit.empty() ? key.help : key.help + " [" + key.unit + "]"}};
  if (key.automatic)
    property["anyOf"] = {type_of(key), {{"const", "auto"}}};
  else
    property.update(type_of(key));
  const auto* real = std::get_if<double>(&key.value);
  if (key.is_measured && real != nullptr && *real < key.low) return property;  // of the entry
  if (key.automatic && !key.is_measured && key.value == *key.automatic)
    property["default"] = "auto";
  else
    std::visit([&](const auto& value) { property["default"] = value; }, key.value);
  return property;
}

ordered_json table() {
  return {{"type", "object"}, {"properties", ordered_json::object()}, {"additionalProperties", false}};
}

/// The table of a section, made where there is none yet; "optimizer.groups.NAME" is that of any group.
ordered_json& table_of(ordered_json& schema, const std::string& section) {
  if (section.empty()) return schema;
  ordered_json& above = table_of(schema, section_of(section));
  const std::string name = name_in_section(section);
  const bool is_any = name == kAnyGroup;
  ordered_json& tables = above[is_any ? "patternProperties" : "properties"];
  ordered_json& inner = tables[is_any ? "^[A-Za-z0-9_-]+$" : name];
  if (inner.is_null()) inner = table();
  return inner;
}

}  // namespace

std::string key_schema(const std::vector<RecipeKey>& keys) {
  ordered_json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A recipe of weft"}};
  schema.update(table());
  for (const RecipeKey& key : keys)
    table_of(schema, section_of(key.name))["properties"][name_in_section(key.name)] = property_of(key);
  // A text names a model without options; in a table each further key is one, which the model itself checks.
  ordered_json& model = schema["properties"]["model"];
  model["additionalProperties"] = {{"type", {"string", "number", "boolean", "array"}}};
  model = {{"anyOf", {model["properties"]["name"], model}}};
  return schema.dump(2) + "\n";
}

}  // namespace weft::spec
