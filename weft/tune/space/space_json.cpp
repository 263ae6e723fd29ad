// Spaces and values as JSON, in which studies keep them.
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/tune/space/space.h"

namespace weft::tune {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const KeyValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

/// A whole number of a real dimension comes back as one; Space::point() takes both.
KeyValue value_from(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::vector<double>>();
}

std::vector<KeyValue> values_from(const Json& json) {
  std::vector<KeyValue> values;
  for (const Json& one : json) values.push_back(value_from(one));
  return values;
}

constexpr const char* kKinds[] = {"real", "integer", "choice"};

Json to_json(const Dimension& d) {
  Json json{{"name", d.name}, {"kind", kKinds[static_cast<size_t>(d.kind)]}};
  if (d.kind == Dimension::Kind::choice) {
    json["choices"] = Json::array();
    for (const KeyValue& value : d.choices) json["choices"].push_back(to_json(value));
  } else {
    json["low"] = d.low;
    json["high"] = d.high;
    json["log"] = d.log;
    if (d.kind == Dimension::Kind::integer) json["step"] = d.step;
  }
  if (d.condition) {
    json["if"] = {{"name", d.condition->name}, {"values", Json::array()}};
    for (const KeyValue& value : d.condition->values) json["if"]["values"].push_back(to_json(value));
  }
  return json;
}

Dimension dimension_from(const Json& json) {
  Dimension d{.name = json.at("name").get<std::string>()};
  const auto kind = json.at("kind").get<std::string>();
  if (kind == "choice") {
    d.kind = Dimension::Kind::choice;
    d.choices = values_from(json.at("choices"));
  } else {
    d.kind = kind == "integer" ? Dimension::Kind::integer : Dimension::Kind::real;
    d.low = json.at("low").get<double>();
    d.high = json.at("high").get<double>();
    d.log = json.at("log").get<bool>();
    d.step = json.value("step", int64_t{1});
  }
  if (json.contains("if"))
    d.condition = Condition{json["if"].at("name").get<std::string>(), values_from(json["if"].at("values"))};
  return d;
}

template <typename Read>
auto read_json(const std::string& text, const char* what, const Read& read) {
  try {
    return read(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "this is no {}: {}", what, error.what());
  }
}

}  // namespace

std::string print_space(const Space& space) {
  Json json = Json::array();
  for (const Dimension& d : space.dimensions()) json.push_back(to_json(d));
  return json.dump();
}

Space parse_space(const std::string& text) {
  return read_json(text, "space of a search", [](const Json& json) {
    std::vector<Dimension> dimensions;
    for (const Json& one : json) dimensions.push_back(dimension_from(one));
    return Space(std::move(dimensions));
  });
}

std::string print_values(const Values& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = to_json(value);
  return json.dump();
}

Values parse_values(const std::string& text) {
  return read_json(text, "point of a search", [](const Json& json) {
    Values values;
    for (const auto& [name, value] : json.items()) values.emplace_back(name, value_from(value));
    return values;
  });
}

}  // namespace weft::tune
