// Attributes of a node: a small sorted map from names to plain values, with a text form.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/graph/constant.h"

namespace weft {

using AttributeValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, Constant>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, AttributeValue>> values) : values_(values) {}

  bool has(const std::string& name) const { return values_.contains(name); }
  void set(const std::string& name, AttributeValue value) { values_[name] = std::move(value); }
  void erase(const std::string& name) { values_.erase(name); }

  // Each throws Error(internal) where the attribute is absent or of another kind: the registry has filled
  // in defaults and checked kinds before a node exists.
  bool boolean(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::vector<int64_t>& integers(const std::string& name) const;
  const Constant& constant(const std::string& name) const;
  /// Of an attribute that may hold either (AttributeSpec::keeps_integers): the integer, where it holds one.
  std::optional<int64_t> exact_integer(const std::string& name) const;

  const std::map<std::string, AttributeValue>& values() const { return values_; }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::map<std::string, AttributeValue> values_;
};

/// true, 3, 1e-05, "relu", [1,1], <f32[64,3] hash=1f0c...>; reals always show a point or an exponent, and parse back to
/// the same bits. A constant shows its type and hash, whatever its size: its data never are part of a signature.
std::string to_string(const AttributeValue& value);
/// Reverses to_string, but for constants (graph/constant_text.h); Error(data) with the text.
AttributeValue parse_attribute_value(std::string_view text);
/// "boolean", "integer", "real", "text", "integers", "constant"
std::string_view kind_name(const AttributeValue& value);

}  // namespace weft
