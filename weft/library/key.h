// A key of a recipe as data: its kind, its default, what it may be and what it is for. The parser's checks and
// messages, `weft keys`, docs/recipe.md and the JSON Schema all come from such declarations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft {

/// A text, a whole number, a number, true or false, or a list of numbers.
using KeyValue = std::variant<std::string, int64_t, double, bool, std::vector<double>>;

/// The smallest value of numbers that must be above zero; messages then say so.
inline constexpr double kAboveZero = 1e-30;

/// The values of keys that no member of a RunSpec holds, by their short names: those of entries from outside.
using OwnKeys = std::map<std::string, KeyValue>;

/// One of them, of a resolved spec: own_value<double>(optimizer.own, "sharpness").
template <typename Value>
const Value& own_value(const OwnKeys& own, const std::string& name) {
  return std::get<Value>(own.at(name));
}

struct Key {
  std::string name = {};                   // "optimizer.momentum"
  KeyValue value = {};                     // where a recipe says nothing; its kind is that of the key
  double low = 0, high = 0;                // numbers, each one of a list: the allowed range, both ends included
  std::vector<std::string> choices = {};   // texts: the allowed values; empty: any
  std::string unit = {};                   // "epochs", "pixels"; empty: a pure number, or no number at all
  std::string help = {};                   // a line
  std::vector<std::string> read_by = {};   // the entries, or choices of its table, that read it; empty: all
  std::optional<KeyValue> automatic = {};  // what "auto" stands for, beside a value of its kind; nullopt: no "auto"
  bool is_measured = false;   // where it is "auto": before the first step; `automatic` stands in until then
  bool takes_number = false;  // texts: a number stands for its text, as in "validation = 0.1"
};

/// "a text", "a whole number", "a number", "true or false", "a list of numbers, such as [1, 0.1]"
std::string_view kind_of(const Key& key);

/// As messages show it: 'text', 3, [1, 0.1].
std::string shown(const KeyValue& value);

/// The value as the key has it: whole numbers become numbers where such are wanted, "auto" what it stands for.
/// Error(usage) for a wrong kind, a value out of range or no choice; `where` begins each message: "recipe.toml:4".
KeyValue checked_value(const Key& key, const KeyValue& value, const std::string& where);

/// The text as the key's kind has it, such as a list for "[1, 0.1]" and "1,0.1"; where it is none, the text, which
/// checked_value() then refuses.
KeyValue read_value(const Key& key, const std::string& text);

}  // namespace weft
