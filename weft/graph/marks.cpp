#include "weft/graph/marks.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/op_def.h"

namespace weft {

namespace {

using Accepts = bool (*)(const OpDef& op, const std::string& node_name, const AttributeValue& value);

bool is_boolean(const OpDef&, const std::string&, const AttributeValue& value) {
  return std::holds_alternative<bool>(value);
}

/// Of the pairs that passes/memory/mark_in_place has chosen among those that the op allows.
bool is_in_place(const OpDef& op, const std::string& node_name, const AttributeValue& value) {
  const auto* pairs = std::get_if<std::vector<int64_t>>(&value);
  bool good = pairs != nullptr && pairs->size() % 2 == 0;
  for (size_t at = 0; good && at < pairs->size(); at += 2)
    good = std::any_of(op.in_place.begin(), op.in_place.end(),
                       [&](const auto& pair) { return pair.first == (*pairs)[at] && pair.second == (*pairs)[at + 1]; });
  if (good) return true;
  fail(ErrorKind::usage, "[{}] '{}': in_place={} is not a list of (output, input) pairs that the op allows", op.name,
       node_name, to_string(value));
}

struct Mark {
  const char* name;
  Accepts accepts;
};

constexpr Mark kMarks[] = {
    {kInPlace, is_in_place},
    {kRecomputed, is_boolean},
    {kKept, is_boolean},
    {kExact, is_boolean},
};

const Mark* find_mark(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(kMarks), std::end(kMarks), [&](const Mark& mark) { return name == mark.name; });
  return found == std::end(kMarks) ? nullptr : found;
}

}  // namespace

bool is_mark(const std::string& name) { return find_mark(name) != nullptr; }

bool accepts_mark(const OpDef& op, const std::string& node_name, const std::string& name, const AttributeValue& value) {
  const Mark* mark = find_mark(name);
  return mark != nullptr && mark->accepts(op, node_name, value);
}

const std::vector<int64_t>& in_place_pairs(const Attributes& attributes) {
  static const std::vector<int64_t> none;
  return attributes.has(kInPlace) ? attributes.integers(kInPlace) : none;
}

}  // namespace weft
